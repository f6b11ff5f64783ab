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
}

/** How often this connection has changed anything: when it has not, the census is as it was. */
export function countChanges(statements: Statements): number {
  return (statements.of('select total_changes() as changes').get() as { changes: number }).changes
}

export function readCensus(statements: Statements): Census {
  const all = <T>(sql: string): T[] => statements.of(sql).all() as T[]
  return {
    jobs: all<CensusJob>(`
      select j.seq, j.id, n.name, j.key, (l.seq is not null) + (h.seq is not null) as places, coalesce(l.state, h.state) as state,
             l.fence, coalesce(l.due_at, h.due_at) as dueAt, coalesce(l.attempt, h.attempt) as attempt,
             coalesce(l.retries, h.retries) as retries, coalesce(l.crashes, h.crashes) as crashes, coalesce(l.suspect, 0) as suspect
      from millrace_jobs j
      join millrace_lanes n on n.lane = j.lane
      left join millrace_live l on l.seq = j.seq
      left join millrace_history h on h.seq = j.seq`),
    keys: all('select name, key, seq from millrace_keys'),
    workers: all('select worker, beat from millrace_workers'),
    leases: all<{ fence: number; worker: string; alone: number; jobs: string }>(
      'select fence, worker, alone, jobs from millrace_leases',
    ).map((lease) => ({ ...lease, jobs: JSON.parse(lease.jobs) as number[] })),
    strays:
      all<{ strays: number }>(`
      select (select count(*) from millrace_live where seq not in (select seq from millrace_jobs))
           + (select count(*) from millrace_history where seq not in (select seq from millrace_jobs)) as strays`)[0]
        ?.strays ?? 0,
  }
}
