import { InvalidOptionsError } from '../errors.js'
import { checkFields } from '../job/definition/check-fields.js'
import { isCount, isDurationOption } from '../job/definition/check-options.js'
import { parseDuration } from '../job/duration/duration.js'
import { BINNED_MAX } from '../store/schedules.js'
import type { ScheduleRow } from '../store/schedules.js'
import type { Store } from '../store/store.js'
import { readSpec } from './spec.js'
import { jitterOf, nextAfter, timingOf } from './ticks.js'

/** How to divide the span. */
export interface UpcomingBinsOptions {
  /** 1 to 500 parts. Default 48. */
  readonly bins?: number | undefined
}

/** How many runs are due, by queue and part of the span. */
export interface UpcomingBins {
  /** Where the first part begins: now. */
  readonly from: Date
  /** The length of each part. */
  readonly binMs: number
  readonly queues: readonly {
    readonly queue: string
    /** Scheduled jobs and retries by part; those that are overdue are in the first. Ready jobs are not counted. */
    readonly jobs: readonly number[]
    /** Future ticks of schedules. */
    readonly ticks: readonly number[]
  }[]
  /** False when counting stopped at its bound: there are more. */
  readonly exact: boolean
}

const BINS = 48
export const BINS_MAX = 500
/** How many schedules are read at a time. */
const PAGE = 200
/** Ticks that one call computes. */
export const BINNED_TICKS_MAX = 50_000

/** The future runs within a time span, counted. */
export async function upcomingBins(
  store: Store,
  span: unknown,
  options: UpcomingBinsOptions = {},
): Promise<UpcomingBins> {
  const wrong = isDurationOption(span)
  const problems = typeof wrong === 'string' ? [{ path: 'span', message: wrong }] : []
  problems.push(...checkFields(options, '', { fields: { bins: isCount(1, BINS_MAX) } }))
  if (problems.length > 0) throw new InvalidOptionsError('upcomingBins()', problems)
  const parsed = parseDuration(span)
  const withinMs = parsed.ok ? parsed.ms : 0
  const { bins = BINS } = options
  const binMs = Math.max(1, Math.ceil(withinMs / bins))
  const { now, counts } = await store.schedules.upcomingCounts({ withinMs, binMs })
  const lanes = new Lanes(bins)
  for (const { queue, bin, count } of counts) lanes.add('jobs', queue, bin, count)
  const areTicksWhole = await countTicks(store, lanes, { now, until: now + withinMs, binMs })
  const jobs = counts.reduce((sum, { count }) => sum + count, 0)
  return { from: new Date(now), binMs, queues: lanes.list(), exact: areTicksWhole && jobs <= BINNED_MAX }
}

/** False when there are more ticks than one call computes. */
async function countTicks(
  store: Store,
  lanes: Lanes,
  { now, until, binMs }: { readonly now: number; readonly until: number; readonly binMs: number },
): Promise<boolean> {
  let left = BINNED_TICKS_MAX
  let after: string | undefined = ''
  while (after !== undefined) {
    const { schedules }: { readonly schedules: readonly ScheduleRow[] } = await store.schedules.listSchedules(
      after,
      PAGE,
    )
    for (const row of schedules) {
      const spec = readSpec(row.spec)
      const timing = timingOf(spec, row.createdAt)
      for (let at = row.nextAt; at !== null && at <= until; at = nextAfter(timing, at)) {
        if (left === 0) return false
        left -= 1
        const due = at + jitterOf(row.id, at, spec.jitterMs)
        if (due <= until) lanes.add('ticks', spec.job.queue, Math.floor((due - now) / binMs), 1)
      }
    }
    after = schedules.length < PAGE ? undefined : schedules.at(-1)?.id
  }
  return true
}

type Counted = 'jobs' | 'ticks'

/** The counts of each queue. */
class Lanes {
  readonly #bins: number
  readonly #queues = new Map<string, Record<Counted, number[]>>()

  constructor(bins: number) {
    this.#bins = bins
  }

  add(what: Counted, queue: string, bin: number, count: number): void {
    const none = (): number[] => Array<number>(this.#bins).fill(0)
    const counts = this.#queues.get(queue) ?? { jobs: none(), ticks: none() }
    this.#queues.set(queue, counts)
    // What is overdue is next; what is due at the very end is in the last part.
    const at = Math.min(this.#bins - 1, Math.max(0, bin))
    counts[what][at] = (counts[what][at] ?? 0) + count
  }

  list(): UpcomingBins['queues'] {
    return [...this.#queues].map(([queue, counts]) => ({ queue, ...counts })).toSorted(byName)
  }
}

const byName = (one: { readonly queue: string }, other: { readonly queue: string }): number =>
  one.queue < other.queue ? -1 : 1
