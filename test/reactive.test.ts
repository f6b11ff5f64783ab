import { execFile } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import vm from 'node:vm'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { build } from '../scripts/build.mjs'

/**
 * What needs `millrace/reactive` as a user gets it: compiled, found by its name, in a process of its own, and bundled
 * for a browser tab. The built package is copied into a directory that looks like a user's project.
 */
const run = promisify(execFile)
const root = join(import.meta.dirname, '..')
let project = ''

beforeAll(async () => {
  project = mkdtempSync(join(tmpdir(), 'millrace-reactive-'))
  const home = join(project, 'node_modules', 'millrace')
  mkdirSync(home, { recursive: true })
  expect(await build()).toMatchObject({ code: 0 })
  cpSync(join(root, 'dist'), join(home, 'dist'), { recursive: true })
  const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { exports: unknown }
  writeFileSync(join(home, 'package.json'), JSON.stringify({ name: 'millrace', type: 'module', exports }))
  writeFileSync(join(project, 'package.json'), JSON.stringify({ type: 'module' }))
  cpSync(join(root, 'examples', 'reactive'), project, { recursive: true })
})

afterAll(() => rmSync(project, { recursive: true, force: true }))

/** Runs a program of the project; returns its output. It must exit by itself. */
async function runProgram(name: string): Promise<{ stdout: string; stderr: string }> {
  return run(process.execPath, [name], { cwd: project, timeout: 20_000 })
}

function program(name: string, source: string): Promise<{ stdout: string; stderr: string }> {
  writeFileSync(join(project, name), source)
  return runProgram(name)
}

describe('examples', () => {
  const names = readdirSync(join(root, 'examples', 'reactive')).filter((name) => name.endsWith('.js'))

  test.each(names)('%s prints the lines that it declares', async (name) => {
    const source = readFileSync(join(project, name), 'utf8')
    const expected = [...source.matchAll(/^\s*\/\/ -> (.*)$/gm)].map((match) => match[1])
    expect(expected.length).toBeGreaterThan(0)
    const { stdout, stderr } = await runProgram(name)
    expect([stdout.trimEnd().split('\n'), stderr]).toEqual([expected, ''])
  })

  test('the guide shows the examples unchanged', () => {
    const guide = readFileSync(join(root, 'docs', 'guides', 'reactive.md'), 'utf8')
    const shown = new Map(
      [...guide.matchAll(/<!-- (examples\/reactive\/[\w-]+\.js) -->\n```js\n([\s\S]*?)```/g)].map((m) => [m[1], m[2]]),
    )
    expect(new Set(shown.keys())).toEqual(new Set(names.map((name) => `examples/reactive/${name}`)))
    for (const [name, code] of shown) expect(code).toBe(readFileSync(join(root, name as string), 'utf8'))
  })
})

describe('processes', () => {
  test('R1 a program that only creates a context ends by itself', async () => {
    const source = `
      import { createContext } from 'millrace/reactive'
      const { pending, running, timers, state } = createContext().inspect()
      console.log(JSON.stringify({ pending, running, timers, state }))`
    const { stdout } = await program('create.js', source)
    expect(JSON.parse(stdout)).toEqual({ pending: 0, running: 0, timers: 0, state: 'running' })
  })

  test('R1 a parked spin keeps nothing alive, and a timer only with keepAlive', async () => {
    const source = `
      import { createContext, deferred, sleep, waitFor } from 'millrace/reactive'
      const ctx = createContext({ keepAlive: false })
      ctx.spawn(function* () { yield* waitFor(deferred()) })
      ctx.spawn(function* () { yield* waitFor(sleep(3_600_000)) })
      process.on('exit', () => console.log(ctx.inspect().running, ctx.inspect().timers))`
    expect((await program('parked.js', source)).stdout).toBe('3 1\n')
  })

  test('R5 with its worker threads closed, the process ends by itself', async () => {
    writeFileSync(join(project, 'work.js'), 'export const double = (n) => n * 2')
    const source = `
      import { createContext, workerPoolExecutor } from 'millrace/reactive'
      const executor = workerPoolExecutor({ size: 2, module: new URL('./work.js', import.meta.url) })
      const ctx = createContext({ executor })
      console.log(await Promise.all([1, 2, 3].map((n) => ctx.offload('double', [n]))))
      console.log((await ctx.close()).state)`
    expect((await program('pool.js', source)).stdout).toBe('[ 2, 4, 6 ]\nstopped\n')
  })

  test('R14 an error of a task is one line on stderr and no uncaught exception', async () => {
    const source = `
      import { createContext, eventLoopExecutor } from 'millrace/reactive'
      process.on('uncaughtException', () => console.log('uncaught'))
      createContext().execute(() => { throw new Error('task') })
      eventLoopExecutor().execute(() => { throw new Error('bare') })`
    const { stdout, stderr } = await program('task.js', source)
    expect(stdout).toBe('')
    expect(stderr).toBe(
      'millrace/reactive: executor-task-fault in execute: Error: task\n' +
        'millrace/reactive: executor-task-fault in execute: Error: bare\n',
    )
  })

  test('a long loop does not grow memory', async () => {
    const source = `
      import { createContext, iterate, mailbox, waitFor } from 'millrace/reactive'
      const ctx = createContext()
      const box = ctx.enter(() => mailbox())
      let taken = 0
      ctx.spawn(() => iterate(0, function* (n) { yield* waitFor(box); taken++; return { next: n + 1 } }))
      const heapAfter = async (count) => {
        for (const goal = taken + count; taken < goal; ) {
          ctx.enter(() => { for (let i = 0; i < 10_000; i++) box.post({ i }) })
          while (box.size > 0 || ctx.inspect().pending > 0) await new Promise((resolve) => setImmediate(resolve))
        }
        gc()
        return process.memoryUsage().heapUsed
      }
      const before = await heapAfter(100_000)
      console.log((await heapAfter(900_000)) - before < 1_000_000, taken)`
    writeFileSync(join(project, 'loop.js'), source)
    const { stdout } = await run(process.execPath, ['--expose-gc', 'loop.js'], { cwd: project, timeout: 60_000 })
    expect(stdout).toBe('true 1000000\n')
  })
})

