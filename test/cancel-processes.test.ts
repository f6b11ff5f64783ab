import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ProcessFixture, useProcesses } from './processes/child.js'
import type { Child, Message } from './processes/child.js'

/** X7 and X14 between real processes: a worker, and another process that cancels and pauses. */
const processes = useProcesses()
/** The grace is half a minute: it passes while the other tests run, in a folder of its own. */
const aside = new ProcessFixture()
let ignored: Promise<{ first: Child; asked: Message; ended: Message }>
beforeAll(() => {
  ignored = ignoreSignal()
  ignored.catch(() => undefined) // The test that awaits it reports a failure.
})
afterAll(() => aside.clear())

/** A worker whose poll is a minute away: what arrives sooner does not come from the poll. */
const worker = (handler: string, then: string, options = '', where = processes()): Child =>
  where.run(`
    const work = job('work', { retry: { limit: 3, backoff: { start: '10ms' } }, run: async (p, ctx) => { ${handler} } })
    const mill = await millrace({ store: file, jobs: { work }, logger: false, poll: '60s', lease: '15s', ${options} })
    await mill.start()
    ${then}
    process.on('SIGTERM', () => mill.close().then(() => say('closed')))
    say('up')`)

/** Enqueues in the worker's own process, so that the job begins at once. */
const ENQUEUE = `const { id } = await mill.enqueue(work, { n: 1 }); say('id', { id })`

/** Another process: it has no worker, and knows the job by its name only. */
const other = (body: string, id = '', where = processes()): Child =>
  where.run(`
    const mill = await millrace({ store: file, jobs: [job('work', () => 1)], logger: false })
    const id = ${JSON.stringify(id)}
    const get = async () => {
      const found = await mill.get(id)
      return { state: found?.state, attempt: found?.attempt, reason: found?.reason, exits: found?.attempts.map((a) => a.exit ?? null) }
    }
    const becomes = async (state) => {
      for (;;) {
        const found = await get()
        if (found.state === state) return found
        await new Promise((next) => setTimeout(next, 10))
      }
    }
    ${body}
    await mill.close(); say('over')`)

const ran = (child: Child): number => child.messages.filter((said) => said.what === 'ran').length

async function idOf(child: Child): Promise<string> {
  return (await child.receives('id'))['id'] as string
}

async function ignoreSignal(): Promise<{ first: Child; asked: Message; ended: Message }> {
  const first = worker(
    `say(p.n === 1 ? 'ran' : 'next')
     // Counted from the abort: on a busy machine the other process takes seconds to start and cancel.
     if (p.n === 1) await new Promise((go) => ctx.signal.addEventListener('abort', () => setTimeout(go, 35_000)))
     if (p.n === 1) say('came back')`,
    `${ENQUEUE}; await mill.enqueue(work, { n: 2 })`,
    `concurrency: 1,`,
    aside,
  )
  await first.receives('ran')
  const asking = `say('asked', { cancelled: await mill.cancel(id) }); say('ended', await becomes('cancelled'))`
  const second = other(asking, await idOf(first), aside)
  const asked = await second.receives('asked')
  const ended = await second.receives('ended', 60_000)
  expect(first.messages.some((said) => said.what === 'came back' || said.what === 'next')).toBe(false)
  return { first, asked, ended }
}

describe('a job that runs in one process and is cancelled from another', () => {
  test(
    'gets its signal aborted within a heartbeat, though the poll is a minute away',
    { timeout: 90_000 },
    async () => {
      const first = worker(
        `say('ran')
       await new Promise((_, no) => ctx.signal.addEventListener('abort', () => {
         say('told', { code: ctx.signal.reason.code })
         no(new Error('stopped half-way'))
       }))`,
        ENQUEUE,
      )
      await first.receives('ran')
      const second = other(
        `say('asked', { cancelled: await Promise.all([mill.cancel(id), mill.cancel(id)]) })
       const code = await mill.handle(id).result({ timeout: '20s' }).catch((error) => error.code)
       say('ended', { code, ...(await get()), again: await mill.cancel(id) })`,
        await idOf(first),
      )
      const asked = await second.receives('asked')
      expect(asked['cancelled']).toEqual([true, true])
      const told = await first.receives('told', 20_000)
      expect(told['code']).toBe('E_JOB_CANCELLED')
      expect(told.at - asked.at).toBeLessThan(20_000)
      expect(await second.receives('ended')).toMatchObject({
        code: 'E_JOB_CANCELLED',
        state: 'cancelled',
        attempt: 1,
        exits: ['cancelled'],
        again: false,
      })
      expect(ran(first)).toBe(1)
    },
  )

  test('does not run again when its worker is killed before its signal is aborted', { timeout: 90_000 }, async () => {
    // It blocks its loop: no signal reaches it, and its heartbeat continues until it is killed.
    const first = worker(
      `say('ran'); setTimeout(() => { for (;;); }, 50); await new Promise(() => {})`,
      ENQUEUE,
      `lease: '1s',`,
    )
    await first.receives('ran')
    const id = await idOf(first)
    const second = other(`say('asked', { cancelled: await mill.cancel(id) })`, id)
    expect((await second.receives('asked'))['cancelled']).toBe(true)
    await first.kill()
    const third = worker(`say('ran')`, '', `lease: '1s',`)
    const fourth = other(`say('ended', await becomes('cancelled'))`, id)
    expect(await fourth.receives('ended')).toMatchObject({
      reason: 'cancel() was called',
      attempt: 0,
      exits: ['crashed'],
    })
    third.process.kill('SIGTERM')
    await third.receives('closed')
    expect(ran(third)).toBe(0)
  })
})

