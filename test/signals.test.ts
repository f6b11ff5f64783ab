import { describe, expect, test } from 'vitest'
import { millrace } from '../src/index.js'
import type { JobRecord, Logger } from '../src/index.js'
import { buildMill } from '../src/mill.js'
import { storeOf } from '../src/mill/parts-from-options.js'
import { job } from '../src/index.js'
import { UNKNOWN_PROCESSES } from '../src/world/processes.js'
import { systemWorld } from '../src/world/world.js'
import { useProcesses } from './processes/child.js'
import type { Child } from './processes/child.js'

/** Real processes that real signals ask to end. */
const processes = useProcesses()

/** A worker whose handler ends after `ms`, or never. Something else keeps its process alive, as a server would. */
const worker = (options: { ms?: number; stop?: string; extra?: string; lease?: string } = {}): Child =>
  processes().run(`
    setInterval(() => {}, 1_000)
    const work = job('work', async () => {
      say('begun')
      await new Promise((resolve) => ${options.ms === undefined ? '{}' : `setTimeout(resolve, ${options.ms})`})
      say('ended')
    })
    const mill = await millrace({ store: file, jobs: { work }, lease: '${options.lease ?? '15s'}' })
    const undo = ${options.stop ?? 'mill.stopOnSignals()'}
    await mill.start()
    const { id } = await mill.enqueue(work)
    say('enqueued', { id })
    ${options.extra ?? ''}`)

async function recordOf(child: Child): Promise<JobRecord | undefined> {
  const { id } = await child.receives('enqueued')
  await using mill = await millrace({ store: processes().file, logger: false })
  return mill.get(id as string)
}

const sleep = (ms: number): Promise<void> => new Promise((next) => setTimeout(next, ms))
const isStopping = async (child: Child): Promise<void> =>
  expect.poll(() => child.errors, { timeout: 10_000 }).toMatch(/SIG(TERM|INT): stopping/)

