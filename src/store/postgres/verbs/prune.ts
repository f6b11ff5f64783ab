import type { World } from '../../../world/world.js'
import type { Pruned, PruneStore, Swept } from '../../prune.js'
import { maintainDays } from '../days/days.js'
import type { DaysWalk } from '../days/days.js'
import { numberOrNull } from '../../rows/columns.js'
import { sweepGroups } from './groups.js'
import { sweepLeftovers } from './sequences.js'
import { foldStatistics, isFoldDue, trimStatistics } from '../../verbs/statistics.js'
import { HOUR_MS } from '../../../job/statistics/buckets.js'
import { awaitVerb } from '../../verbs/verb.js'
import type { Opened } from '../connection/open.js'
import type { Receipts } from '../connection/receipts.js'
import type { Session } from '../connection/session.js'
import { addSummaries } from '../days/summaries.js'
import type { SummaryWalk } from '../days/summaries.js'
import type { Run } from './upkeep.js'
import { Vacuum } from '../days/vacuum.js'

/** Unique slots read for each that may be deleted: a table of slots that are all in use is walked slowly. */
const SCANS_PER_LIMIT = 4
/** Entries of `expiring` that one statement reads. */
const SWEEP_MAX = 5_000

/** How the verbs of pruning run. */
export interface PruneParts {
  readonly plain: Run
  readonly transact: Run
  readonly receipts: Receipts
}

