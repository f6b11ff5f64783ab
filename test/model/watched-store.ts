import type { Hint, Store } from '../../src/store/store.js'
import type { Cancel } from '../../src/world/timers.js'

/** Counts the calls into stores that have no answer yet. Between two steps of a program there are none. */
export class CallsInFlight {
  #count = 0
  #waiting: (() => void)[] = []

  get isNone(): boolean {
    return this.#count === 0
  }

  none(): Promise<void> {
    return this.#count === 0 ? Promise.resolve() : new Promise((resolve) => this.#waiting.push(resolve))
  }

  watch<T>(answer: T): T {
    if (!(answer instanceof Promise)) return answer
    this.#count += 1
    const ended = (): void => {
      this.#count -= 1
      if (this.#count > 0) return
      for (const resolve of this.#waiting.splice(0)) resolve()
    }
    answer.then(ended, ended)
    return answer
  }
}

/** Small pages: a program has few jobs, and the edges of a page are where a page goes wrong. */
const PAGES = new Map([
  // What expires at once is one page: no order is promised between a group that completes and jobs of the next page.
  ['promoteJobs', 20],
  ['pruneJobs', 2],
  ['sweepRows', 2],
  // One at a time: a page is fired at once, and then no order is promised.
  ['dueSchedules', 1],
])

export interface StoreWatch {
  readonly onHint: (callback: (hint: Hint) => void) => Cancel
  /** A claim is written; a throw is what the worker gets instead of its answer. */
  readonly claimed: () => void
  /** The worker begins to drive these workflows. */
  readonly driven: (ids: readonly string[]) => void
}

/** The store of one mill: its calls are counted, its pages are small, and its hints go through the fleet. It is not closed. */
export function watchedStore(store: Store, calls: CallsInFlight, around: StoreWatch): Store {
  const { jobs, leases } = store
  const answered = <Claimed>(claim: Promise<Claimed>): Promise<Claimed> =>
    calls.watch(
      claim.then((claimed) => {
        around.claimed()
        return claimed
      }),
    )
  const claims: [string, unknown][] = [
    ['claimJobs', (request: Parameters<typeof leases.claimJobs>[0]) => answered(leases.claimJobs(request))],
    [
      'readLogs',
      (claims: Parameters<typeof leases.readLogs>[0]) => {
        around.driven(claims.flatMap(({ id }) => id ?? []))
        return calls.watch(leases.readLogs(claims))
      },
    ],
    ['claimLimited', (request: Parameters<typeof leases.claimLimited>[0]) => answered(leases.claimLimited(request))],
  ]
  const role = <Role extends object>(of: Role, own: readonly (readonly [string, unknown])[] = []): Role => {
    const known = new Map<PropertyKey, unknown>(own)
    return new Proxy(of, {
      get: (target, name) => {
        if (!known.has(name)) known.set(name, watched(target, name, calls))
        return known.get(name)
      },
    })
  }
  return {
    jobs: role(jobs),
    leases: role(leases, claims),
    queues: role(store.queues),
    groups: role(store.groups),
    schedules: role(store.schedules),
    sequences: role(store.sequences),
    workflows: role(store.workflows),
    observing: role(store.observing),
    changeLog: store.changeLog,
    transactions: store.transactions,
    changes: { onHint: around.onHint },
    // No wait in virtual time: its workers hold nothing in advance.
    info: { ...store.info, heldUnconfirmedMs: 0 },
    readCensus: () => store.readCensus(),
    close: () => Promise.resolve(),
  }
}

function watched(target: object, name: PropertyKey, calls: CallsInFlight): unknown {
  const value: unknown = Reflect.get(target, name, target)
  if (typeof value !== 'function') return value
  const verb = value as (...args: unknown[]) => unknown
  const page = PAGES.get(String(name))
  if (page !== undefined) return () => calls.watch(verb.call(target, page))
  return (...args: unknown[]) => calls.watch(verb.apply(target, args))
}
