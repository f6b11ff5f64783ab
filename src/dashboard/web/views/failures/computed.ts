import type { DifferenceShown, FailureRow } from '../../../protocol.js'
import { count, percent } from '../../format/number.js'
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
  /** The number on the retry button; undefined when there is nothing to retry. */
  readonly retryable: number | undefined
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
    retryable: row.retryable === null || row.retryable.n === 0 ? undefined : row.retryable.n,
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

export function retryLabel(retryable: number): string {
  return `Retry ${count(retryable)}`
}

/** Rows that are not muted in this browser. */
export function unmuted(
  rows: readonly FailureRow[],
  muted: Readonly<Record<string, number>>,
  now: number,
): FailureRow[] {
  return rows.filter(({ fingerprint }) => (muted[fingerprint] ?? 0) <= now)
}
