import type { State } from '../../job/states.js'
import type { Statements } from './driver.js'

/** Everything in the store, for those who check it: the simulator's oracle and the torture's census. Not for production. */
export interface Census {
  readonly jobs: readonly CensusJob[]
  readonly keys: readonly { readonly name: string; readonly key: string; readonly seq: number }[]
  readonly workers: readonly { readonly worker: string; readonly beat: number }[]
  readonly leases: readonly {
    readonly fence: number
    readonly worker: string
    readonly alone: number
    readonly jobs: readonly number[]
  }[]
  /** Rows of live or history that no job row stands behind. */
  readonly strays: number
}

export interface CensusJob {
  readonly seq: number
  readonly id: string
  readonly name: string
  readonly key: string | null
  /** How many of the two places it is in: must be one. */
  readonly places: number
  readonly state: State | null
  readonly fence: number | null
  readonly dueAt: number
  readonly attempt: number
  readonly retries: number
  readonly crashes: number
  readonly suspect: number
  /** Who ended it. */
  readonly worker: string | null
  /** Whose the last line of its history is ('' for a command's), and how many lines there are. */
  readonly told: string | null
  readonly lines: number
}

/** How often this connection has changed anything: when it has not, the census is as it was. */
export function countChanges(statements: Statements): number {
  return (statements.of('select total_changes() as changes').get() as { changes: number }).changes
}

/** As one text: thousands of small looks are taken, and a driver's rows cost more than the query. */
export function readCensus(statements: Statements): Census {
  const { jobs, keys, workers, leases, strays } = statements.of(CENSUS).get() as { [part: string]: string | number }
  return {
    jobs: JSON.parse(jobs as string) as CensusJob[],
    keys: JSON.parse(keys as string) as Census['keys'],
    workers: JSON.parse(workers as string) as Census['workers'],
    leases: JSON.parse(leases as string) as Census['leases'],
    strays: strays as number,
  }
}

const CENSUS = `
  select
    (select json_group_array(json_object(
       'seq', j.seq, 'id', j.id, 'name', n.name, 'key', j.key, 'places', (l.seq is not null) + (h.seq is not null),
       'state', coalesce(l.state, h.state), 'fence', l.fence, 'dueAt', coalesce(l.due_at, h.due_at),
       'attempt', coalesce(l.attempt, h.attempt), 'retries', coalesce(l.retries, h.retries),
       'crashes', coalesce(l.crashes, h.crashes), 'suspect', coalesce(l.suspect, 0), 'worker', h.worker,
       'told', json_extract(coalesce(l.log, h.log), '$[#-1].worker'), 'lines', coalesce(json_array_length(coalesce(l.log, h.log)), 0)))
     from millrace_jobs j
     join millrace_lanes n on n.lane = j.lane
     left join millrace_live l on l.seq = j.seq
     left join millrace_history h on h.seq = j.seq) as jobs,
    (select json_group_array(json_object('name', name, 'key', key, 'seq', seq)) from millrace_keys) as keys,
    (select json_group_array(json_object('worker', worker, 'beat', beat)) from millrace_workers) as workers,
    (select json_group_array(json_object('fence', fence, 'worker', worker, 'alone', alone, 'jobs', json(jobs)))
     from millrace_leases) as leases,
    (select count(*) from millrace_live where seq not in (select seq from millrace_jobs))
      + (select count(*) from millrace_history where seq not in (select seq from millrace_jobs)) as strays`