describe('stopOnSignals', () => {
  test.each(['SIGTERM', 'SIGINT'] as const)(
    'lets running jobs end on %s, and ends the process with 0',
    async (signal) => {
      const child = worker({ ms: 700 })
      await child.receives('begun')
      child.process.kill(signal)
      expect(await child.exited).toBe(0)
      expect(child.messages.map(({ what }) => what)).toContain('ended')
      expect(child.errors).toMatch(/stopped\n$/)
      expect(await recordOf(child)).toMatchObject({ state: 'done', attempt: 1 })
    },
  )

  test('gives back at its deadline jobs that have not ended, and says so', async () => {
    const child = worker({ stop: `mill.stopOnSignals({ deadline: '300ms' })` })
    await child.receives('begun')
    child.process.kill('SIGTERM')
    expect(await child.exited).toBe(0)
    expect(child.errors).toContain('stopped; gave back 1 job')
    expect(await recordOf(child)).toMatchObject({ state: 'ready', attempt: 0 })
  })

  test.each([
    ['SIGTERM', 143],
    ['SIGINT', 130],
  ] as const)('ends the process at once at a second %s, with %i', async (signal, code) => {
    const child = worker()
    await child.receives('begun')
    child.process.kill('SIGTERM')
    await isStopping(child)
    await sleep(600)
    child.process.kill(signal)
    expect(await child.exited).toBe(code)
  })

  // On Ctrl-C the terminal signals every process of the group, and npm forwards its own signal.
  test('counts signals that come together as one', async () => {
    const child = worker({ ms: 1_500 })
    await child.receives('begun')
    for (const signal of ['SIGINT', 'SIGINT', 'SIGTERM'] as const) child.process.kill(signal)
    expect(await child.exited).toBe(0)
    expect((await recordOf(child))?.state).toBe('done')
  })

  test('waits for every mill of the process, however often each was registered', async () => {
    const child = worker({
      ms: 300,
      extra: `
        const late = job('late', async () => { say('late begun'); await new Promise((r) => setTimeout(r, 1_200)); say('late ended') })
        const other = await millrace({ store: file, jobs: { late } })
        other.stopOnSignals()
        other.stopOnSignals()
        await other.start()
        await other.enqueue(late)`,
    })
    await child.receives('late begun')
    child.process.kill('SIGTERM')
    expect(await child.exited).toBe(0)
    expect(child.messages.map(({ what }) => what)).toContain('late ended')
  })

  test('ends a program that waits for a result at its top level with 0, and without an error', async () => {
    const child = worker({ stop: `mill.stopOnSignals({ deadline: '100ms' })`, extra: 'await mill.handle(id).result()' })
    await child.receives('begun')
    child.process.kill('SIGINT')
    expect(await child.exited).toBe(0)
    expect(child.errors).not.toMatch(/E_CLOSED|unsettled/)
  })

  test('leaves an app with its own listener the rest of the deadline, and its exit code', async () => {
    const server = `process.once('SIGTERM', () => setTimeout(() => { say('server closed'); process.exit(7) }, 1_000))`
    const child = worker({ ms: 100, stop: `(${server}, mill.stopOnSignals())`, extra: `say('listens')` })
    await child.receives('listens')
    await child.receives('begun')
    child.process.kill('SIGTERM')
    expect(await child.exited).toBe(7)
    expect(child.messages.map(({ what }) => what)).toContain('server closed')
  })

  test.each([
    ['undone', 'undo()'],
    ['closed', 'await mill.close()'],
  ])('that was %s leaves signals to the process', async (_, extra) => {
    const child = worker({ ms: 0, extra: `${extra}; say('over')` })
    await child.receives('over')
    child.process.kill('SIGTERM')
    expect(await child.exited).toBe('SIGTERM')
  })

  test('is refused with wrong options, and by a mill that is closed', async () => {
    const mill = await millrace({ store: processes().file, logger: false })
    expect(() => mill.stopOnSignals({ deadline: 'soon' as never })).toThrow(/stopOnSignals\(\): deadline/)
    await mill.close()
    expect(() => mill.stopOnSignals()).toThrow(expect.objectContaining({ code: 'E_CLOSED' }))
  })
})

/** As on a machine where the death of a process cannot be proven: the jobs of a killed process wait for its lease. */
test('the next start says which jobs wait for the lease of a worker that may have been killed', async () => {
  const child = worker({ stop: 'undefined', lease: '2s' })
  const { id } = await child.receives('enqueued')
  await child.receives('begun')
  await child.kill()
  const lines: { fields: Record<string, unknown>; message: string }[] = []
  const write = (fields: object, message: string): void => void lines.push({ fields: { ...fields }, message })
  const logger: Logger = { debug: () => undefined, info: write, warn: write, error: write }
  const work = job('work', async () => undefined)
  const world = { ...systemWorld(), processes: UNKNOWN_PROCESSES }
  const mill = await buildMill({ jobs: [work], logger, lease: '2s' }, { world, store: storeOf(processes().file) })
  try {
    const startedAt = Date.now()
    await mill.start()
    await expect.poll(() => lines.find(({ message }) => message.includes('holds 1 job'))).toBeDefined()
    const told = lines.find(({ message }) => message.includes('holds 1 job'))
    expect(told?.message).toMatch(
      new RegExp(
        `^worker \\w+ holds 1 job: work ${String(id)}\\. If it was killed, they run again in 2\\.0 s, when its lease ends$`,
      ),
    )
    expect(told?.fields).toMatchObject({ worker: expect.any(String) as string, jobs: 1 })
    const until = Date.parse(String(told?.fields['until']))
    expect(until - startedAt).toBeGreaterThan(1_900)
    await mill.handle(String(id)).result({ timeout: '20s' })
    expect(Date.now()).toBeGreaterThanOrEqual(until - 100)
    expect(lines.some(({ message }) => message.startsWith('rescued 1 job of worker'))).toBe(true)
  } finally {
    await mill.close()
  }
})
