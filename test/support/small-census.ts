import type { CensusJob } from '../../src/store/census.js'
import { Checker } from '../../src/testing/checkers/checks.js'
import type { Facts, SimulatedCensus } from '../../src/testing/checkers/checks.js'

/** Small censuses by hand: what each checker accepts, and that it can fail. */
export const waiting: CensusJob = {
  seq: 1,
  id: 'a',
  name: 'work',
  queue: 'default',
  key: null,
  group: null,
  follows: null,
  slot: null,
  while: null,
  createdAt: 1_000,
  tableCount: 1,
  state: 'ready',
  fence: null,
  dueAt: 1_000,
  attempt: 0,
  retries: 0,
  crashes: 0,
  streak: 0,
  reason: null,
  worker: null,
  lastLogWorker: null,
  tick: null,
  calledBy: null,
  logEntries: 0,
  keepUntil: null,
  after: [],
  payloadParents: [],
  policy: null,
  n: null,
}
export const running: CensusJob = { ...waiting, state: 'running', fence: 7 }
const LEASE = { fence: 7, worker: 'w', quarantined: 0, jobs: [1, 2] }

export function census(jobs: readonly CensusJob[], more: Partial<SimulatedCensus> = {}): SimulatedCensus {
  const workers = [{ worker: 'w', beat: 1 }]
  return {
    jobs,
    keys: [],
    slots: [],
    workers,
    leases: [LEASE],
    requests: [],
    pauses: [],
    outages: [],
    groups: [],
    counts: [],
    attempts: [],
    works: [],
    ticks: [],
    schedules: [],
    links: [],
    todos: [],
    sequences: [],
    workflows: [],
    long: { steps: 0, workflows: 0, lists: 0, items: 0, inbox: 0, leftovers: 0 },
    strays: 0,
    ...more,
  }
}

export function facts(more: Partial<Facts> = {}): Facts {
  return {
    acknowledged: new Set(),
    deletable: new Set(),
    revivals: new Map(),
    cancelled: new Set(),
    undone: new Set(),
    crashBudget: 3,
    workers: {
      lastBeats: new Map(),
      leaving: new Set(),
      stopped: new Set(),
      processes: new Map(),
      heldUntil: -Infinity,
    },
    now: 2_000,
    databaseNow: 2_000,
    soonest: 2_000,
    leaseMs: 1_500,
    banking: new Set(['bank']),
    uniques: new Map([
      ['once', { forMs: 500, reschedules: false }],
      ['latest', { forMs: 500, reschedules: true }],
    ]),
    lateLinks: new Map(),
    count: () => undefined,
    left: () => undefined,
    ...more,
  }
}

/** Checks one census after the other; returns a function that makes the last check. */
export function checking(...seen: readonly SimulatedCensus[]): () => void {
  const checker = new Checker()
  for (const each of seen.slice(0, -1)) checker.check(each, facts({ cancelled: new Set(['a']) }))
  return () => checker.check(seen.at(-1) as SimulatedCensus, facts({ cancelled: new Set(['a']) }))
}
