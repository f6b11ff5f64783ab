import type { CountsByState, JobRow, ListFields, SearchAnswer, Sort } from '../../../protocol.js'
import type { StateName } from '../../parts/state.js'
import { UNKNOWN, bounded, plural, whole } from '../../format/number.js'
import { duration } from '../../format/duration.js'
import { visible } from '../../format/text.js'
import { clockTime, dayAndTime } from '../../format/time.js'
import type { Zone } from '../../format/time.js'
import { jobHref, printRoute, term } from '../../route.js'

/** A job as its row shows it. */
export interface JobLine {
  readonly id: string
  readonly href: string
  readonly state: StateName
  readonly job: string
  readonly title: string
  readonly why: string
  readonly isError: boolean
  readonly queue: string
  readonly attempt: string
  readonly at: number
  /** How long the last attempt took; undefined while it runs. */
  readonly took: number | undefined
  readonly runningSince: number | undefined
  readonly step: string
  readonly stepsDone: string
}

export function jobLine(row: JobRow): JobLine {
  return {
    id: row.id,
    href: jobHref(row.id),
    state: row.state,
    job: row.job,
    title: visible(row.title ?? ''),
    why: whyOf(row),
    isError: row.error !== null && (row.state === 'failed' || row.state === 'parked'),
    queue: row.queue,
    attempt: attemptText(row),
    at: row.changedAt,
    took: row.tookMs ?? undefined,
    runningSince: row.state === 'running' ? (row.startedAt ?? undefined) : undefined,
    step: row.step === null ? UNKNOWN : row.step.name || row.step.kind || UNKNOWN,
    stepsDone: row.step === null ? UNKNOWN : whole(row.step.done),
  }
}

/** Why it waits, or what went wrong: one line. */
export function whyOf({ state, why, error, reason, progress }: JobRow): string {
  if (state === 'failed' && error !== null) return errorText(error)
  if (state === 'running' && progress !== null) return progressText(progress)
  if (why !== null) return visible(why.text)
  if (error !== null && state !== 'done') return errorText(error)
  return visible(reason ?? '')
}

function errorText({ name, message }: { readonly name: string; readonly message: string }): string {
  return visible(`${name}: ${message.split('\n')[0] ?? ''}`)
}

export function progressText({ done, total }: { readonly done: number; readonly total: number | null }): string {
  return total === null ? `${whole(done)} done` : `${whole(done)} of ${whole(total)}`
}

/** The attempt that runs, else those that were counted. A job that was retried by hand may be past its limit: then it has no "of". */
export function attemptText({ state, attempt, attemptMax }: Pick<JobRow, 'state' | 'attempt' | 'attemptMax'>): string {
  const number = state === 'running' ? attempt + 1 : attempt
  return attemptMax === null || number > attemptMax ? String(number) : `${number}/${attemptMax}`
}

const STATES: readonly StateName[] = [
  'scheduled',
  'ready',
  'running',
  'retrying',
  'blocked',
  'paused',
  'parked',
  'done',
  'failed',
  'cancelled',
]

/** The row of states: each narrows the list to itself, and a second click takes it back. */
export interface StateChip {
  readonly state: StateName | 'all'
  readonly count: string
  readonly title: string
  readonly q: string
  readonly isCurrent: boolean
}

export function stateChips(query: string, counts: CountsByState | null): StateChip[] {
  const rest = query.replace(/(^|\s)state:\S+/g, '').trim()
  const current = /(?:^|\s)state:(\S+)/.exec(query)?.[1]?.split(',') ?? []
  const chip = (state: StateName): StateChip => {
    const count = counts?.[state] ?? null
    return {
      state,
      count: count === null ? '…' : bounded(count.n, count.exact),
      title: count === null ? 'It is not counted here.' : whole(count.n),
      q: `${term('state', state)} ${rest}`.trim(),
      isCurrent: current.includes(state),
    }
  }
  return [{ state: 'all', count: '', title: '', q: rest, isCurrent: current.length === 0 }, ...STATES.map(chip)]
}

/** How far the search came, when it did not come to the end. */
export function reachedText(
  { scanned, reachedAt }: Pick<SearchAnswer, 'scanned' | 'reachedAt'>,
  now: number,
  zone: Zone,
): string {
  if (reachedAt === null) return ''
  return `Searched back to ${dayAndTime(reachedAt, now, zone)} (${plural(scanned, 'job')} read).`
}

/** The sentence of the page: what is shown. */
export function leadText(rows: number, fields: ListFields, hasMore: boolean, isWorkflows: boolean): string {
  const one = isWorkflows ? 'workflow' : 'job'
  if (rows === 0) return ''
  const amount = hasMore ? `The first ${plural(rows, one)}` : plural(rows, one)
  return `${amount}, ${SORT_TEXTS[fields.sort]}.`
}

export const SORT_TEXTS: Readonly<Record<Sort, string>> = {
  changed: 'newest change first',
  newest: 'newest first',
  oldest: 'oldest first',
  'longest-wait': 'longest wait first',
  'longest-run': 'longest run first',
}

/** The terms of a search, each with the search without it. */
export function removableTerms(query: string): { readonly term: string; readonly without: string }[] {
  const terms = query.match(/(?:[^\s"]+|"(?:\\.|[^"\\])*")+/g) ?? []
  return terms.map((each, i) => ({ term: each, without: terms.filter((_, j) => j !== i).join(' ') }))
}

export interface HistogramBar {
  readonly key: number
  readonly height: number
  readonly title: string
}

/** Matches over time as bars of 0 to 100. */
export function histogramBars(histogram: ListFields['histogram'], zone: Zone): HistogramBar[] {
  if (histogram === null) return []
  const most = Math.max(1, ...histogram.counts)
  return histogram.counts.map((n, i) => {
    const at = histogram.at + i * histogram.bucketMs
    return {
      key: at,
      height: Math.round((100 * n) / most),
      title: `${clockTime(at, zone)}, ${duration(histogram.bucketMs)}: ${whole(n)}`,
    }
  })
}

/** The text around the wrong part of a search: before, the part, after. */
export function wrongPart(
  query: string,
  problem: { readonly from: number; readonly to: number },
): readonly [string, string, string] {
  return [query.slice(0, problem.from), query.slice(problem.from, problem.to) || ' ', query.slice(problem.to)]
}

/** Rows that stay where the user saw them, in the state that they have now; those that left the view are dimmed. */
export interface KeptRow {
  readonly line: JobLine
  readonly hasLeft: boolean
}

export function keptRows(
  order: readonly string[],
  seen: Readonly<Record<string, JobRow>>,
  now: Readonly<Record<string, JobRow>>,
): KeptRow[] {
  return order.flatMap((id) => {
    const row = now[id] ?? seen[id]
    return row === undefined ? [] : [{ line: jobLine(row), hasLeft: now[id] === undefined }]
  })
}

export function sortHref(page: 'jobs' | 'workflows', q: string, sort: Sort): string {
  return printRoute({ page, query: { q, sort: sort === 'newest' ? '' : sort } })
}
