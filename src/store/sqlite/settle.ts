import { isFinal, isTimed } from '../../job/states.js'
import type { LeasedJob, SettledJob } from '../store.js'
import type { Written } from '../wishes.js'
import type { BodyRow } from './claim.js'
import { byFence, toClaimedJob } from './claim.js'
import { appendHistory } from './history.js'
import type { Session } from './session.js'
import { dropWishes, honourWishes } from './wish.js'

/** Writes what became of claimed jobs, each as its wish turns it and only if the fence is still the job's. */
export function settleJobs(
  session: Session,
  settled: readonly SettledJob[],
  closeLeases: readonly number[],
  now: number,
): Written {
  const honoured = honourWishes(session, settled)
  const ended: SettledJob[] = []
  const refused: number[] = []
  for (const job of honoured.settled) {
    if (isFinal(job.to)) ended.push(job)
    else if (!giveBack(session, job, now)) refused.push(job.ref)
  }
  if (ended.length > 0) refused.push(...endJobs(session, ended, now))
  for (const fence of closeLeases) session.statement(session.queries.closeLease).run(fence)
  dropWishes(session, honoured.wished, refused)
  return { refused, turned: honoured.turned.filter((job) => !refused.includes(job.ref)) }
}

/** A job that goes on: back in line, later, or aside. */
function giveBack(session: Session, job: SettledJob, now: number): boolean {
  const dueAt = job.delayMs === null ? null : now + job.delayMs
  const { changes } = session.statement(session.queries.giveBack).run(
    job.to,
    dueAt,
    dueAt,
    job.attempt,
    job.retries,
    job.crashes,
    job.suspect ? 1 : 0,
    job.error,
    job.reason,
    job.log,
    // It has begun, so it can no longer expire before it begins.
    job.to !== 'ready' || job.suspect ? 1 : 0,
    job.ref,
    job.fence,
  )
  if (Number(changes) === 0) return false
  if (job.to === 'ready') session.noteReady()
  else if (isTimed(job.to)) session.noteDue(job.delayMs ?? 0)
  return true
}

function endJobs(session: Session, ended: readonly SettledJob[], now: number): number[] {
  const owned = removeOwned(session, ended)
  const mine = owned === undefined ? ended : ended.filter((job) => owned.has(job.ref))
  appendHistory(session, mine, now)
  for (const job of mine)
    if (job.key !== null) session.statement(session.queries.freeKey).run(job.name, job.key, job.ref)
  if (mine.length > 0) session.noteSettled()
  return owned === undefined ? [] : ended.filter((job) => !owned.has(job.ref)).map((job) => job.ref)
}

/**
 * Takes ended jobs out of the live table. Nearly always all of them are ours, and then the count alone says so (undefined);
 * when it does not, the delete is undone and those that are ours are found first.
 */
function removeOwned(session: Session, ended: readonly SettledJob[]): Set<number> | undefined {
  const groups = byFence(ended)
  session.statement(session.queries.savepoint).run()
  let removed = 0
  for (const [fence, refs] of groups)
    removed += Number(session.statement(session.queries.endJobs).run(fence, JSON.stringify(refs)).changes)
  const all = removed === ended.length
  if (!all) session.statement(session.queries.rollbackTo).run()
  session.statement(session.queries.release).run()
  if (all) return undefined
  const owned = new Set<number>()
  for (const [fence, refs] of groups) {
    const rows = session.statement(session.queries.ownedJobs).all(fence, JSON.stringify(refs)) as { seq: number }[]
    for (const row of rows) owned.add(row.seq)
    session.statement(session.queries.endJobs).run(fence, JSON.stringify(rows.map((row) => row.seq)))
  }
  return owned
}

/** What a worker's leases hold, asked of the jobs themselves: the list in a lease is only where to look. */
export function readLeases(session: Session, worker: string): LeasedJob[] {
  const leases = session.statement(session.queries.readLeases).all(worker) as LeaseRow[]
  const jobs: LeasedJob[] = []
  for (const lease of leases) {
    const rows = session.statement(session.queries.leasedBodies).all(lease.jobs, lease.fence) as (BodyRow & {
      started_at: number | null
    })[]
    for (const row of rows)
      jobs.push({
        ...toClaimedJob(session, row, lease.fence),
        alone: lease.alone === 1,
        claimedAt: lease.claimed_at,
        startedAt: row.started_at,
      })
  }
  return jobs
}

interface LeaseRow {
  readonly fence: number
  readonly alone: number
  readonly claimed_at: number
  readonly jobs: string
}

/** Ends a dead worker in one guarded write. Null: its beat moved after all, and nothing was written. */
export function rescueJobs(
  session: Session,
  worker: string,
  beat: number | null,
  settled: readonly SettledJob[],
  now: number,
): Written | null {
  if (beat === null) {
    if (session.statement(session.queries.isWorker).get(worker) !== undefined) return null
  } else if (Number(session.statement(session.queries.endWorker).run(worker, beat).changes) === 0) return null
  const written = settleJobs(session, settled, [], now)
  session.statement(session.queries.dropLeases).run(worker)
  return written
}
