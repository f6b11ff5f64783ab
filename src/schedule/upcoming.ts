import { InvalidOptionsError } from '../errors.js'
import { isDurationOption } from '../job/definition/check-options.js'
import { parseDuration } from '../job/duration/duration.js'
import type { State } from '../job/rules/states.js'
import { readOptions } from '../job/definition/stored-options.js'
import type { ScheduleRow } from '../store/schedules.js'
import type { Store } from '../store/store.js'
import { checkUpcomingOptions } from './check.js'
import { readSpec } from './spec.js'
import { jitterOf, nextAfter, timingOf } from './ticks.js'
import type { Timing } from './ticks.js'

/** The default limit of a list. */
const LIMIT = 1_000
/** How many schedules are read at a time. */
const PAGE = 200

/** A future run: a job that waits for its time or for a worker, or a tick whose job does not exist yet. */
export interface Upcoming {
  /** When it is due; a time in the past means that it waits for a worker. */
  readonly at: Date
  readonly job: string
  readonly queue: string
  readonly title: string | undefined
  /** The job's id; undefined for a future tick. */
  readonly id: string | undefined
  readonly state: State | undefined
  /** The schedule that created it, if any. */
  readonly schedule: string | undefined
}

/** The future runs within a time span, ordered by time, at most `limit`. */
export async function upcoming(
  store: Store,
  span: unknown,
  options: { readonly limit?: number } = {},
): Promise<Upcoming[]> {
  const wrong = isDurationOption(span)
  const problems = typeof wrong === 'string' ? [{ path: 'span', message: wrong }] : []
  problems.push(...checkUpcomingOptions(options))
  if (problems.length > 0) throw new InvalidOptionsError('upcoming()', problems)
  const parsed = parseDuration(span)
  const withinMs = parsed.ok ? parsed.ms : 0
  const { limit = LIMIT } = options
  const { now, jobs } = await store.schedules.upcomingJobs(withinMs, limit)
  const found = jobs.map((job) => fromJob(job))
  let after: string | undefined = ''
  while (after !== undefined) {
    const { schedules } = await store.schedules.listSchedules(after, PAGE)
    for (const row of schedules) found.push(...ticksOf(row, now + withinMs, limit))
    // Keep the nearest of all that was read so far, and drop the rest before the next page.
    found.sort(byTime).splice(limit)
    after = schedules.length < PAGE ? undefined : schedules.at(-1)?.id
  }
  return found
}

const byTime = (a: Upcoming, b: Upcoming): number => a.at.getTime() - b.at.getTime()

function fromJob(job: {
  readonly id: string
  readonly name: string
  readonly queue: string
  readonly state: State
  readonly dueAt: number
  readonly options: string | null
}): Upcoming {
  const { title, tick } = readOptions(job.options)
  const { id, name, queue, state } = job
  return { at: new Date(job.dueAt), job: name, queue, title, id, state, schedule: tick?.schedule }
}

function ticksOf(row: ScheduleRow, until: number, limit: number): Upcoming[] {
  if (row.nextAt === null || row.nextAt > until) return []
  const spec = readSpec(row.spec)
  const { title } = readOptions(spec.job.options)
  const times = timesUpTo(timingOf(spec, row.createdAt), row.nextAt, until, limit)
  return times.map((at) => ({
    at: new Date(at + jitterOf(row.id, at, spec.jitterMs)),
    job: spec.job.name,
    queue: spec.job.queue,
    title,
    id: undefined,
    state: undefined,
    schedule: row.id,
  }))
}

function timesUpTo(timing: Timing, first: number, until: number, limit: number): number[] {
  const times: number[] = []
  for (let at: number | null = first; at !== null && at <= until && times.length < limit; at = nextAfter(timing, at))
    times.push(at)
  return times
}
