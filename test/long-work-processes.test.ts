import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { event, job, millrace, workflow } from '../src/index.js'
import type { Mill, MillOptions, Sequence } from '../src/index.js'
import { internalsOf } from '../src/mill/internals.js'
import type { Store } from '../src/store/store.js'
import { useProcesses } from './processes/child.js'
import type { Child } from './processes/child.js'
import { rawTables } from './support/raw-tables.js'

/**
 * Workflows and sequences of several processes: those that the test starts, and its own. The numbers are those of the acceptance
 * tests of long work. `MILLRACE_LONG_WORK_KILLS=200` and `MILLRACE_LONG_WORK=full` run them as often as they are stated.
 */
const KILLS = Number(process.env['MILLRACE_LONG_WORK_KILLS'] ?? 6)
const SAMPLES = process.env['MILLRACE_LONG_WORK'] === 'full' ? 10_000 : 300

const processes = useProcesses()
const mills: Mill[] = []
// This hook is added after that of the processes, and so runs before it.
afterEach(async () => {
  for (const mill of mills.splice(0)) await mill.close({ deadline: 0 })
})

const OPTIONS = { logger: false, poll: '100ms', lease: '1s' } as const
async function open(options: MillOptions): Promise<Mill> {
  const mill = await millrace({ store: processes().file, ...OPTIONS, ...options })
  mills.push(mill)
  return mill
}

const storeOf = (mill: Mill): Store => (internalsOf(mill) as { readonly store: Store }).store
const wait = (ms: number): Promise<void> => new Promise((next) => void setTimeout(next, ms))
const numbers = (count: number): number[] => Array.from({ length: count }, (_, i) => i)
const reaches = (sequence: Sequence, wanted: object): Promise<void> =>
  expect.poll(() => sequence.progress(), { timeout: 20_000, interval: 10 }).toMatchObject(wanted)

describe('28, 29: LW29, LW31: a process that is killed with -9 before or after the commit of a transaction', () => {
  const BOOKINGS = Math.floor(KILLS / 2)
  /** A worker that dies in the first transaction that it acts in, or as soon as the body has its answer. */
  const dying = (when: 'before' | 'after'): string => `
    const { workflow } = front
    let acted = false
    const book = (tx, i) => file.startsWith('postgres') ? tx.query('insert into bookings values ($1)', [i]) : tx.prepare('insert into bookings values (?)').run(i)
    const die = () => { process.kill(process.pid, 'SIGKILL'); for (;;); }
    const booking = workflow('booking', async (count, w) => {
      for (let i = 0; i < count; i += 1) {
        await w.transaction('book', (tx) => {
          acted = true
          const written = book(tx, i)
          if (${when === 'before'}) return written?.then ? written.then(die) : die()
          return written?.then?.(() => i) ?? i
        })
        if (acted) die()
      }
    })
    const mill = await millrace({ store: file, jobs: [booking], logger: false, poll: '20ms', lease: '1s', crashBudget: 2 })
    await mill.start()`

  test(
    `${KILLS} kills: the rows and the record of the step are there together, once, and an answer ends the count of crashes`,
    { timeout: 900_000 },
    async () => {
      const booking = workflow('booking', async (count: number, w) => {
        for (let i = 0; i < count; i += 1) await w.transaction('book', () => expect.unreachable('all are booked'))
        return 'booked'
      })
      const mill = await open({ jobs: [booking] })
      const tables = rawTables(processes().file)
      await tables.run(() => 'drop table if exists bookings')
      await tables.run(() => 'create table bookings (i integer)')
      const { id } = await mill.enqueue(booking, BOOKINGS)
      for (let kill = 0; kill < BOOKINGS * 2; kill += 1) {
        const isAfter = kill % 2 === 1
        expect(await processes().run(dying(isAfter ? 'after' : 'before')).exited).toBe('SIGKILL')
        const rows = await tables.read<{ i: number }>(() => 'select i from bookings order by i')
        const expected = numbers(Math.floor(kill / 2) + (isAfter ? 1 : 0))
        expect(rows.map(({ i }) => i)).toEqual(expected)
        expect((await mill.steps(id, { limit: 1_000 })).filter(({ state }) => state === 'done')).toHaveLength(
          expected.length,
        )
      }
      await mill.start()
      expect(await mill.handle(id).result({ timeout: '20s' })).toBe('booked')
      await tables.run(() => 'drop table bookings')
    },
  )
})

