import type { SqliteDatabase } from '../../src/store/sqlite/connection/driver.js'
import type { NewJob, Store } from '../../src/store/store.js'
import type { WorkerInfo } from '../../src/store/workers.js'
import type { TransactionStore } from '../../src/store/transaction-store.js'
import type { Plants } from '../../src/testing/simulation/sim-database.js'
import { CLOCK_MUTANTS } from './clock-mutants.js'

/**
 * Planted bugs: each is a fault that has occurred in practice, put into the store's statements or the world's parts. The simulator must
 * find every one: a planted bug that it misses is one it would also miss in the engine.
 */
export interface Mutant {
  readonly name: string
  /** The changes that plant the bug. */
  readonly plants: Plants
}

/** A bug could not be planted: a failure is then not the bug. */
export class NotPlanted extends Error {}

type Statements = Parameters<NonNullable<Plants['queries']>>[0]

/** Changes statements; throws when the text to change is not there, so that a mutant cannot silently become the original. */
export function statements(
  name: string,
  change: Partial<Record<keyof Statements, readonly [from: string, to: string, ...more: string[]]>>,
): Mutant {
  const queries = (right: Statements): Statements => {
    const wrong: Record<string, unknown> = { ...right }
    for (const [statement, texts] of Object.entries(change))
      for (let i = 0; i < texts.length; i += 2) {
        const [text, from, to] = [wrong[statement] as string, texts[i] ?? '', texts[i + 1] ?? '']
        if (!text.includes(from))
          throw new NotPlanted(`mutant "${name}": ${statement} does not hold ${JSON.stringify(from)}`)
        wrong[statement] = text.replace(from, to)
      }
    return wrong as unknown as Statements
  }
  return { name, plants: { queries } }
}

/** Changes verbs of the store; the others are the original ones. */
export function verbs(name: string, change: (right: Store) => object): Mutant {
  const wrapStore = (right: Store): Store => {
    const wrong = change(right)
    const proxy: Store = new Proxy(right, {
      get(target, verb) {
        if (verb === 'jobs' || verb === 'leases' || verb === 'queues' || verb === 'changes') return proxy
        const value: unknown = Reflect.get(Object.hasOwn(wrong, verb) ? wrong : target, verb)
        return typeof value === 'function' ? (value.bind(target) as unknown) : value
      },
    })
    return proxy
  }
  return { name, plants: { wrapStore } }
}

function transactions(
  name: string,
  change: (right: TransactionStore, store: Store) => Partial<TransactionStore>,
): Mutant {
  return verbs(name, (store) => {
    const right = store.transactions
    const own: TransactionStore = {
      answersLater: right.answersLater,
      insertJobsIn: (tx, jobs, options) => right.insertJobsIn(tx, jobs, options),
      insertSequenceIn: (tx, sequence) => right.insertSequenceIn(tx, sequence),
      sendEventIn: (tx, event) => right.sendEventIn(tx, event),
      sealGroupIn: (tx, seal) => right.sealGroupIn(tx, seal),
      settleJobIn: (tx, settled) => right.settleJobIn(tx, settled),
      guarded: (tx, call) => right.guarded(tx, call),
      transact: (request) => right.transact(request),
    }
    return { transactions: { ...own, ...change(right, store) } }
  })
}

const REVERSED =
  'set after = (select json_group_array(value) from (select value from json_each(e.parents) order by key desc))'

