import type { Plants } from '../../src/testing/sim-database.js'

/**
 * Planted bugs: each is a fault that bit somebody, put into the store's statements or the world's parts. The simulator must
 * find every one; a bug that it cannot find is a bug it would not find in us.
 */
export interface Mutant {
  readonly name: string
  /** Which promise it breaks, so that a failure elsewhere is seen as such. */
  readonly plants: Plants
}

type Statements = Parameters<NonNullable<Plants['queries']>>[0]

/** Changes statements; throws when the text to change is not there, so that a mutant cannot quietly become the original. */
function statements(
  name: string,
  change: Partial<Record<keyof Statements, readonly [from: string, to: string]>>,
): Mutant {
  const queries = (right: Statements): Statements => {
    const wrong: Record<string, unknown> = { ...right }
    for (const [statement, [from, to]] of Object.entries(change)) {
      const text = wrong[statement] as string
      if (!text.includes(from)) throw new Error(`mutant "${name}": ${statement} does not hold ${JSON.stringify(from)}`)
      wrong[statement] = text.replace(from, to)
    }
    return wrong as unknown as Statements
  }
  return { name, plants: { queries } }
}

export const MUTANTS: readonly Mutant[] = [
  statements('an end is written without its fence', {
    endJobs: ['where fence = ?', 'where ? is not null'],
    endRun: ['and fence = ?', 'and ? is not null'],
    appendDoneRun: ['and fence = ?', 'and ? is not null'],
    ownedJobs: ['where fence = ?', 'where ? is not null'],
  }),
  statements('a retry is written without its fence', {
    giveBack: ['where seq = ? and fence = ?', 'where seq = ? and ? is not null'],
  }),
  statements('a rescue is not guarded by the beat', { endWorker: ['and beat = ?', 'and ? is not null'] }),
  statements('a claim takes jobs that are held', {
    headOfLane: ["l.state = 'ready' and l.fence is null", "l.state in ('ready', 'running')"],
    readyJobs: ["state = 'ready' and fence is null", "state in ('ready', 'running')"],
  }),
  statements('a claim leaves no lease to be found by', {
    addLease: ['values (?, ?, ?, ?, ?)', 'select ?, ?, ?, ?, ? where false'],
  }),
  statements('closing one lease closes them all', { closeLease: ['where fence = ?', 'where ? is not null'] }),
  statements('a dead worker off the list keeps its leases unseen', {
    readWorkers: ['where worker not in (select worker from millrace_workers)', 'where false'],
    dropWorker: ['where worker = ?', 'where worker = ?'],
    beat: ['set beat = beat + 1', 'set beat = beat + 1'],
    endWorker: ['where worker = ? and beat = ?', 'where worker = ? and beat = ? and false'],
  }),
  statements('beats do not count', { beat: ['beat + 1', 'beat'] }),
  statements('due jobs are promoted before their time', { promoteJobs: ['due_at <= ?', 'due_at <= ? + 400'] }),
  statements('retries are never promoted', { promoteJobs: ["('scheduled', 'retrying')", "('scheduled')"] }),
  statements('a scheduled job is written as ready', {
    insertLive: ['select seq, lane, ?,', "select seq, lane, coalesce('ready', ?),"],
  }),
  statements('a key can be taken twice', {
    keyHolder: ['where k.name = ? and k.key = ?', 'where k.name = ? and k.key = ? and false'],
  }),
  statements('a finished job keeps its key', { freeKey: ['where name = ?', 'where false and name = ?'] }),
  statements('pruning forgets what is still kept', { oldJobs: ['keep_until <= ?', 'keep_until <= ? + 1e12'] }),
  statements('an ended job stays in the live table', {
    endJobs: ['delete from millrace_live', 'update millrace_live set reason = reason'],
  }),
  statements('a retry forgets how often it was tried', {
    giveBack: ['retries = ?', 'retries = 0 * ?'],
    reviveJob: ['values', 'values'],
  }),
  statements('a retry by command counts attempts anew', {
    reviveJob: ['values (?, ?, ?, ?, ?, ?,', 'values (?, ?, ?, ?, ?, 0 * ?,'],
  }),
  statements('every crash is charged as if the job ran alone', {
    readLeases: ['select fence, alone,', 'select fence, 1 as alone,'],
  }),
  statements('no crash is ever charged', { readLeases: ['select fence, alone,', 'select fence, 0 as alone,'] }),
  statements('a rescued job is no suspect', { giveBack: ['suspect = ?', 'suspect = 0 * ?'] }),
  statements('new lanes are never seen', { newLanes: ['where lane > ?', 'where lane > ? and lane <= 2'] }),
  statements('a held job that was cancelled begins all the same', {
    confirmJobs: [
      'cross join millrace_live l on l.seq = e.value\n    where l.fence = ?',
      'cross join (select value as seq from json_each(?)) l on false',
    ],
    dataVersion: ['total_changes()', '1'],
  }),
  statements('a worker off the list may claim', { isWorker: ['where worker = ?', 'where ? is not null'] }),
  {
    name: 'due times are judged by the clock of the worker',
    plants: { databaseClock: (time, process) => time.now + (process.name === 'worker-1' ? 3_600_000 : 0) },
  },
  {
    name: 'a lease is judged by a clock that runs six times too fast',
    plants: {
      wrapWorld: (world) => ({ ...world, clock: { ...world.clock, monotonic: () => world.clock.monotonic() * 6 } }),
    },
  },
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
]
