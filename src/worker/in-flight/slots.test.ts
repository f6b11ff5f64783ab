import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { ClaimedJob } from '../../store/store.js'
import type { World } from '../../world/world.js'
import type { Running } from '../attempt/running.js'
import { Slots } from './slots.js'

let refs = 0
function claimed(queue: string): ClaimedJob {
  refs += 1
  return {
    ref: refs,
    fence: 1,
    id: `id-${refs}`,
    name: 'mail',
    queue,
    key: null,
    group: null,
    payload: '1',
    options: null,
    dueAt: 0,
    expiresAt: null,
    attempt: 0,
    retries: 0,
    crashes: 0,
    streak: 0,
    log: null,
  }
}

/** Slots read nothing of an attempt but its job. */
const running = (job: ClaimedJob): Running => ({ claimed: job }) as unknown as Running

describe('slots', () => {
  test('are idle when nothing is in hand', () => {
    const slots = new Slots()
    expect(slots.isIdle).toBe(true)
    expect(slots.nextHeld()).toBeUndefined()
    expect(slots.takeHeld()).toEqual([])
    expect(slots.inQueue('mail')).toBe(0)
  })

  test('give held jobs in the order they came', () => {
    const slots = new Slots()
    const jobs = ['a', 'b', 'a'].map(claimed)
    for (const job of jobs) slots.hold(job)
    expect([slots.nextHeld(), slots.nextHeld(), slots.nextHeld(), slots.nextHeld()]).toEqual([...jobs, undefined])
  })

  test('drop the held jobs of an old claim when the same jobs are claimed again', () => {
    const slots = new Slots()
    const [first, again, last] = [claimed('a'), claimed('a'), claimed('b')]
    for (const job of [first, again, last]) slots.hold(job)
    const reclaimed = { ...again, fence: 2 }
    expect(slots.removeByRef([reclaimed, claimed('a')])).toEqual([again])
    slots.hold(reclaimed)
    expect(slots.held()).toEqual([first, last, reclaimed])
    expect(slots.inQueue('a')).toBe(2)
    expect(new Slots().removeByRef([reclaimed])).toEqual([])
  })

  test('count a job once while it goes from held to running to ended', () => {
    const slots = new Slots()
    const job = claimed('mail')
    slots.hold(job)
    expect(slots.inQueue('mail')).toBe(1)
    slots.nextHeld()
    const attempt = running(job)
    slots.begin(attempt)
    expect(slots.inQueue('mail')).toBe(1)
    slots.end(attempt, 0)
    slots.end(attempt, 0)
    expect(slots.inQueue('mail')).toBe(0)
  })

  test('remove the given jobs, and return those that were still held', () => {
    const slots = new Slots()
    const [a, b, c] = [claimed('x'), claimed('x'), claimed('y')]
    for (const job of [a, b, c]) slots.hold(job)
    slots.nextHeld()
    expect(slots.remove([a, c])).toEqual([c])
    expect(slots.remove([a, c])).toEqual([])
    expect(slots.held()).toEqual([b])
    expect([slots.inQueue('x'), slots.inQueue('y')]).toEqual([1, 0])
  })
})

