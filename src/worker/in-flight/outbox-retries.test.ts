import { expect, test } from 'vitest'
import { StoreError } from '../../errors.js'
import type { LeaseStore, SettledJob } from '../../store/store.js'
import type { World } from '../../world/world.js'
import type { Running } from '../attempt/running.js'
import { Outbox } from './outbox.js'
import type { SettledRun } from './outbox.js'

/** An outbox whose store answers when the test says so, and whose timers fire when it says so. */
function setUp() {
  const armed = new Map<() => void, number>()
  const timers = {
    after: (ms: number, run: () => void) => (armed.set(run, ms), () => void armed.delete(run)),
    soon: (run: () => void) => run(),
  }
  const calls: { refs: number[]; closing: readonly number[] }[] = []
  const log: string[] = []
  let answer: (refs: number[]) => { refused?: number[]; changed?: SettledJob[] } = () => ({})
  let gate: Promise<void> | undefined
  const store = {
    settleJobs: async (settled: readonly SettledRun[], closing: readonly number[]) => {
      const refs = settled.map(({ ref }) => ref)
      calls.push({ refs, closing })
      await gate
      return { refused: [], changed: [], ...answer(refs) }
    },
  } as unknown as LeaseStore
  const box = new Outbox(store, { timers } as unknown as World, {
    written: (settled, refused) =>
      log.push(
        `written ${settled.map(({ ref, to }) => `${ref}${to === 'done' ? '' : to}`).join()}/${[...refused].join()}`,
      ),
    failed: (error, job) => log.push(`failed ${(error as Error).message}${job === undefined ? '' : ` of ${job.ref}`}`),
  })
  return {
    box,
    calls,
    log,
    armed: () => [...armed.values()],
    fire: (): Promise<void> => {
      const due = [...armed.keys()]
      for (const run of due) if (armed.delete(run)) run()
      return turns()
    },
    answers: (other: typeof answer) => void (answer = other),
    /** Holds the answers back until the returned function is called. */
    hold: (): (() => Promise<void>) => {
      let open: () => void = () => undefined
      gate = new Promise((resolve) => (open = resolve))
      return () => {
        gate = undefined
        open()
        return turns()
      }
    },
  }
}

async function turns(): Promise<void> {
  for (let left = 10; left > 0; left -= 1) await new Promise((next) => setImmediate(next))
}

const job = (ref: number, fence = 1, running?: object): SettledRun =>
  ({ ref, fence, to: 'done', running: running as Running | undefined }) as SettledRun

const down = (): never => {
  throw new StoreError('E_STORE_BUSY', 'busy')
}
const broken = (): never => {
  throw new StoreError('E_STORE', 'broken')
}

test('a lease is closed with the last settlement of its claim, and no other is', async () => {
  const { box, calls } = setUp()
  box.opened(1, 3)
  box.opened(2, 1)
  box.opened(3, 0)
  box.put(job(1, 1))
  box.put(job(9, 7)) // Of a claim that was not registered.
  box.put(job(8, 3))
  await box.flush()
  box.drop(1)
  await box.flush()
  box.put(job(2, 1))
  box.drop(2)
  await box.flush()
  await box.flush()
  expect(calls).toEqual([
    { refs: [1, 9, 8], closing: [] },
    { refs: [2], closing: [1, 2] },
  ])
  expect(box.isEmpty).toBe(true)
})

test('one write is under way at a time, and what comes meanwhile is in the next', async () => {
  const { box, calls, hold } = setUp()
  const open = hold()
  box.put(job(1))
  const first = box.flush()
  box.put(job(2))
  expect(box.flush()).toBe(first)
  expect([calls.length, box.isEmpty]).toEqual([1, false])
  await open()
  await first
  expect([calls.length, box.isEmpty]).toEqual([1, false])
  await box.flush()
  expect([calls.map(({ refs }) => refs), box.isEmpty]).toEqual([[[1], [2]], true])
})

test('while a store is down nothing is lost: the wait doubles up to two seconds, and is short again after a success', async () => {
  const { box, calls, armed, fire, answers, log } = setUp()
  const running = { isEndUnanswered: false }
  answers(down)
  box.opened(1, 2)
  box.put(job(1, 1, running))
  await box.flush()
  expect([running.isEndUnanswered, log]).toEqual([true, ['failed busy', 'written /']])
  box.put(job(2))
  await box.flush()
  expect(calls.length).toBe(1)
  const waits: number[][] = []
  for (let times = 8; times > 0; times -= 1) {
    waits.push(armed())
    await fire()
  }
  expect(waits.flat()).toEqual([50, 100, 200, 400, 800, 1_600, 2_000, 2_000])
  answers(() => ({}))
  await fire()
  expect(calls.at(-1)).toEqual({ refs: [1, 2], closing: [1] })
  expect([box.isEmpty, log.at(-1), armed()]).toEqual([true, 'written 1,2/', []])
  answers(down)
  box.put(job(3))
  await box.flush()
  expect(armed()).toEqual([50])
})