/** The verbs of pruning, with the state that one step needs from the last. */
export class PostgresPrune implements PruneStore {
  readonly #opened: Opened
  readonly #run: Run
  readonly #transact: Run
  readonly #receipts: Receipts
  readonly #start: PruneStart
  readonly #vacuum: Vacuum
  readonly #walk: Walk = {
    sweptTo: ['', ''],
    groupsSweptTo: '',
    statsTrimmedAt: -Infinity,
    daysAt: 0,
    days: { days: [], scan: undefined },
    summaries: { at: 0, next: new Map() },
  }

  constructor(opened: Opened, { plain, transact, receipts }: PruneParts) {
    this.#opened = opened
    this.#run = plain
    this.#transact = transact
    this.#receipts = receipts
    this.#start = new PruneStart(opened.world)
    this.#vacuum = new Vacuum(opened.target, opened.world)
  }

  pruneJobs = (limit: number): Promise<Pruned> =>
    this.#run((session) => pruneJobs(session, limit, this.#start, this.#vacuum))

  sweepRows = async (limit: number): Promise<Swept> => {
    const rows = await this.#run((session) => sweepRows(session, limit, this.#walk))
    await this.#receipts.sweep()
    const now = await this.#run((session) => session.now())
    const isUnfolded = await this.#foldStatistics(now)
    const days = await sweepDays(this.#opened, this.#walk, now)
    const isUnsummarised = await sweepSummaries(this.#opened, this.#walk, now)
    return { swept: rows.swept + days.swept, more: rows.more || days.more || isUnsummarised || isUnfolded }
  }

  close(): void {
    this.#vacuum.close()
  }

  /** Returns whether there is more to fold. */
  async #foldStatistics(now: number): Promise<boolean> {
    if (!(await this.#run((session) => awaitVerb(isFoldDue(session, now))))) return false
    const isMore = await this.#transact((session) => awaitVerb(foldStatistics(session)))
    if (now - this.#walk.statsTrimmedAt >= HOUR_MS) {
      this.#walk.statsTrimmedAt = now
      await this.#run((session) => awaitVerb(trimStatistics(session, now)))
    }
    return isMore
  }

  /** It may be another server, which was promoted and lacks some of the rows that were seen. */
  reconnected(): void {
    this.#walk.days.scan = undefined
    this.#start.forget()
  }
}

/** Interval of the upkeep of days. */
const DAYS_EVERY_MS = 3_600_000

/** The positions of the walks through the unique slots and the groups, and when the upkeep of days is due. */
export interface Walk {
  sweptTo: readonly [name: string, key: string]
  groupsSweptTo: string
  /** When buckets of statistics that are read no longer were last deleted. */
  statsTrimmedAt: number
  daysAt: number
  readonly days: DaysWalk
  readonly summaries: SummaryWalk
}

/**
 * Deletes finished jobs that were kept for less than a day, and expired ones of the default partition. First by
 * `pruneDone`, which is cheap; `pruneJobs` deletes the others (failed or cancelled jobs, parents, rows that were ever
 * locked, the default partition).
 */
async function pruneJobs(session: Session, limit: number, start: PruneStart, vacuum: Vacuum): Promise<Pruned> {
  const from = start.take()
  const done = await pruneStep(session, session.queries.pruneDone, limit, from)
  const left = limit - done.pruned
  const next = left === 0 ? done.now : done.due > done.pruned ? done.now : await nextPrune(session, done.until ?? from)
  const others =
    left > 0 && next <= done.now ? await pruneStep(session, session.queries.pruneJobs, left, from) : undefined
  const pruned = done.pruned + (others?.pruned ?? 0)
  if (pruned > 0) {
    vacuum.deleted(pruned, done.now)
    start.pruned(Math.max(done.until ?? 0, others?.until ?? 0))
  }
  if (pruned >= limit) return { pruned, nextInMs: 0 }
  const due = others === undefined ? next : await nextPrune(session, start.from)
  return { pruned, nextInMs: due === Infinity ? null : Math.max(0, due - done.now) }
}

async function pruneStep(session: Session, text: string, limit: number, from: number): Promise<PruneStep> {
  const row = await session.one<{ [column: string]: unknown }>(text, session.nowText, String(limit), String(from))
  if (Number(row['parents'] ?? 0) > 0) session.note({ dueInMs: 0 })
  return {
    now: Number(row['now']),
    until: numberOrNull(row['until']),
    due: Number(row['due']),
    pruned: Number(row['pruned']),
  }
}

interface PruneStep {
  readonly now: number
  /** The last `keep_until` of the step; null when no job was due. */
  readonly until: number | null
  /** Jobs that were due on the way, locked ones included. */
  readonly due: number
  readonly pruned: number
}

/** When the next job expires; Infinity without one. */
async function nextPrune(session: Session, from: number): Promise<number> {
  const [row] = await session.query<{ due: unknown }>(session.queries.nextPrune, String(from))
  return numberOrNull(row?.due) ?? Infinity
}

/** One step of the walks through the unique slots, the groups and the leftovers. */
async function sweepRows(session: Session, limit: number, walk: Walk): Promise<Swept> {
  await sweepExpiring(session, await session.now())
  const [slots, groups] = [await sweepSlots(session, limit, walk), await sweepGroups(session, limit, walk)]
  const leftovers = await sweepLeftovers(session, limit)
  return { swept: slots + groups + leftovers, more: slots >= limit || groups >= limit || leftovers > 0 }
}

/** Drops expired days and creates those to come, once an hour; returns how many jobs were pruned. */
async function sweepDays(opened: Pick<Opened, 'connection' | 'days'>, walk: Walk, now: number): Promise<Swept> {
  if (now < walk.daysAt) return { swept: 0, more: false }
  // Set first: a failure would repeat, and one report an hour is enough.
  walk.daysAt = now + DAYS_EVERY_MS
  const { forgotten, again } = await maintainDays(opened.connection('work'), opened.days, now, walk.days)
  if (again) walk.daysAt = now
  return { swept: forgotten, more: again }
}

/** Whether there is more to do. For partitions of another role, vacuum does it. */
async function sweepSummaries(opened: Pick<Opened, 'connection' | 'days'>, walk: Walk, now: number): Promise<boolean> {
  if (walk.days.mayDrop !== true) return false
  return addSummaries(opened.connection('work'), opened.days, now, walk.summaries)
}

/** In bounded statements, so that no backlog makes one of them long. */
async function sweepExpiring(session: Session, now: number): Promise<void> {
  let after: readonly number[] = [-1, -1]
  for (let scanned = SWEEP_MAX; scanned === SWEEP_MAX;) {
    const row = await session.one<{ scanned: number; last: string | null }>(
      session.queries.sweepExpiring,
      String(now),
      ...after.map(String),
      String(SWEEP_MAX),
    )
    scanned = row.scanned
    after = JSON.parse(row.last ?? '[]') as number[]
  }
}

async function sweepSlots(session: Session, limit: number, walk: Walk): Promise<number> {
  const scans = limit * SCANS_PER_LIMIT
  const row = await session.one<SweepRow>(
    session.queries.sweepSlots,
    session.nowText,
    ...walk.sweptTo,
    String(scans),
    String(limit),
  )
  walk.sweptTo = (row.swept === limit ? row.chosen : row.scanned === scans ? row.last : null) ?? ['', '']
  return row.swept
}

interface SweepRow {
  readonly swept: number
  readonly scanned: number
  readonly last: readonly [string, string] | null
  readonly chosen: readonly [string, string] | null
}

/**
 * After this time a step begins at the oldest row again: for rows that were locked, or committed later than they were
 * dated.
 */
const RESTART_MS = 5_000

/**
 * Where the next step of pruning begins: at the `keep_until` where the last one ended. Index entries of deleted rows
 * stay until they are vacuumed, and every step would walk over them again.
 */
class PruneStart {
  readonly #world: Pick<World, 'clock'>
  #from = 0
  #since = 0

  constructor(world: Pick<World, 'clock'>) {
    this.#world = world
  }

  take(): number {
    const now = this.#world.clock.monotonic()
    if (now - this.#since < RESTART_MS) return this.#from
    this.#since = now
    return (this.#from = 0)
  }

  get from(): number {
    return this.#from
  }

  pruned(lastKeepUntil: number): void {
    this.#from = Math.max(this.#from, lastKeepUntil)
  }

  forget(): void {
    this.#from = 0
  }
}
