import { expect, test } from 'vitest'
import type { AppendedStep } from '../../store/sequences.js'
import { ItemLog } from './sequence-items.js'

/** A log whose store takes `tookMs` for each answer. */
function logging(tookMs: readonly number[], { fails = 0, held = true } = {}) {
  let now = 0
  const took = [...tookMs]
  const waits: number[] = []
  const reads: object[] = []
  const failed: string[] = []
  let left = fails
  const pass = (): void => void (now += took.shift() ?? 0)
  const boundary = { held, requested: null, isQueuePaused: false }
  const leases = {
    appendStep: async () => {
      pass()
      if ((left -= 1) >= 0) throw new Error('away')
      return { ...boundary, isAnswered: true, items: ['"next"'] }
    },
    readBoundary: async (claim: object) => {
      pass()
      reads.push(claim)
      return { ...boundary, isQueuePaused: true }
    },
  }
  const world = {
    clock: { monotonic: () => now },
    timers: { after: (ms: number, next: () => void) => (waits.push(ms), setImmediate(next), () => undefined) },
  }
  const parts = {
    store: { leases, info: { heldUnconfirmedMs: 100 } },
    world,
    events: { storeFailed: (what: string) => failed.push(what) },
  }
  return { log: new ItemLog(parts as never), waits, reads, failed }
}

const step = { ref: 1, fence: 2, queue: 'mail' } as AppendedStep
const never = (): boolean => false

test('an answer that came in time is used as it is', async () => {
  const { log, reads } = logging([100])
  expect(await log.append(step, never)).toMatchObject({ isLate: false, isQueuePaused: false, items: ['"next"'] })
  expect(reads).toEqual([])
})

test('an answer that came late is read again, and the newer boundary counts', async () => {
  const { log, reads } = logging([101, 100])
  expect(await log.append(step, never)).toMatchObject({ isLate: false, isQueuePaused: true, isAnswered: true })
  expect(reads).toEqual([{ ref: 1, fence: 2, queue: 'mail' }])
})

test('after three late reads no item may begin', async () => {
  const { log, reads } = logging([101, 101, 101, 101, 101])
  expect(await log.append(step, never)).toMatchObject({ isLate: true })
  expect(reads.length).toBe(3)
})

test('a lost claim is not read again', async () => {
  const { log, reads } = logging([500], { held: false })
  expect(await log.append(step, never)).toMatchObject({ held: false, isLate: true })
  expect(reads).toEqual([])
})

test('a row is written until the store answers, with growing waits, unless it is not needed any more', async () => {
  const { log, waits, failed } = logging([], { fails: 8 })
  expect(await log.append(step, never)).toMatchObject({ isAnswered: true })
  expect(waits).toEqual([50, 100, 200, 400, 800, 1_600, 2_000, 2_000])
  expect(failed).toEqual(Array(8).fill('record an item'))
  const over = logging([], { fails: 8 })
  expect(await over.log.append(step, () => over.waits.length === 2)).toBeUndefined()
  expect(over.waits).toEqual([50, 100])
})
