import { expect, test } from 'vitest'
import { quarantineMs } from '../../job/rules/quarantine.js'
import type { Claimed, ClaimedJob } from '../../store/store.js'
import { Quarantine } from './quarantine.js'
import type { QuarantineParts } from './quarantine.js'

/** A quarantine of ten seconds whose clock, timers and store the test moves. */
function setUp() {
  let now = 1_000_000
  let isDown = false
  const armed = new Map<() => void, number>()
  const ended: [string, number][] = []
  const failed: string[] = []
  let wakes = 0
  const after = (ms: number, run: () => void): (() => void) => {
    armed.set(run, now + ms)
    return () => void armed.delete(run)
  }
  const endQuarantine = async (worker: string, fence: number): Promise<void> => {
    if (isDown) throw new Error('away')
    ended.push([worker, fence])
  }
  const parts = {
    world: { clock: { monotonic: () => now }, timers: { after } },
    store: { leases: { endQuarantine } },
    quarantineMs: 10_000,
    events: { storeFailed: (what: string) => failed.push(what) },
  } as unknown as QuarantineParts
  const quarantine = new Quarantine(parts, () => (wakes += 1))
  return {
    quarantine,
    ended,
    failed,
    wakes: () => wakes,
    armed: () => [...armed.values()].map((at) => at - now),
    down: (is: boolean) => (isDown = is),
    pass: async (ms: number): Promise<void> => {
      now += ms
      for (const [run, at] of armed) if (at <= now && armed.delete(run)) run()
      for (let turns = 5; turns > 0; turns -= 1) await new Promise((next) => setImmediate(next))
    },
    claim: (fence: number, streaks: readonly number[], suspectStreak: number | null = null): void => {
      const jobs = streaks.map((streak, at) => ({ ref: fence * 10 + at, fence, streak }) as ClaimedJob)
      const claimed = { suspectStreak, isQuarantine: streaks.length > 0, jobs } as unknown as Claimed
      quarantine.observeClaim('plain', claimed, fence, 'w')
    },
  }
}

test('suspects that run end their quarantine when all of them have ended', () => {
  const { quarantine, claim, wakes, armed } = setUp()
  expect([quarantine.isOn, quarantine.isAwaited, quarantine.isDraining]).toEqual([false, false, false])
  claim(1, [1, 1])
  expect([quarantine.isOn, armed()]).toEqual([true, [10_000]])
  quarantine.remove({ fence: 2, ref: 10 })
  quarantine.remove({ fence: 1, ref: 10 })
  expect([quarantine.isOn, wakes()]).toEqual([true, 0])
  quarantine.remove({ fence: 1, ref: 11 })
  expect([quarantine.isOn, wakes(), armed()]).toEqual([false, 1, []])
  quarantine.remove({ fence: 1, ref: 11 })
  quarantine.dropClaims()
  expect(wakes()).toBe(1)
})

test('suspects that outlive their time are written as such, and then other jobs may begin', async () => {
  const { quarantine, claim, ended, pass, armed, wakes } = setUp()
  claim(1, [1, 3, 2])
  const longestMs = quarantineMs(3, 10_000)
  expect(longestMs).toBeGreaterThan(10_000)
  expect(armed()).toEqual([longestMs])
  await pass(longestMs - 1)
  expect([ended, quarantine.isOn]).toEqual([[], true])
  await pass(1)
  expect([ended, quarantine.isOn, wakes()]).toEqual([[['w', 1]], false, 1])
})

test('while that cannot be written the quarantine goes on, and it is tried twice a second', async () => {
  const { quarantine, claim, ended, failed, pass, down, armed } = setUp()
  down(true)
  claim(1, [1])
  await pass(10_000)
  expect([quarantine.isOn, failed, armed()]).toEqual([true, ['end a quarantine'], [500]])
  await pass(500)
  expect(failed.length).toBe(2)
  down(false)
  await pass(500)
  expect([quarantine.isOn, ended]).toEqual([false, [['w', 1]]])
  down(true)
  claim(2, [1])
  const late = pass(10_000)
  quarantine.dropClaims()
  await late
  expect([quarantine.isOn, failed.length, armed()]).toEqual([false, 3, []])
})

test('suspects that wait are awaited until a claim of the same kind sees none', () => {
  const { quarantine, claim } = setUp()
  claim(1, [], 3)
  expect(quarantine.isAwaited).toBe(true)
  quarantine.observeClaim('limited', { suspectStreak: 1, isQuarantine: false, jobs: [] } as unknown as Claimed, 2, 'w')
  claim(3, [], null)
  expect(quarantine.isAwaited).toBe(true)
  quarantine.observeClaim(
    'limited',
    { suspectStreak: null, isQuarantine: false, jobs: [] } as unknown as Claimed,
    4,
    'w',
  )
  expect(quarantine.isAwaited).toBe(false)
})

test('a turn that ends with time wakes the worker then, and a quarantine keeps its own timer until a stop', async () => {
  const { quarantine, claim, armed, pass, wakes } = setUp()
  claim(1, [], 1)
  const { leftMs } = quarantine.takeTurn()
  expect(armed()).toEqual(leftMs === null ? [] : [leftMs])
  await pass(leftMs ?? 0)
  expect(wakes()).toBe(leftMs === null ? 0 : 1)
  claim(2, [1])
  quarantine.takeTurn()
  expect(armed()).toEqual([10_000])
  quarantine.stop()
  expect(armed()).toEqual([])
})