describe('a browser tab', () => {
  test('only host.ts names a node: module, and only as a type or at run time', () => {
    const folder = join(root, 'src', 'reactive')
    for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
      if (!name.endsWith('.ts') || /\.test(-d)?\.ts$/.test(name) || name === 'host.ts') continue
      const source = readFileSync(join(folder, name), 'utf8').replace(/^const WORKER_SOURCE = `[\s\S]*?^`/m, '')
      expect([
        name,
        source.match(/from 'node:|import\('node:|\bset(Timeout|Interval|Immediate)\(|\bDate\b|Math\.random/),
      ]).toEqual([name, null])
    }
    const built = readFileSync(join(project, 'node_modules', 'millrace', 'dist', 'reactive', 'host.js'), 'utf8')
    expect(built).not.toMatch(/^import /m)
  })

  test('it bundles without Node and works there', async () => {
    const { code, imports } = await bundle(`
      import { computed, createContext, createSimulation, effect, read, signal, sleep, spin, waitFor } from 'millrace/reactive'
      const ctx = createSimulation()
      const seen = []
      ctx.enter(() => {
        const n = signal(1)
        const twice = computed(() => n.get() * 2)
        effect(() => { seen.push(twice.get()) })
        ctx.spawn(function* () {
          const value = yield* read(n)
          yield* waitFor(sleep(10))
          seen.push('slept with ' + value)
        })
        n.set(2)
      })
      ctx.advanceBy(10)
      const real = createContext()
      const done = real.run(real.enter(() => spin(function* () { return yield* waitFor(sleep(1, 'woke')) })))
      globalThis.result = done.then((last) => [...seen, last])`)
    expect(imports).toEqual([])
    const tab: Record<string, unknown> = {
      queueMicrotask,
      setTimeout,
      clearTimeout,
      performance,
      crypto,
      AbortController,
    }
    tab['globalThis'] = tab
    vm.runInNewContext(code, tab)
    expect(await (tab['result'] as Promise<unknown>)).toEqual([2, 4, 'slept with 2', 'woke'])
  })
})

interface Chunk {
  readonly code: string
  readonly imports: readonly string[]
}

interface Bundler {
  readonly rolldown: (
    options: object,
  ) => Promise<{ generate(options: object): Promise<{ readonly output: readonly Chunk[] }> }>
}

/** Bundles an entry for a browser, with vitest's own bundler. */
async function bundle(entry: string): Promise<Chunk> {
  writeFileSync(join(project, 'tab.js'), entry)
  const vite = createRequire(createRequire(import.meta.url).resolve('vitest/package.json')).resolve('vite/package.json')
  const { rolldown } = (await import(createRequire(vite).resolve('rolldown'))) as Bundler
  const build = await rolldown({ input: join(project, 'tab.js'), platform: 'browser', logLevel: 'silent' })
  const { output } = await build.generate({ format: 'iife' })
  return output[0] as Chunk
}