describe('the slots of a worker', () => {
  test('leave no room in a queue that has as many jobs as its bound, or more since that was lowered', () => {
    const slots = new Slots()
    for (const queue of ['a', 'a', 'a', 'b']) slots.hold(claimed(queue))
    slots.begin(running(claimed('b')))
    const bounds = new Map(Object.entries({ a: 2, b: 2, c: 2, d: 0 }))
    expect([...slots.rooms(bounds)]).toEqual([
      ['a', 0],
      ['b', 0],
      ['c', 2],
      ['d', 0],
    ])
  })

  test('are full since an attempt last began or ended', () => {
    const slots = new Slots()
    const attempt = Object.assign(running(claimed('a')), { begunAt: 100 })
    expect(slots.fullForMs(1, 500)).toBe(0)
    slots.begin(attempt)
    expect([slots.fullForMs(1, 500), slots.fullForMs(2, 500)]).toEqual([400, 0])
    const other = Object.assign(running(claimed('a')), { begunAt: 200 })
    slots.begin(other)
    slots.end(other, 450)
    expect([slots.fullForMs(1, 500), slots.isIdle]).toEqual([50, false])
    slots.end(attempt, 480)
    expect([slots.fullForMs(1, 500), slots.isIdle]).toEqual([0, true])
    slots.hold(claimed('a'))
    expect([slots.isIdle, slots.takeHeld().length, slots.isIdle]).toEqual([false, 1, true])
  })

  test('are waited for until they are empty, or until the time is over', async () => {
    let now = 0
    const waits: number[] = []
    const world = {
      clock: { monotonic: () => now },
      timers: {
        after: (ms: number, next: () => void) => (waits.push(ms), (now += ms), setImmediate(next), () => undefined),
      },
    } as unknown as World
    const slots = new Slots()
    await slots.untilIdle(world, 100)
    expect(waits).toEqual([])
    const attempt = running(claimed('a'))
    slots.begin(attempt)
    await slots.untilIdle(world, 24.5)
    expect(waits).toEqual([10, 10, 4.5])
    await slots.untilIdle(world, 0)
    expect(waits.length).toBe(3)
    const idle = slots.untilIdle(world, 1_000)
    slots.end(attempt, now)
    await idle
    expect(waits.length).toBe(4)
  })
})

type Step =
  | { readonly do: 'hold'; readonly queue: string }
  | { readonly do: 'next' | 'takeHeld' }
  | { readonly do: 'end' | 'letGo'; readonly pick: number }

const anyStep: fc.Arbitrary<Step> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ do: fc.constant('hold' as const), queue: fc.constantFrom('a', 'b', 'c') }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('next' as const) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('end' as const), pick: fc.nat(20) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('letGo' as const), pick: fc.nat(3) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('takeHeld' as const) }) },
)

/** The same by plain lists, counted again at each call. */
class Naive {
  held: ClaimedJob[] = []
  running: Running[] = []
  inQueue(queue: string): number {
    const jobs = [...this.held, ...this.running.map((r) => r.claimed)]
    return jobs.filter((job) => job.queue === queue).length
  }
}

const byRef = (one: Running, other: Running): number => one.claimed.ref - other.claimed.ref

test('slots do what plain lists would, whatever is done in whatever order', () => {
  fc.assert(
    fc.property(fc.array(anyStep, { maxLength: 200 }), (steps) => {
      const slots = new Slots()
      const naive = new Naive()
      for (const step of steps) apply(step, slots, naive)
    }),
  )
})

function apply(step: Step, slots: Slots, naive: Naive): void {
  switch (step.do) {
    case 'hold': {
      const job = claimed(step.queue)
      slots.hold(job)
      naive.held.push(job)
      break
    }
    case 'next': {
      const job = naive.held.shift()
      expect(slots.nextHeld()).toBe(job)
      if (job === undefined) break
      const attempt = running(job)
      slots.begin(attempt)
      naive.running.push(attempt)
      break
    }
    case 'end': {
      const attempt = naive.running[step.pick]
      if (attempt === undefined) break
      slots.end(attempt, 0)
      naive.running = naive.running.filter((each) => each !== attempt)
      break
    }
    case 'letGo': {
      const named = naive.held.filter((job) => job.ref % 4 === step.pick)
      const notHeld = naive.running.map((attempt) => attempt.claimed)
      expect(slots.remove([...named, ...notHeld])).toEqual(named)
      naive.held = naive.held.filter((job) => !named.includes(job))
      break
    }
    case 'takeHeld':
      expect(slots.takeHeld()).toEqual(naive.held)
      naive.held = []
      break
    default:
      step satisfies never
  }
  expect(slots.held()).toEqual(naive.held)
  expect(slots.heldCount).toBe(naive.held.length)
  // `running` has no order: an end moves the last one into the free place.
  expect([...slots.running].toSorted(byRef)).toEqual(naive.running.toSorted(byRef))
  expect(slots.isIdle).toBe(naive.held.length + naive.running.length === 0)
  for (const queue of ['a', 'b', 'c']) expect(slots.inQueue(queue)).toBe(naive.inQueue(queue))
}
