import { expect, test } from 'vitest'
import type { Registry } from '../job/definition/registry.js'
import type { GuardedChange, Hint, NewJob, Promoted, Store } from '../store/store.js'
import { rest, VirtualTime } from '../testing/simulation/virtual-time.js'
import { systemWorld } from '../world/world.js'
import { promoteOnce, Promoter } from './promote.js'

const NOTHING: Promoted = {
  promoted: 0,
  followUps: [],
  again: false,
  expired: [],
  cancelledByParents: [],
  failedGroups: [],
  nextInMs: null,
}
const POLL_MS = 10_000

/** A promoter in virtual time; each poll gets the next of these answers, and then finds nothing. */
function promoting(...answers: readonly (Partial<Promoted> | Error)[]) {
  const time = new VirtualTime(0)
  const system = systemWorld()
  const seen = { polls: [] as number[], limits: [] as number[], failed: [] as string[], reported: [] as string[] }
  const changes: GuardedChange[] = []
  const listeners = new Set<(hint: Hint) => void>()
  let pollMs = POLL_MS
  const store = {
    changes: {
      onHint: (listener: (hint: Hint) => void) => {
        listeners.add(listener)
        return () => listeners.delete(listener)
      },
    },
    jobs: {
      promoteJobs: async (limit: number): Promise<Promoted> => {
        const answer = answers[seen.polls.length] ?? {}
        seen.polls.push(time.now)
        seen.limits.push(limit)
        if (answer instanceof Error) throw answer
        return { ...NOTHING, ...answer }
      },
      changeJob: async (change: GuardedChange) => {
        changes.push(change)
        return change.id === 'taken' ? 'stale' : 'changed'
      },
    },
  } as unknown as Store
  const parts = {
    world: {
      ...system,
      clock: { now: () => time.now, monotonic: () => time.now },
      timers: { ...system.timers, after: (ms: number, run: () => void) => time.at(time.now + ms, run) },
    },
    store,
    registry: { keepOf: () => ({ cancelled: 77 }) } as unknown as Registry,
    pollMs: () => pollMs,
    followedUp: (group: string, { id }: NewJob) => void seen.reported.push(`${id}: follows ${group}`),
    cancelled: ({ id }: { readonly id: string }, reason: string) => void seen.reported.push(`${id}: ${reason}`),
    storeFailed: (what: string) => void seen.failed.push(what),
  }
  const hint = (dueInMs: number | null): void => {
    for (const listener of listeners) listener({ ready: true, dueInMs, settled: true, requested: true })
  }
  return {
    time,
    seen,
    changes,
    hint,
    listeners,
    parts,
    promoter: new Promoter(parts),
    poll: (ms: number) => (pollMs = ms),
  }
}

const job = (id: string): Promoted['expired'][number] => ({ id, name: 'mail', queue: 'default', state: 'scheduled' })

/** When the poll after the first one was: it began at 0. */
async function secondPoll(first: Partial<Promoted> | Error): Promise<number | undefined> {
  const { time, seen, promoter } = promoting(first)
  promoter.start()
  await time.advanceTo(POLL_MS)
  await promoter.stop()
  return seen.polls[1]
}

test.each<[string, Partial<Promoted> | Error, number]>([
  ['one poll interval when nothing waits', {}, POLL_MS],
  ['one poll interval when the next job is due later', { nextInMs: POLL_MS + 1 }, POLL_MS],
  ['the time until the next job is due', { nextInMs: 1_234 }, 1_234],
  ['no time when some are left', { again: true }, 0],
  ['no time after a full batch of due jobs', { promoted: 1_000 }, 0],
  ['one poll interval after a batch that was not full', { promoted: 999 }, POLL_MS],
  ['no time after a full batch of expired jobs', { expired: Array.from({ length: 1_000 }, (_, i) => job(`${i}`)) }, 0],
  ['a moment when due jobs could not be moved', { nextInMs: 0 }, 50],
  ['no time when some were moved and others are due', { promoted: 1, nextInMs: 0 }, 0],
  ['no time when some were cancelled and others are due', { expired: [job('a')], nextInMs: 0 }, 0],
  ['no time when as many were moved as cancelled', { promoted: 1, expired: [job('a')], nextInMs: 0 }, 0],
  ['half a second after a failure of the store', new Error('no'), 500],
])('the next poll comes after %s', async (_, first, ms) => {
  expect(await secondPoll(first)).toBe(ms)
})

test('a failure of the store is reported, and a poll asks for a batch', async () => {
  const { time, seen, promoter } = promoting(new Error('no'))
  promoter.start()
  await time.advanceTo(500)
  await promoter.stop()
  expect(seen).toMatchObject({ failed: ['promote'], polls: [0, 500], limits: [1_000, 1_000] })
})

test('a hint of a due time wakes it then, another hint does not, and none does after its stop', async () => {
  const { time, seen, hint, listeners, promoter } = promoting()
  promoter.start()
  await time.advanceTo(1_000)
  hint(null)
  hint(300)
  await time.advanceTo(1_299)
  expect(seen.polls).toEqual([0])
  await time.advanceTo(1_300)
  expect(seen.polls).toEqual([0, 1_300])
  await promoter.stop()
  expect(listeners.size).toBe(0)
  await time.advanceTo(60_000)
  expect(seen.polls).toEqual([0, 1_300])
})

test('a shorter poll interval does not wait for the end of a longer one', async () => {
  const { time, seen, poll, promoter } = promoting()
  promoter.start()
  await time.advanceTo(1_000)
  poll(100)
  promoter.configured()
  await time.advanceTo(1_100)
  await promoter.stop()
  expect(seen.polls).toEqual([0, 1_100])
})

test('expired jobs are cancelled with their keep time, and reported unless another process had moved them', async () => {
  const { parts, seen, changes } = promoting({
    expired: [job('a'), job('taken')],
    followUps: [{ group: 'f', job: job('next') as unknown as NewJob }],
    cancelledByParents: [{ ...job('child'), reason: 'its parent failed' }],
    failedGroups: [{ group: 'g', error: new Error('no') }],
  })
  await promoteOnce(parts)
  await rest()
  const change = { from: 'scheduled', to: 'cancelled', reason: 'it expired before it began', keepMs: 77 }
  expect(changes).toEqual([
    { id: 'a', ...change },
    { id: 'taken', ...change },
  ])
  expect(seen.reported).toEqual(['next: follows f', 'child: its parent failed', 'a: it expired before it began'])
  expect(seen.failed).toEqual(['enqueue what follows group "g"'])
})
