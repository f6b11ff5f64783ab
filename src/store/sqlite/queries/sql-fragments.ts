import { TURN_SPAN } from '../../../job/limits/turns.js'

/** A whole job, unfinished or ended. `from` names the jobs as `j` and the join with what follows. */
export function jobRow(from = 'millrace_jobs j\n    join'): string {
  return `
    select j.seq, j.id, n.name, n.queue, j.lane, j.turn, j.rate_turn, j.weight, j.priority, j.key, j.grp, j.payload, j.options, j.shape, j.after, j.created_at,
           coalesce(l.state, h.state) as state,
           l.fence is not null as claimed,
           coalesce(l.streak, 0) as streak,
           coalesce(l.due_at, h.due_at) as due_at,
           coalesce(l.attempt, h.attempt) as attempt,
           coalesce(l.retries, h.retries) as retries,
           coalesce(l.crashes, h.crashes) as crashes,
           coalesce(l.started_at, h.started_at) as started_at,
           h.settled_at, l.expires_at,
           case when l.fence is null then h.worker else (select e.worker from millrace_leases e where e.fence = l.fence) end as worker,
           h.result,
           coalesce(l.error, h.error) as error,
           coalesce(l.reason, h.reason) as reason,
           coalesce(l.log, h.log) as log,
           l.progress
    from ${from} millrace_lanes n on n.lane = j.lane
    left join millrace_live l on l.seq = j.seq
    left join millrace_history h on h.seq = j.seq`
}

/** The lane of a job in `millrace_live`: that of its turn, if it has one (job/limits/turns.ts). */
export function turnLane(lane: string, turn: string): string {
  return `coalesce(-(${lane} * ${TURN_SPAN} + ${turn}), ${lane})`
}

/** The lane of a live row, which may be that of a turn. */
export function plainLane(lane: string): string {
  return `case when ${lane} < 0 then -${lane} / ${TURN_SPAN} else ${lane} end`
}

/** A statement for a number of rows, built once for each number. */
export function byRows(build: (rows: number) => string): (rows: number) => string {
  const built: string[] = []
  return (rows) => (built[rows] ??= build(rows))
}

/**
 * The columns of a job that a claim reads. Most jobs have null in the rare columns, and each column read has a cost: so
 * those are read as one JSON text.
 */
export function claimedColumns(): string {
  return `l.seq, j.id, j.payload, l.due_at,
           case
             when l.attempt = 0 and l.retries = 0 and l.crashes = 0 and l.streak = 0 and l.log is null
               and l.expires_at is null and j.key is null and j.options is null and j.grp is null then null
             else json_array(l.attempt, l.retries, l.crashes, l.streak, l.log, l.expires_at, j.key, j.options, j.grp)
           end as rare`
}
