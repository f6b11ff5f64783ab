import { expect, test } from 'vitest'
import { StoreError } from '../../errors.js'
import type { LeaseStore } from '../../store/store.js'
import { systemWorld } from '../../world/world.js'
import { Outbox } from './outbox.js'
import type { SettledRun } from './outbox.js'

const job = (ref: number, fence = 1): SettledRun => ({ ref, fence, name: 'mail', id: `job-${ref}` }) as SettledRun

/** A store that refuses what `wrong` says, and notes what it wrote. */
function outbox(wrong: (refs: readonly number[]) => unknown): {
  outbox: Outbox
  written: number[]
  closed: number[]
  failed: (string | undefined)[]
} {
  const [written, closed, failed]: [number[], number[], (string | undefined)[]] = [[], [], []]
  const store = {
    settleJobs: async (settled: readonly SettledRun[], closing: readonly number[]) => {
      const error = wrong(settled.map((each) => each.ref))
      if (error !== undefined) throw error
      written.push(...settled.map((each) => each.ref))
      closed.push(...closing)
      return { refused: [], changed: [] }
    },
  } as unknown as LeaseStore
  const events = { written: () => undefined, failed: (_: unknown, of?: SettledRun) => void failed.push(of?.id) }
  return { outbox: new Outbox(store, systemWorld(), events), written, closed, failed }
}

test('one end that cannot be written costs only itself, and keeps its lease open', async () => {
  const poison = (refs: readonly number[]): unknown => (refs.includes(2) ? new StoreError('E_STORE', 'no') : undefined)
  const { outbox: box, written, closed, failed } = outbox(poison)
  box.opened(1, 3)
  for (const ref of [1, 2, 3]) box.put(job(ref))
  await box.flush()
  expect(written).toEqual([1, 3])
  expect(failed).toEqual([undefined, 'job-2'])
  box.opened(2, 1)
  box.put(job(4, 2))
  await box.flush()
  expect(written).toEqual([1, 3, 4])
  expect(closed).toEqual([2])
  expect(box.isEmpty).toBe(false)
})

test('an end that was set apart is written when it can be, and its lease closed', async () => {
  let sick = true
  const {
    outbox: box,
    written,
    closed,
  } = outbox((refs) => (sick && refs.includes(2) ? new StoreError('E_STORE', 'no') : undefined))
  box.opened(1, 2)
  for (const ref of [1, 2]) box.put(job(ref))
  await box.flush()
  sick = false
  await box.drain(() => false)
  expect(written).toEqual([1, 2])
  expect(closed).toEqual([1])
  expect(box.isEmpty).toBe(true)
})

test('a lease stays while an end that was set apart is being written, whatever is flushed meanwhile', async () => {
  const locked = new StoreError('E_STORE_LOCKED', 'locked')
  const waiting: ((error: unknown) => void)[] = []
  const closed: number[] = []
  const store = {
    settleJobs: async (settled: readonly SettledRun[], closing: readonly number[]) => {
      if (settled.length > 1) throw locked
      // The one that is locked is waited for, and then the server goes away.
      if (settled[0]?.ref === 2) await new Promise((_, fail) => waiting.push(fail))
      closed.push(...closing)
      return { refused: [], changed: [] }
    },
  } as unknown as LeaseStore
  const box = new Outbox(store, systemWorld(), { written: () => undefined, failed: () => undefined })
  const fails = async (error: unknown): Promise<void> => {
    await expect.poll(() => waiting.length).toBe(1)
    waiting.pop()?.(error)
  }
  box.opened(1, 2)
  for (const ref of [1, 2]) box.put(job(ref))
  const first = box.flush()
  await fails(locked)
  await first
  const draining = box.drain(() => false)
  await expect.poll(() => waiting.length).toBe(1)
  box.opened(2, 1)
  box.put(job(4, 2))
  await box.flush()
  expect(closed).toEqual([2])
  await fails(new StoreError('E_STORE_UNREACHABLE', 'gone'))
  await draining
  expect(closed).toEqual([2])
  expect(box.isEmpty).toBe(false)
})

test('a store that is down has nothing written singly', async () => {
  let calls = 0
  const { outbox: box, written } = outbox(() => {
    calls += 1
    return calls === 1 ? new StoreError('E_STORE_BUSY', 'locked') : undefined
  })
  box.opened(1, 3)
  for (const ref of [1, 2, 3]) box.put(job(ref))
  await box.drain(() => false)
  expect(calls).toBe(2)
  expect(written).toEqual([1, 2, 3])
})

test('a settlement that waits for a lock of another transaction does not delay the others', async () => {
  let isLocked = true
  const locked = new StoreError('E_STORE_LOCKED', 'locked')
  const { outbox: box, written } = outbox((refs) => (isLocked && refs.includes(2) ? locked : undefined))
  box.opened(1, 3)
  for (const ref of [1, 2, 3]) box.put(job(ref))
  await box.flush()
  expect(written).toEqual([1, 3])
  isLocked = false
  await box.drain(() => false)
  expect(written).toEqual([1, 3, 2])
})

test('a drain leaves what cannot be written to the lease', async () => {
  const { outbox: box, written } = outbox((refs) => (refs.includes(2) ? new StoreError('E_STORE', 'no') : undefined))
  box.opened(1, 2)
  for (const ref of [1, 2]) box.put(job(ref))
  await box.drain(() => false)
  expect(written).toEqual([1])
})
