import { fork } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { build } from './build.mjs'
import { tell } from './run.mjs'

/**
 * `node scripts/measure-sleepers.mjs [--store sqlite|postgres|<url>] [--count 100000]`: workflows of two steps that sleep for a day. One
 * process puts them to sleep; another one opens the store, starts, runs a job, and is measured. The exit code is 1 when that process took
 * longer than 3 s or more than 200 MiB.
 */
const START_MAX_MS = 3_000
const RSS_MAX_MIB = 200
/** How long the started process is watched. */
const WATCH_MS = 5_000
const { values } = parseArgs({
  options: {
    store: { type: 'string', default: 'sqlite' },
    count: { type: 'string', default: '100000' },
    part: { type: 'string' },
  },
})
const count = Number(values.count)
const PARTS = { sleep, start }

if (values.part === undefined) await main()
else process.send(await PARTS[values.part](values.store))

async function main() {
  tell(await build())
  const { startPostgres } = await import(new URL('../dist/testing/index.js', import.meta.url).href)
  const server = values.store === 'postgres' ? await startPostgres() : undefined
  const folder = mkdtempSync(join(tmpdir(), 'millrace-sleepers-'))
  try {
    const store = server?.url ?? (values.store === 'sqlite' ? join(folder, 'jobs.db') : values.store)
    const slept = await inProcess('sleep', store)
    console.log(`${count} workflows asleep after ${(slept.ms / 1_000).toFixed(1)} s; ${slept.rss.toFixed(0)} MiB`)
    const started = await inProcess('start', store)
    console.log(
      `started in ${started.ms.toFixed(0)} ms; ${started.rss.toFixed(0)} MiB at most in ${WATCH_MS / 1_000} s`,
    )
    const isWrong = started.ms > START_MAX_MS || started.rss > RSS_MAX_MIB
    if (isWrong) console.log(`WRONG: at most ${START_MAX_MS} ms and ${RSS_MAX_MIB} MiB`)
    process.exitCode = isWrong ? 1 : 0
  } finally {
    await server?.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

function inProcess(part, store) {
  const child = fork(fileURLToPath(import.meta.url), ['--part', part, '--store', store, '--count', String(count)])
  return new Promise((resolve, reject) => {
    child.once('message', resolve)
    child.once('exit', (code) => reject(new Error(`the process that measures ended with ${code}`)))
  })
}

async function open(store) {
  const { job, millrace, workflow } = await import(new URL('../dist/index.js', import.meta.url).href)
  const sleeper = workflow('sleeper', async (n, w) => {
    await w.step('first', () => n)
    await w.step('second', () => n + 1)
    await w.sleep('1d')
  })
  const ping = job('ping', () => 'pong')
  const mill = await millrace({ store, jobs: [sleeper, ping], concurrency: 100, logger: false })
  return { mill, sleeper, ping }
}

async function sleep(store) {
  const began = performance.now()
  const { mill, sleeper } = await open(store)
  for (let i = 0; i < count; i += 10_000)
    await mill.enqueueMany(
      sleeper,
      Array.from({ length: Math.min(10_000, count - i) }, (_, n) => i + n),
    )
  await mill.start()
  while ((await mill.count({ state: ['ready', 'running'] })).count > 0)
    await new Promise((next) => setTimeout(next, 500))
  const measured = { ms: performance.now() - began, rss: rssMiB() }
  await mill.close()
  return measured
}

async function start(store) {
  const began = performance.now()
  const { mill, ping } = await open(store)
  await mill.start()
  await (await mill.enqueue(ping)).result({ timeout: '60s' })
  const ms = performance.now() - began
  let rss = 0
  for (const end = performance.now() + WATCH_MS; performance.now() < end;) {
    rss = Math.max(rss, rssMiB())
    await new Promise((next) => setTimeout(next, 50))
  }
  await mill.close()
  return { ms, rss }
}

function rssMiB() {
  return process.memoryUsage().rss / 1024 ** 2
}