export const MUTANTS: readonly Mutant[] = [
  ...CLOCK_MUTANTS,
  statements('a settlement is written without its fence', {
    endJobs: ['where fence = ?', 'where ? is not null'],
    endRun: ['and fence = ?', 'and ? is not null'],
    appendDoneRun: ['and fence = ?', 'and ? is not null'],
    ownedJobs: ['where fence = ?', 'where ? is not null'],
  }),
  statements('a retry is written without its fence', {
    requeueJob: ['where seq = ? and fence = ?', 'where seq = ? and ? is not null'],
  }),
  statements('a rescue is not guarded by the heartbeat', { endWorker: ['and beat = ?', 'and ? is not null'] }),
  statements('a claim takes jobs that are held', {
    headOfLane: ["l.state = 'ready' and l.fence is null", "l.state in ('ready', 'running')"],
    readyJobs: ["state = 'ready' and fence is null", "state in ('ready', 'running')"],
  }),
  statements('a claim writes no lease', {
    addLease: ['values (?, ?, ?, ?, ?)', 'select ?, ?, ?, ?, ? where false'],
  }),
  statements('closing one lease closes them all', { closeLease: ['where fence = ?', 'where ? is not null'] }),
  statements('leases of a worker without a row are not found', {
    readWorkers: ['where worker not in (select worker from millrace_workers)', 'where false'],
    dropWorker: ['where worker = ?', 'where worker = ?'],
    beat: ['set beat = beat + 1', 'set beat = beat + 1'],
    endWorker: ['where worker = ? and beat = ?', 'where worker = ? and beat = ? and false'],
  }),
  statements('heartbeats do not count', { beat: ['beat + 1', 'beat'] }),
  statements('due jobs are promoted before their time', {
    promoteJobs: ['due_at <= ?', 'due_at <= ? + 400'],
    dueMembers: ['due_at <= ?', 'due_at <= ? + 400'],
  }),
  statements('retries are never promoted', {
    promoteJobs: ["('scheduled', 'retrying')", "('scheduled')"],
    dueMembers: ["('scheduled', 'retrying')", "('scheduled')"],
  }),
  statements('a scheduled job is written as ready', {
    insertLive: ['?, ? - priority', "coalesce('ready', ?), ? - priority"],
  }),
  statements('a key can be taken twice', {
    keyHolder: ['where k.name = ? and k.key = ?', 'where k.name = ? and k.key = ? and false'],
    // The primary key would refuse the second row.
    takeKey: ['values (?, ?, ?, ?)', 'values (?, ?, ? + abs(random() % 1000000), ?)'],
  }),
  verbs('a schedule under the key of a running job is dropped', (store) => ({
    insertJobs: async (...[jobs, options]: Parameters<Store['jobs']['insertJobs']>) => {
      const [job] = jobs
      const holder =
        options.onDuplicate === 'move' && job !== undefined && job.key !== null
          ? await store.jobs.readKeyed(job.name, job.key)
          : undefined
      return holder?.claimed === true ? [{ id: holder.id, isNew: false }] : store.jobs.insertJobs(jobs, options)
    },
  })),
  statements('a successor runs beside the job before it', {
    addLinks: ['where true', `where e.value ->> 2 <> 'run'`],
    blockJobs: ['and fence is null', 'and fence is null and seq in (select child from millrace_links)'],
  }),
  statements('the end of a job frees the key of its successor too', {
    freeKey: ['and seq = ?', 'and ? is not null'],
  }),
  statements('a finished job keeps its key', { freeKey: ['where name = ?', 'where false and name = ?'] }),
  verbs('finished jobs are never pruned', () => ({ pruneJobs: () => Promise.resolve({ pruned: 0, nextInMs: null }) })),
  statements('a range of pruned jobs deletes the next job too', {
    pruneHistoryRun: ['between ? and ?', 'between ? and 1 + ?'],
    pruneJobsRun: ['between ? and ?', 'between ? and 1 + ?'],
  }),
  statements('pruning deletes jobs that are still kept', { oldJobs: ['keep_until <= ?', 'keep_until <= ? + 1e12'] }),
  statements('an ended job stays in the live table', {
    endJobs: ['delete from millrace_live', 'update millrace_live set reason = reason'],
  }),
  statements('a retry resets its number of attempts', {
    requeueJob: ['retries = ?', 'retries = 0 * ?'],
    reviveJob: ['values', 'values'],
  }),
  statements('a retry by command resets the attempts', {
    reviveJob: ['values (?, ?, ?, ?, ?, ?,', 'values (?, ?, ?, ?, ?, 0 * ?,'],
  }),
  statements('every crash is charged as if the job ran alone', {
    readLeases: ['select fence, quarantined,', 'select fence, 1 as quarantined,'],
  }),
  statements('no crash is ever charged', {
    readLeases: ['select fence, quarantined,', 'select fence, 0 as quarantined,'],
  }),
  statements('a rescued job is no suspect', { requeueJob: ['streak = ?', 'streak = 0 * ?'] }),
  statements('new lanes are never seen', { newLanes: ['where lane > ?', 'where lane > ? and lane <= 2'] }),
  statements('a held job that was cancelled begins anyway', {
    confirmJobs: ['l.seq', 'e.value as seq', 'cross join', 'left join', 'l.fence = ?', '? is not null'],
  }),
  statements('a worker with held jobs gets no hint of other commits', { dataVersion: ['total_changes()', '1'] }),
  statements('a worker without a row may claim', { isWorker: ['where worker = ?', 'where ? is not null'] }),
  {
    name: 'due times are compared with the clock of the worker',
    plants: { databaseClock: (time, process) => time.now + (process.name === 'worker-1' ? 3_600_000 : 0) },
  },
  {
    name: 'a lease is measured by a clock that runs six times too fast',
    plants: {
      wrapWorld: (world) => ({ ...world, clock: { ...world.clock, monotonic: () => world.clock.monotonic() * 6 } }),
    },
  },
  {
    name: 'a process of another machine is checked on this one',
    plants: {
      wrapWorld: ({ processes, ...world }) => ({
        ...world,
        processes: {
          ...processes,
          isLocal: () => true,
          isGone: ({ pid, identity }) =>
            processes.isGone({ pid, identity: `${processes.own.host}.${identity?.split('.')[1]}` }),
        },
      }),
    },
  },
  {
    name: 'no death of a process is ever proven',
    plants: { wrapWorld: (world) => ({ ...world, processes: { ...world.processes, isGone: () => false } }) },
  },
  {
    name: 'a process with the pid of a dead one is treated as that one',
    plants: {
      wrapWorld: ({ processes, ...world }) => ({
        ...world,
        processes: { ...processes, isGone: (mark) => mark.pid !== processes.own.pid && processes.isGone(mark) },
      }),
    },
  },
  verbs('an observer ignores its own missing heartbeats', (store) => {
    const own = new Set<string>()
    let looks = 0
    return {
      addWorker: (worker: WorkerInfo) => {
        own.add(worker.id)
        return store.leases.addWorker(worker)
      },
      readWorkers: async () =>
        (await store.leases.readWorkers()).map((seen) => (own.has(seen.id) ? { ...seen, beat: (looks += 1) } : seen)),
    }
  }),
  {
    name: 'long timers are lost',
    plants: {
      wrapWorld: (world) => ({
        ...world,
        timers: {
          ...world.timers,
          after: (ms, run, options) =>
            ms >= 150 && ms <= 2_100 ? () => undefined : world.timers.after(ms, run, options),
        },
      }),
    },
  },

  statements('a cancel is dropped by the rescue', {
    requestsOf: [
      'where seq in (select value from json_each(?))',
      `where seq in (select value from json_each(?))
         and exists (
           select 1
           from millrace_live l
           join millrace_leases e on e.fence = l.fence
           join millrace_workers w on w.worker = e.worker
           where l.seq = millrace_requests.seq)`,
    ],
  }),
  statements("a cancel is dropped where its handler's signal was not aborted", {
    requestsOf: ['where', "where kind <> 'cancel' and"],
  }),
  statements('a pause is dropped when the attempt ends', { requestsOf: ['where', "where kind <> 'pause' and"] }),
  statements("no handler's signal is aborted by a cancel", {
    readRequests: ['from millrace_requests w', 'from (select * from millrace_requests where false) w'],
  }),
  statements('a requested change outlives its claim', { dropRequests: ['where', 'where false and'] }),
  statements('a requested change is written for another job', {
    putRequest: [
      'values (?, ?',
      `values (coalesce((select max(seq) from millrace_live where state = 'running' and seq <> ?1), ?1), ?`,
    ],
  }),
  statements('a pause replaces a cancel', { requestTarget: ['w.kind', "nullif(w.kind, 'cancel')"] }),
  statements('a paused queue is claimed from', {
    claimNotes: ['from millrace_pauses', 'from millrace_pauses where false'],
  }),
  verbs('held jobs of a paused queue begin', (store) => ({
    confirmJobs: async (...given: Parameters<Store['leases']['confirmJobs']>) => {
      const { mine, paused } = await store.leases.confirmJobs(...given)
      return { mine: new Set([...mine, ...paused]), paused: new Set() }
    },
  })),
  statements('the pause of a queue never ends', { putPause: ['values (?, ?', 'values (?, nullif(?, ?2)'] }),
  statements('a resumed job is ready before its time', { resumeJob: ['state = ?', "state = coalesce('ready', ?)"] }),
  statements('a paused job that is moved runs', {
    moveJob: ["case when state in ('paused', 'blocked') then state else ? end", '?'],
  }),
  statements('a unique slot is not checked', { readSlot: ['where', 'where false and'] }),
  statements('the window of a unique slot is not checked', { readSlot: ['u.until as until', 'null as until'] }),
  statements('a job that is postponed keeps its old payload', { editJob: ['where', 'where false and'] }),
  statements('a tick is fired by every process that finds it due', {
    moveSchedule: ['revision = revision + 1', 'revision = revision'],
    firedTicks: ['and job is not null', 'and job is null'],
  }),
  statements('every other tick is skipped', { moveSchedule: ['next_at = ?', 'next_at = ? + 1000'] }),
  statements('unique slots that count are swept', { nextSlots: ['and l.seq is null as over', 'or true as over'] }),
  statements('a cancelled job keeps its unique slot', { freeSlot: ['where', 'where false and'] }),
  statements('an ended attempt is not counted', {
    countAttempts: ['values (?, ?, ?, ?, ?, ?, ?, ?, ?)', 'select ?, ?, ?, ?, ?, ?, ?, ?, ? where false'],
  }),
  statements('a failed job is counted as a retry', {
    countAttempts: ['done, failed, retried', 'done, retried, failed'],
  }),
  statements('a fold forgets the rows that it took', {
    putBuckets: ['from json_each(?)', 'from json_each(?) where false'],
  }),
  statements('a member that moves is not counted', {
    countMembers: ['members = members + excluded.members', 'members = members'],
  }),
  statements('a member that becomes ready is not counted', { dueMembers: ['j.grp as grp', 'null as grp'] }),
  statements('a group is complete before its members have ended', { completeGroups: ['and unfinished = 0', ''] }),
  statements('a group whose whenDone job is enqueued stays open', {
    completeGroup: ['and completed_at is null', 'and false'],
  }),
  statements('a settlement leaves no to-do for its links', { noteEnds: ['where exists', 'where false and exists'] }),
  statements('a parked job blocks the next ticks', {
    noteEnds: ['where exists', `where e.value ->> 1 <> 'parked' and exists`],
  }),
  statements('a job that is deleted leaves its children blocked', {
    noteGone: ['where exists', 'where false and exists'],
  }),
  statements('a child is released by the first of its parents', {
    freeJobs: ['and not exists', 'and true or false and not exists'],
    freedMembers: ['and not exists', 'and true or false and not exists'],
  }),
  statements('a to-do is dropped before its links were resolved', {
    movedLinks: ['where k.parent = ?', "where k.on_failure <> 'cancel' and k.parent = ?"],
  }),
  statements('a child waits for the first of its parents only', { addLinks: ['where true', 'where e.key = 0'] }),
  statements('a job is not treated as blocked', { hasLinks: ['where child = ?', 'where false and child = ?'] }),
  statements('the results of parents are in any order', { putAfter: ['set after = e.parents', REVERSED] }),
  transactions('a handler settles its job under any fence', (right) => ({
    settleJobIn: (tx, settled) => {
      const found = (tx as SqliteDatabase).prepare('select fence from millrace_live where seq = ?').get(settled.ref)
      return right.settleJobIn(tx, { ...settled, fence: (found as { fence: number | null } | undefined)?.fence ?? 0 })
    },
  })),
  transactions('a job is treated as settled by its handler', () => ({ settleJobIn: () => true })),
  transactions('jobs of a transaction are written without it', (_, store) => ({
    insertJobsIn: (_tx, jobs, options) => {
      void store.jobs.insertJobs(jobs, options).catch(() => undefined)
      return jobs.map(({ id }) => ({ id, isNew: true }))
    },
  })),
  transactions('a refused bulk leaves a part in the transaction', (right) => ({
    insertJobsIn: (tx, jobs, options) =>
      jobs.flatMap((job) => right.insertJobsIn(tx, [job], options) as readonly { id: string; isNew: boolean }[]),
  })),
  verbs('captured context is lost', (store) => ({
    insertJobs: (jobs: readonly NewJob[], ...rest: [Parameters<Store['jobs']['insertJobs']>[1]]) =>
      store.jobs.insertJobs(
        jobs.map((job) => ({ ...job, options: job.options?.replace('"captured"', '"lost"') ?? null })),
        ...rest,
      ),
  })),
]