test('33: LW36: an event of one id that 4 processes send 100 times is taken once', { timeout: 60_000 }, async () => {
  const go = event<number>('go')
  const flow = workflow('flow', async (_: undefined, w) => [
    await w.waitFor(go),
    await w.waitFor(go, { timeout: '1h' }).catch((error: { code: string }) => error.code),
    w.now().getTime(),
  ])
  const mill = await open({ jobs: [flow] })
  const handle = await mill.enqueue(flow)
  const send = `
    const mill = await millrace({ store: file, logger: false })
    const go = front.event('go')
    let sent = 0
    for (let i = 0; i < 25; i += 1) sent += (await mill.send(${JSON.stringify(handle.id)}, go, 7, { id: 'click' })) ? 1 : 0
    say('sent', { sent }); await mill.close()`
  const others = [1, 2, 3].map(() => processes().run(send))
  await mill.start()
  let sent = 0
  for (let i = 0; i < 25; i += 1) sent += (await mill.send(handle, go, 7, { id: 'click' })) ? 1 : 0
  for (const other of others) sent += (await other.receives('sent'))['sent'] as number
  expect(sent).toBe(1)
  await expect.poll(async () => (await handle.get())?.workflow).toMatchObject({ answers: 1, unread: 0 })
  expect(await mill.send(handle, go, 8, { id: 'click' })).toBe(false)
  expect(await mill.send(handle, go, 8, { id: 'other' })).toBe(true)
  expect(await handle.result({ timeout: '20s' })).toEqual([7, 8, expect.any(Number)])
})

test('50: LW57: a process that stands still for three leases loses its run, whose finally never runs', { timeout: 60_000 }, async () => {
  const stalled = processes().run(`
    const { workflow } = front
    const flow = workflow('flow', async (_, w) => {
      try {
        await w.step('first', () => 1)
        await w.step('slow', async (s) => {
          const aborted = new Promise((next) => s.signal.addEventListener('abort', next))
          say('acts'); await aborted; say('aborted', { code: s.signal.reason.code })
        })
        say('went on')
      } finally {
        say('finally')
        await w.cleanup((one) => one.step('undo', () => say('undone')))
      }
    })
    const mill = await millrace({ store: file, jobs: [flow], logger: false, poll: '100ms', lease: '1s' })
    await mill.start()
    say('enqueued', { id: (await mill.enqueue(flow)).id })
    await new Promise((next) => setTimeout(next, 600_000))`)
  const { id } = (await stalled.receives('enqueued')) as unknown as { id: string }
  await stalled.receives('acts')
  stalled.process.kill('SIGSTOP')
  const acts: string[] = []
  const flow = workflow('flow', async (_: undefined, w) => {
    await w.step('first', () => void acts.push('first'))
    await w.step('slow', () => void acts.push('slow'))
    return w.cleanup((one) => one.step('undo', () => 'here'))
  })
  const mill = await open({ jobs: [flow] })
  await mill.start()
  expect(await mill.handle(id).result({ timeout: '40s' })).toBe('here')
  await wait(2_000)
  stalled.process.kill('SIGCONT')
  expect((await stalled.receives('aborted'))['code']).toBe('E_LEASE_LOST')
  await wait(300)
  expect(acts).toEqual(['slow'])
  expect(stalled.messages.map(({ what }) => what)).not.toContain('finally')
  expect(stalled.messages.map(({ what }) => what)).not.toContain('went on')
  expect((await mill.steps(id)).map(({ address }) => address)).toEqual(['/step:first#0', '/step:slow#0', '/cleanup:#0/step:undo#0'])
}) // prettier-ignore

