import { DAY_MS } from '../../job/statistics/buckets.js'
import type { Instant } from '../../job/duration/duration.js'
import type { FailureGroup } from '../../store/observing/statistics.js'
import { checkPage, PAGE_LIMIT } from '../read/page.js'
import type { Page, PageOptions } from '../read/page.js'
import { show } from '../../codec/show.js'
import { isFingerprintText } from '../check-arguments.js'
import { DAYS_DEFAULT, instantOf, WINDOW_FIELDS } from './options.js'
import type { StatisticsParts } from './statistics.js'

/** Which error groups to list. */
export interface ErrorGroupOptions extends PageOptions {
  /** Groups with a failure in the last days, of the days of UTC; Infinity: all that are kept. Default 30. */
  readonly days?: number | undefined
  readonly queue?: string | undefined
  readonly job?: string | undefined
  /** Only this group. */
  readonly fingerprint?: string | undefined
  /** The end of the last days. Default: now. */
  readonly now?: Instant | undefined
}

/** Failed attempts of one job, with the same error class, thrown at the same place. */
export interface ErrorGroup {
  /** The digest of job, class and place. */
  readonly fingerprint: string
  readonly job: string
  /** The class of the error; 'encrypted' for an encrypted job. */
  readonly error: string
  /** Function and file where it was thrown; empty when it has no stack, or the job is encrypted. */
  readonly place: string
  /** Failed attempts within the days. */
  readonly count: number
  /** The first that is known, also before those days. */
  readonly firstSeen: Date
  readonly lastSeen: Date
  /** The last jobs that failed so, newest last; the message is undefined for an encrypted job. */
  readonly samples: readonly { readonly id: string; readonly at: Date; readonly message: string | undefined }[]
}

const CURSOR = /^(\d{1,16})\.([0-9a-f]{16})$/

/** One page of error groups, the latest first. */
export async function listErrorGroups(
  { store }: StatisticsParts,
  options: ErrorGroupOptions = {},
): Promise<Page<ErrorGroup>> {
  checkPage('stats.errorGroups()', options, isCursor, { ...WINDOW_FIELDS, fingerprint: isFingerprintText })
  const { days = DAYS_DEFAULT, queue, job, fingerprint, now, limit = PAGE_LIMIT, cursor } = options
  const window = { lastMs: days * DAY_MS, at: instantOf(now) }
  const groups = await store.observing.readFailures({ window, queue, name: job, fingerprint })
  const rest = groups.filter(isAfter(cursor))
  const page = rest.slice(0, limit)
  const last = page.at(-1)
  return {
    rows: page.map(toGroup),
    cursor: last === undefined || rest.length <= limit ? undefined : `${last.lastSeen}.${last.fingerprint}`,
  }
}

function isCursor(value: unknown): string | undefined {
  return typeof value === 'string' && CURSOR.test(value)
    ? undefined
    : `must be the cursor that an earlier call returned, got ${show(value)}`
}

/** Whether a group is after the cursor, in the order of the list. */
function isAfter(cursor: string | undefined): (group: FailureGroup) => boolean {
  const [, lastSeen, last = ''] = CURSOR.exec(cursor ?? '') ?? []
  if (lastSeen === undefined) return () => true
  const at = Number(lastSeen)
  return (group) => group.lastSeen < at || (group.lastSeen === at && group.fingerprint > last)
}

function toGroup({ fingerprint, name, error, place, count, firstSeen, lastSeen, samples }: FailureGroup): ErrorGroup {
  return {
    fingerprint,
    job: name,
    error,
    place,
    count,
    firstSeen: new Date(firstSeen),
    lastSeen: new Date(lastSeen),
    samples: samples.map(({ id, at, message }) => ({ id, at: new Date(at), message: message ?? undefined })),
  }
}
