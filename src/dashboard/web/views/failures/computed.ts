import { STATES_OF } from '../../../protocol.js'
import type { DifferenceShown, FailureRow, JobRow, Snapshot } from '../../../protocol.js'
import { bounded, percent } from '../../format/number.js'
import { jobsHref, printRoute, term } from '../../route.js'

/** An error group as its row shows it. */
export interface FailureLine {
  readonly fingerprint: string
  readonly href: string
  readonly error: string
  readonly message: string
  readonly job: string
  readonly place: string
  readonly count: number
  readonly countHref: string
  readonly spark: FailureRow['spark']
  readonly first: number
  readonly last: number
  readonly isNew: boolean
  /** What the retry button says; undefined when there is nothing to retry. */
  readonly retryLabel: string | undefined
}

export function failureLine(row: FailureRow): FailureLine {
  return {
    fingerprint: row.fingerprint,
    href: printRoute({ page: 'failures', id: row.fingerprint }),
    error: row.error,
    message: row.message ?? '',
    job: row.job,
    place: row.place ?? '',
    count: row.count,
    countHref: jobsHref(term('print', row.fingerprint)),
    spark: row.spark,
    first: row.firstSeen,
    last: row.lastSeen,
    isNew: row.isNew,
    retryLabel: retryLabel(row.retryable),
  }
}

/** `payload.country = NO` is in 97 % of failed and 4 % of done jobs. */
export interface DifferenceLine {
  readonly what: string
  readonly failed: string
  readonly done: string
  readonly failedShare: number
  readonly doneShare: number
}

export function differenceLines(differences: readonly DifferenceShown[]): DifferenceLine[] {
  return differences.map(({ what, value, failedPercent, donePercent }) => ({
    what: `${what} = ${value}`,
    failed: percent(failedPercent / 100),
    done: percent(donePercent / 100),
    failedShare: failedPercent,
    doneShare: donePercent,
  }))
}

/** `Retry 400`; where the number is not counted, the preview will say it. */
function retryLabel(retryable: FailureRow['retryable']): string | undefined {
  if (retryable === null) return 'Retry…'
  return retryable.n === 0 ? undefined : `Retry ${bounded(retryable.n, retryable.exact)}`
}

/** A job of the cause that a retry would run, for a first try; undefined when none is left. */
export function retryableExample({
  rows,
  order,
}: Pick<Snapshot<object, JobRow>, 'rows' | 'order'>): string | undefined {
  return order.find((id) => STATES_OF['job.retry'].includes(rows[id]?.state ?? 'done'))
}

/** Rows that are not muted in this browser. */
export function unmuted(
  rows: readonly FailureRow[],
  muted: Readonly<Record<string, number>>,
  now: number,
): FailureRow[] {
  return rows.filter(({ fingerprint }) => (muted[fingerprint] ?? 0) <= now)
}

const MUTED_MS = 86_400_000

/** The muted fingerprints with one more, without those whose time is over. */
export function mutedWith(
  muted: Readonly<Record<string, number>>,
  fingerprint: string,
  now: number,
): Record<string, number> {
  const current = Object.entries(muted).filter(([, until]) => until > now)
  return { ...Object.fromEntries(current), [fingerprint]: now + MUTED_MS }
}