const VERBS = ['start', 'pause', 'resume', 'cancel', 'reset'] as const
type Verb = (typeof VERBS)[number]

describe('Sequences of a worker in another process', () => {
  /** `held` waits until there is the file `gate`; `bad` fails; `quick` returns. */
  const worker = (folder: string): string => `
    const { existsSync } = await import('node:fs')
    const { join } = await import('node:path')
    const held = job('held', async (name) => {
      say('began ' + name)
      while (!existsSync(join(${JSON.stringify(folder)}, 'gate'))) {
        await new Promise((next) => setTimeout(next, 10))
      }
      return name
    })
    const bad = job('bad', { retry: { limit: 0 }, run: async () => { throw new Error('bad') } })
    const quick = job('quick', (n) => n)
    const mill = await millrace({ store: file, jobs: [held, bad, quick], logger: false, poll: '50ms', lease: '5s', concurrency: 40 })
    await mill.start(); say('up')`
  const held = job('held', async (name: string) => name)
  const bad = job('bad', async (name: string) => name)
  const quick = job('quick', async (n: unknown) => n)

  test('56: LW70: each verb in each state answers and moves as the table says', { timeout: 90_000 }, async () => {
    /** What each verb answers, and the progress that follows; `ends`: once the item in hand has ended. */
    type Row = Record<
      Verb,
      readonly [did: boolean, state: string, requested?: string | undefined, ends?: string | undefined]
    >
    const no = (state: string, requested?: string, ends?: string): Row[Verb] => [false, state, requested, ends]
    const waiting: Row[Verb] = [true, 'waiting']
    const TABLE: Record<string, Row> = {
      waiting: { start: [true, 'running'], pause: no('waiting'), resume: no('waiting'), cancel: [true, 'cancelled'], reset: waiting },
      idle: { start: no('running'), pause: [true, 'paused'], resume: no('running'), cancel: [true, 'cancelled'], reset: waiting },
      'in hand': {
        start: no('running', undefined, 'done'), pause: [true, 'running', 'pause', 'paused'], resume: no('running', undefined, 'done'),
        cancel: [true, 'running', 'cancel', 'cancelled'], reset: waiting,
      },
      pausing: {
        start: no('running', 'pause', 'paused'), pause: no('running', 'pause', 'paused'), resume: [true, 'running', undefined, 'done'],
        cancel: [true, 'running', 'cancel', 'cancelled'], reset: waiting,
      },
      cancelling: {
        start: no('running', 'cancel', 'cancelled'), pause: no('running', 'cancel', 'cancelled'), resume: no('running', 'cancel', 'cancelled'),
        cancel: [true, 'running', 'cancel', 'cancelled'], reset: waiting,
      },
      paused: { start: no('paused'), pause: no('paused'), resume: [true, 'running'], cancel: [true, 'cancelled'], reset: waiting },
      done: { start: no('done'), pause: no('done'), resume: no('done'), cancel: no('done'), reset: waiting },
      failed: { start: no('failed'), pause: no('failed'), resume: [true, 'running'], cancel: no('failed'), reset: waiting },
      cancelled: { start: no('cancelled'), pause: no('cancelled'), resume: no('cancelled'), cancel: no('cancelled'), reset: waiting },
    } // prettier-ignore
    const child = processes().run(worker(processes().folder))
    const mill = await open({ jobs: [held, bad, quick] })
    const cells = Object.keys(TABLE).flatMap((state) => VERBS.map((verb) => ({ state, verb })))
    await child.receives('up')
    // Nothing of this queue runs, so that its sequences are not in hand whatever their state.
    await mill.queue('idle').pause()
    const made = await Promise.all(
      cells.map(async ({ state, verb }) => ({ state, verb, sequence: await make(mill, child, state, verb) })),
    )
    for (const { state, verb, sequence } of made) {
      const [did, then, requested] = (TABLE[state] as Row)[verb]
      expect(await sequence[verb](), `${verb} of ${state}`).toBe(did)
      const progress = await sequence.progress()
      expect([progress.state, progress.requested], `${verb} of ${state}`).toEqual([then, requested])
    }
    writeFileSync(join(processes().folder, 'gate'), '')
    for (const { state, verb, sequence } of made) {
      const [, , , ends] = (TABLE[state] as Row)[verb]
      if (ends !== undefined) await reaches(sequence, { state: ends, done: ends === 'done' ? 2 : 1 })
    }
  })

  async function make(mill: Mill, child: Child, state: string, verb: Verb): Promise<Sequence> {
    const inQueue = { queue: 'idle' }
    if (state === 'waiting') return mill.sequence(held, ['a', 'b'], { start: false })
    if (state === 'done') return mill.sequence(quick, [])
    if (state === 'failed') {
      const sequence = await mill.sequence(bad, ['a', 'b'])
      await reaches(sequence, { state: 'failed' })
      // A resume must find it in hand of no worker.
      await mill.edit(sequence.id, inQueue)
      return sequence
    }
    const isInHand = ['in hand', 'pausing', 'cancelling'].includes(state)
    const first = `${verb} of ${state}`
    const sequence = await mill.sequence(held, [first, 'b'], isInHand ? {} : inQueue)
    if (isInHand) await child.receives(`began ${first}`)
    if (state === 'pausing' || state === 'paused') await sequence.pause()
    if (state === 'cancelling' || state === 'cancelled') await sequence.cancel()
    return sequence
  }

  test(`57: LW72: progress that is read ${SAMPLES} times is never ahead of the output and never goes back`, { timeout: 180_000 }, async () => {
    processes().run(worker(processes().folder))
    const mill = await open({ jobs: [quick] })
    const sequence = await mill.sequence(quick, numbers(SAMPLES * 20))
    let before = 0
    let changes = 0
    for (let samples = 0; samples < SAMPLES; samples += 1) {
      const { done } = await sequence.progress()
      expect(done).toBeGreaterThanOrEqual(before)
      if (done === 0) {
        samples -= 1
        await wait(5)
        continue
      }
      if (done > before) changes += 1
      before = done
      const [last] = await sequence.output({ from: done - 1, limit: 1 })
      expect(last).toMatchObject({ index: done - 1, result: done - 1 })
    }
    expect(changes).toBeGreaterThan(1)
    await sequence.cancel()
  }) // prettier-ignore

  test('61: LW68: a process killed while it writes 100,000 items leaves nothing to be seen, and its rows are pruned', { timeout: 120_000 }, async () => {
    const mill = await open({ jobs: [quick] })
    const tables = rawTables(processes().file)
    const items = async (): Promise<number> =>
      Number((await tables.read<{ n: number }>((table) => `select count(*) as n from ${table('items')}`))[0]?.n)
    for (let tries = 0; ; tries += 1) {
      const writer = processes().run(`
        const quick = job('quick', (n) => n)
        const mill = await millrace({ store: file, jobs: [quick], logger: false })
        await mill.sequence(quick, Array.from({ length: 100_000 }, (_, i) => i), { key: 'k' }); say('written')`)
      while ((await items()) === 0) await wait(2)
      await writer.kill()
      if (!writer.messages.some(({ what }) => what === 'written')) break
      expect(tries, 'it wrote everything before it was killed').toBeLessThan(5)
      await mill.sequence([quick, 'k']).cancel()
    }
    const written = await items()
    expect(written).toBeGreaterThan(0)
    expect((await mill.count({ state: ['ready', 'running', 'scheduled', 'paused'] })).count).toBe(0)
    const { store } = { store: storeOf(mill) }
    while ((await store.jobs.sweepRows(1_000)).more);
    expect(await items()).toBe(written)
    await tables.run((table) => `update ${table('leftovers')} set due_at = 1`)
    while ((await store.jobs.sweepRows(1_000)).more);
    expect((await store.readCensus()).long).toMatchObject({ items: 0, lists: 0, leftovers: 0 })
    const again = await mill.sequence(quick, [1], { key: 'k' })
    expect([again.isNew, (await again.progress()).total]).toEqual([true, 1])
  }) // prettier-ignore
})
