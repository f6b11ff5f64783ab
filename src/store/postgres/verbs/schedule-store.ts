import type {
  DueSchedules,
  Fired,
  Firing,
  PutSchedule,
  ScheduleRow,
  ScheduleStore,
  TickRow,
  UpcomingJobs,
} from '../../schedules.js'
import { numberOf } from '../connection/executor.js'
import { toSchedule, toTick } from './schedule-rows.js'
import type { StoredSchedule, StoredTick, StoredUpcoming } from './schedule-rows.js'
import { fireTicks } from './schedules.js'
import type { VerbParts } from '../connection/session.js'
import { textOf } from '../connection/session.js'

const BEYOND = '9223372036854775807'

/** The role of schedules on PostgreSQL. */
export class PostgresSchedules implements ScheduleStore {
  readonly #parts: VerbParts

  constructor(parts: VerbParts) {
    this.#parts = parts
  }

  readSchedule(id: string): Promise<{ now: number; schedule: ScheduleRow | undefined }> {
    return this.#parts.plain(async (s) => {
      const [row] = await s.query<StoredSchedule>(s.queries.readSchedule, id)
      return { now: await s.now(), schedule: row === undefined ? undefined : toSchedule(row) }
    })
  }

  listSchedules(after: string, limit: number): Promise<{ now: number; schedules: readonly ScheduleRow[] }> {
    return this.#parts.plain(async (s) => {
      const rows = await s.query<StoredSchedule>(s.queries.listSchedules, after, String(limit))
      return { now: await s.now(), schedules: rows.map(toSchedule) }
    })
  }

  putSchedule({ id, spec, createdAt, pausedAt, nextAt }: PutSchedule, revision: number | null): Promise<boolean> {
    return this.#parts.kept.command([], async (s) => {
      const values = [id, spec, String(createdAt), textOf(pausedAt), textOf(nextAt)] as const
      const written =
        revision === null
          ? await s.query(s.queries.addSchedule, ...values)
          : await s.query(s.queries.putSchedule, ...values, String(revision))
      if (written.length === 0) return false
      if (nextAt !== null) s.note({ dueInMs: Math.max(0, nextAt - (await s.now())) })
      return true
    })
  }

  dropSchedule(id: string): Promise<boolean> {
    return this.#parts.kept.command([], async (s) => {
      const dropped = await s.query(s.queries.dropSchedule, id)
      await s.query(s.queries.dropTicks, id)
      return dropped.length > 0
    })
  }

  dueSchedules(limit: number): Promise<DueSchedules> {
    return this.#parts.plain(async (s) => {
      const [next] = await s.query<{ next: unknown; now: unknown }>(s.queries.nextSchedule, s.nowText)
      const now = Number(next?.now)
      const rows = await s.query<StoredSchedule>(s.queries.dueSchedules, String(now), String(limit))
      const nextAt = next?.next ?? null
      return { now, due: rows.map(toSchedule), nextInMs: nextAt === null ? null : Number(nextAt) - now }
    })
  }

  fireTicks(firing: Firing): Promise<Fired> {
    const jobs = firing.ticks.flatMap(({ job }) => (job === null ? [] : [job]))
    return this.#parts.kept.known({
      ids: jobs.map(({ id }) => id),
      write: () =>
        this.#parts.lanes.sure(jobs, () =>
          this.#parts.kept.transactKept(
            (s) => fireTicks(s, firing),
            (fired) => fired,
          ),
        ),
      read: (answer) => JSON.parse(answer as string) as Fired,
    })
  }

  readTicks(id: string, before: number | null, limit: number): Promise<readonly TickRow[]> {
    return this.#parts.plain(async (s) => {
      const rows = await s.query<StoredTick>(s.queries.readTicks, id, textOf(before) ?? BEYOND, String(limit))
      return rows.map(toTick)
    })
  }

  upcomingJobs(withinMs: number, limit: number): Promise<UpcomingJobs> {
    return this.#parts.plain(async (s) => {
      const now = await s.now()
      const within = [String(now), String(withinMs), String(limit)] as const
      const waiting = await s.query<StoredUpcoming>(s.queries.waitingDue, ...within)
      const ready = await s.query<StoredUpcoming>(s.queries.readyDue, String(limit))
      const jobs = [...ready, ...waiting].map(({ due_at, ...job }) => ({ ...job, dueAt: numberOf(due_at) }))
      return { now, jobs: jobs.sort((a, b) => a.dueAt - b.dueAt).slice(0, limit) }
    })
  }
}