describe('a queue that is paused from another process', () => {
  /** A stream of jobs fast enough that many are held in advance; each reports when it begins, by the machine's clock. */
  const stream = `
    const begun = []
    const work = job('work', async (p) => { begun.push([p.n, Date.now()]); await new Promise((next) => setImmediate(next)) })
    const mill = await millrace({ store: file, jobs: { work }, logger: false, concurrency: 5, lease: '15s' })`

  test(
    'begins nothing after the call has resolved, and continues when it is resumed',
    { timeout: 90_000 },
    async () => {
      const first = processes().run(`${stream}
      await mill.enqueueMany(work, Array.from({ length: 20_000 }, (_, n) => ({ n })))
      await mill.start()
      while (begun.length < 300) await new Promise((next) => setTimeout(next, 5))
      say('fast')
      process.on('SIGTERM', async () => { await mill.close(); say('begun', { begun }) })`)
      await first.receives('fast')
      const second = other(`
      const spans = []
      for (let round = 0; round < 5; round += 1) {
        await mill.queue('default').pause()
        const from = Date.now() + 1
        await new Promise((next) => setTimeout(next, 300))
        spans.push([from, Date.now()])
        await mill.queue('default').resume()
        await new Promise((next) => setTimeout(next, 300))
      }
      say('spans', { spans })`)
      const spans = (await second.receives('spans', 60_000))['spans'] as [number, number][]
      await second.receives('over')
      first.process.kill('SIGTERM')
      const begun = (await first.receives('begun'))['begun'] as [number, number][]
      const late = begun.filter(([, at]) => spans.some(([from, to]) => at > from && at < to))
      expect(late).toEqual([])
      expect(new Set(begun.map(([n]) => n)).size).toBe(begun.length)
    },
  )

  test('stays paused when the worker is restarted, and resumes at its time', { timeout: 90_000 }, async () => {
    const first = worker(`say('ran', { now: Date.now() })`, '')
    await first.receives('up')
    const second = other(`
      const until = new Date(Date.now() + 6_000)
      await mill.queue('default').pauseUntil(until)
      await mill.enqueue('work', { n: 1 })
      say('paused', { until: until.getTime() })`)
    const until = (await second.receives('paused'))['until'] as number
    await second.receives('over')
    await first.kill()
    const third = worker(`say('ran', { now: Date.now() })`, '')
    await third.receives('up')
    expect(Date.now()).toBeLessThan(until)
    const { now } = await third.receives('ran', 20_000)
    expect(ran(first)).toBe(0)
    expect(now).toBeGreaterThanOrEqual(until)
    expect((now as number) - until).toBeLessThan(2_000)
  })
})

test('a job that is paused from another process while it runs pauses instead of being retried', async () => {
  // It fails when the pause has resolved, however long the other process takes to call it.
  const answered = JSON.stringify(join(processes().folder, 'answered'))
  const first = worker(
    `say('ran')
     const { existsSync } = await import('node:fs')
     while (!existsSync(${answered})) await new Promise((go) => setTimeout(go, 20))
     throw new Error('no')`,
    ENQUEUE,
  )
  await first.receives('ran')
  const id = await idOf(first)
  const second = other(
    `const paused = await mill.pause(id)
     ;(await import('node:fs')).writeFileSync(${answered}, '')
     await becomes('paused')
     await new Promise((next) => setTimeout(next, 300))
     say('paused', { paused, ...(await get()) })`,
    id,
  )
  expect(await second.receives('paused')).toMatchObject({ paused: true, state: 'paused', attempt: 1 })
  expect(ran(first)).toBe(1)
})

// The last test, since its process was started first.
test(
  'a job that is cancelled from another process and ignores its signal is settled without it after its grace, and keeps its slot',
  { timeout: 120_000 },
  async () => {
    const { first, asked, ended } = await ignored
    expect(ended.at - asked.at).toBeGreaterThan(29_000)
    await first.receives('next', 30_000)
    expect(first.messages.map((said) => said.what).filter((what) => what !== 'id' && what !== 'up')).toEqual([
      'ran',
      'came back',
      'next',
    ])
  },
)
