import { expect, test } from 'vitest'
import { StoreError } from '../../../errors.js'
import { seeded } from '../../../testing/simulation/random.js'
import { VirtualTime } from '../../../testing/simulation/virtual-time.js'
import { systemWorld } from '../../../world/world.js'
import type { World } from '../../../world/world.js'
import { LOCK_PATIENCE_MS, whileLocked } from './while-locked.js'

/** The lock timeout of a statement, and how long a transaction takes when no other is in its way. */
const LOCK_MS = 250
const WORK_MS = 10

function worldOf(time: VirtualTime, seed: number): World {
  const random = seeded(seed)
  return {
    ...systemWorld(),
    clock: { ...systemWorld().clock, monotonic: () => time.now },
    random: () => random.next(),
    timers: {
      after: (ms, run) => time.at(time.now + ms, run),
      soon: (run) => void time.at(time.now, run),
    },
  }
}

/**
 * Two transactions that each hold what the other needs, on a server that is busy: the locks of the one that gives up are released
 * only after the other has given up too.
 */
function inEachOthersWay(time: VirtualTime) {
  const begun: number[] = []
  const work = async (): Promise<number> => {
    const from = time.now
    begun.push(from)
    const wait = (ms: number): Promise<void> => new Promise((next) => time.at(time.now + ms, next))
    await wait(WORK_MS)
    const isInTheWay = begun.filter((other) => Math.abs(other - from) <= WORK_MS).length > 1
    if (!isInTheWay) return time.now
    await wait(LOCK_MS)
    throw new StoreError('E_STORE_LOCKED', 'another transaction holds a lock')
  }
  return { begun, work }
}

test.each(Array.from({ length: 20 }, (_, seed) => seed))(
  'two transactions that wait for each other get through soon, with seed %i',
  async (seed) => {
    const time = new VirtualTime(0)
    const { work } = inEachOthersWay(time)
    const ends = [1, 2].map((one) => whileLocked(worldOf(time, 2 * seed + one), LOCK_PATIENCE_MS, work))
    await time.advanceTo(LOCK_PATIENCE_MS + LOCK_MS + WORK_MS)
    for (const end of await Promise.all(ends)) expect(end).toBeLessThan(LOCK_PATIENCE_MS / 2)
  },
)

test('a lock that is never released is reported after the patience', async () => {
  const time = new VirtualTime(0)
  const locked = new StoreError('E_STORE_LOCKED', 'another transaction holds a lock')
  let tries = 0
  const work = async (): Promise<never> => {
    tries += 1
    throw locked
  }
  const [patient, impatient] = [LOCK_PATIENCE_MS, 0].map((ms) =>
    whileLocked(worldOf(time, 1), ms, work).catch((error: unknown) => ({ error, at: time.now })),
  )
  expect(await impatient).toEqual({ error: locked, at: 0 })
  tries = 0
  await time.advanceTo(LOCK_PATIENCE_MS * 2)
  expect(await patient).toMatchObject({ error: locked })
  const { at } = (await patient) as { at: number }
  expect(at).toBeGreaterThanOrEqual(LOCK_PATIENCE_MS)
  expect(at).toBeLessThan(LOCK_PATIENCE_MS + 200)
  // Random waits of up to 160 ms: 80 on average.
  expect(tries).toBeGreaterThan(60)
})

test('another error is thrown at once', async () => {
  const time = new VirtualTime(0)
  const other = new StoreError('E_STORE', 'refused')
  const work = (): Promise<never> => Promise.reject(other)
  await expect(whileLocked(worldOf(time, 1), LOCK_PATIENCE_MS, work)).rejects.toBe(other)
})