test('what was refused or changed is reported as the store wrote it', async () => {
  const { box, answers, log } = setUp()
  answers(() => ({ refused: [1], changed: [{ ref: 3, to: 'cancelled' } as SettledJob] }))
  for (const ref of [1, 2, 3]) box.put(job(ref))
  await box.flush()
  expect(log).toEqual(['written 1,2,3cancelled/1'])
})

test('a settlement that fails alone is tried apart every two seconds, and its lease stays until it is written', async () => {
  const { box, calls, armed, fire, answers, log } = setUp()
  box.opened(1, 2)
  box.opened(2, 1)
  answers((refs) => (refs.includes(2) ? broken() : {}))
  box.put(job(1, 1))
  box.put(job(2, 1))
  box.put(job(3, 2))
  await box.flush()
  expect(calls.map(({ refs }) => refs)).toEqual([[1, 2, 3], [1], [2], [3]])
  expect(log).toEqual(['failed broken', 'written 1/', 'failed broken of 2', 'written 3/', 'written /'])
  expect([armed(), box.isEmpty]).toEqual([[2_000], false])
  await box.flush()
  expect(calls.at(-1)).toEqual({ refs: [], closing: [2] })
  await fire()
  expect([calls.at(-1)?.refs, armed()]).toEqual([[2], [2_000]])
  answers(() => ({}))
  await fire()
  expect(calls.slice(-2)).toEqual([
    { refs: [2], closing: [] },
    { refs: [], closing: [1] },
  ])
  expect([box.isEmpty, armed(), log.filter((line) => line === 'written 2/').length]).toEqual([true, [], 1])
})

test('an abandoned outbox writes nothing more of what it had', async () => {
  const { box, calls, fire, answers } = setUp()
  answers((refs) => (refs.includes(1) ? broken() : {}))
  box.opened(1, 2)
  box.opened(2, 1)
  box.put(job(1))
  await box.flush()
  box.put(job(2))
  box.drop(2)
  box.abandon()
  expect(box.isEmpty).toBe(true)
  const before = calls.length
  await fire()
  await box.flush()
  box.put(job(3, 1))
  await box.flush()
  expect(calls.slice(before)).toEqual([{ refs: [3], closing: [] }])
})

test('of several that fail alone each is tried, and the lease of each stays', async () => {
  const { box, calls, fire, answers } = setUp()
  const failing = new Set([1, 2])
  answers((refs) => (refs.some((ref) => failing.has(ref)) ? broken() : {}))
  box.opened(1, 1)
  box.opened(2, 1)
  box.put(job(1, 1))
  box.put(job(2, 2))
  await box.flush()
  await box.flush()
  expect(calls.flatMap(({ closing }) => closing).length).toBe(2)
  failing.clear()
  calls.length = 0
  await fire()
  expect(calls).toEqual([
    { refs: [1], closing: [] },
    { refs: [2], closing: [] },
    { refs: [], closing: [1, 2] },
  ])
})

test('an error that is not of the store concerns one job, as a lock conflict does', async () => {
  for (const error of [new TypeError('odd'), new StoreError('E_STORE_LOCKED', 'locked')]) {
    const { box, calls, answers, armed } = setUp()
    answers(() => {
      throw error
    })
    box.put(job(1))
    await box.flush()
    expect([calls.map(({ refs }) => refs), armed()]).toEqual([[[1], [1]], [2_000]])
  }
})

test('a drain writes until nothing is left, and ends when its caller gives up', async () => {
  const { box, calls, answers, fire, armed } = setUp()
  answers(down)
  box.put(job(1))
  let isOver = false
  let isDrained = false
  void box.drain(() => isOver).then(() => (isDrained = true))
  await turns()
  expect([calls.length, isDrained, armed().toSorted((one, other) => one - other)]).toEqual([1, false, [5, 50]])
  answers(() => ({}))
  await fire()
  await fire()
  expect([isDrained, box.isEmpty]).toEqual([true, true])
  answers(down)
  box.put(job(2))
  isDrained = false
  void box.drain(() => isOver).then(() => (isDrained = true))
  await turns()
  isOver = true
  await fire()
  expect([isDrained, box.isEmpty]).toEqual([true, false])
})
