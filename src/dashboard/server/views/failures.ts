import type { JobRecord } from '../../../job/record.js'
import type { Role } from '../../protocol/verbs.js'
import type { ErrorGroup } from '../../../client/statistics/error-groups.js'
import { DAY_MS } from '../../../job/statistics/buckets.js'
import type {
  Count,
  DeployMark,
  DifferenceShown,
  FailureFields,
  FailureRow,
  FailuresFields,
  Sentence,
} from '../../protocol/rows.js'
import { SPANS } from '../../protocol/topics.js'
import type { FailureSpan } from '../../protocol/topics.js'
import { ViewGone } from '../parts.js'
import type { MakeView, Parts } from '../parts.js'
import type { Show } from '../show/redact.js'
import { jobRow } from './job-row.js'
import { COMPARED_MAX, COMPARED_MIN, differencesOf, factsOf } from './failure/differences.js'
import type { Facts } from './failure/differences.js'
import { asPage, deploysOf, workersOf } from './reads.js'

/** Groups that are read: days are the shortest window of groups, so those of a shorter span are filtered here. */
const GROUPS_MAX = 1_000
const PAGE = 50
const EXAMPLES = 3
const KEPT_DAYS = 30
/** Causes whose jobs are counted for the list. */
const COUNTED = 20
const COUNT_AGE_MS = 10_000
const FINGERPRINT = /^[0-9a-f]{16}$/
/** How long a comparison holds, and how long its reads may take. */
const COMPARED_AGE_MS = 30_000
const COMPARED_MS = 200
const TOO_FEW = `Needs ${COMPARED_MIN} failed jobs of this cause and ${COMPARED_MIN} done jobs of the same job.`
const ABSENT = {
  spark: 'Failures of one cause over time are not in this version.',
}

/** Failed attempts by their cause, the latest first. */
export async function readFailures(parts: Parts, span: FailureSpan, cursor?: string): Promise<MakeView> {
  const now = parts.world.clock.now()
  const deploys = await deploysOf(parts, 0)
  const deploy = deploys.at(-1) ?? null
  const from = span === 'deploy' ? (deploy?.at ?? now - SPANS['24h']) : now - SPANS[span]
  const { groups, next } = await groupsSince(parts, from, cursor)
  const total = groups.reduce((sum, { count }) => sum + count, 0)
  const last = groups[0]?.lastSeen.getTime() ?? (await lastFailure(parts))
  const sorted = groups.toSorted((a, b) => b.count - a.count)
  const retryable = await Promise.all(
    sorted.slice(0, COUNTED).map(({ fingerprint }) => retryableOf(parts, fingerprint)),
  )
  return (show) => ({
    fields: {
      span,
      from,
      deploy,
      total,
      text: sentence(sorted, total, deploy),
      lastFailureAt: last,
    } satisfies FailuresFields,
    rows: sorted.map((group, i) => [group.fingerprint, failureRow(group, deploy, show, retryable[i])]),
    cursor: next,
    absent: ABSENT,
  })
}

async function groupsSince(
  parts: Parts,
  from: number,
  cursor?: string,
): Promise<{ readonly groups: readonly ErrorGroup[]; readonly next: string | null }> {
  const days = Math.max(1, Math.ceil((parts.world.clock.now() - from) / DAY_MS))
  const read = (): ReturnType<Parts['mill']['stats']['errorGroups']> =>
    asPage(() => parts.mill.stats.errorGroups({ days, limit: cursor === undefined ? GROUPS_MAX : PAGE, cursor }))
  const page = cursor === undefined ? await parts.shared.read(`groups ${days}`, 2_000, read) : await read()
  return { groups: page.rows.filter(({ lastSeen }) => lastSeen.getTime() >= from), next: page.cursor ?? null }
}

/** Jobs of a cause that a retry would run; they are counted every ten seconds. */
function retryableOf({ mill, shared }: Parts, fingerprint: string): Promise<Count> {
  return shared.read(`retryable ${fingerprint}`, COUNT_AGE_MS, async () => {
    const { count, exact } = await mill.count({ fingerprint, state: ['failed', 'parked', 'retrying'] })
    return { n: count, exact }
  })
}

interface Compared {
  readonly of: { readonly failed: number; readonly done: number }
  readonly isEnough: boolean
  readonly differences: (show: Show) => readonly DifferenceShown[] | null
}

/** The newest jobs of a cause against the newest of the same job that are done, for each role as it sees their payloads. */
function comparedOf(parts: Parts, fingerprint: string, job: string): Promise<Compared> {
  return parts.shared.read(`differences ${fingerprint}`, COMPARED_AGE_MS, async () => {
    const page = { limit: COMPARED_MAX, deadline: COMPARED_MS }
    const [failed, done, { rows: workers }] = await Promise.all([
      parts.mill.findPage({ fingerprint }, page),
      parts.mill.findPage({ job, state: 'done' }, page),
      workersOf(parts),
    ])
    const ranOn = new Map(workers.map(({ id, host, version }) => [id, { host, version }]))
    const known = new Map<Role, readonly DifferenceShown[] | null>()
    const compare = (show: Show): readonly DifferenceShown[] | null => {
      const facts = (record: JobRecord): Facts =>
        factsOf(record, parts.isSealed(record.job) ? undefined : show.plain(record.payload, 'payload'), ranOn)
      return differencesOf(failed.rows.map(facts), done.rows.map(facts))
    }
    return {
      of: { failed: failed.rows.length, done: done.rows.length },
      isEnough: failed.rows.length >= COMPARED_MIN && done.rows.length >= COMPARED_MIN,
      differences: (show) => {
        if (!known.has(show.role)) known.set(show.role, compare(show))
        return known.get(show.role) ?? null
      },
    }
  })
}

async function lastFailure({ mill }: Parts): Promise<number | null> {
  const { rows } = await mill.stats.errorGroups({ days: KEPT_DAYS, limit: 1 })
  return rows[0]?.lastSeen.getTime() ?? null
}

/** For the overview: the latest causes. */
export async function failureRows(
  parts: Parts,
  from: number,
  limit: number,
  queue?: string,
): Promise<{ readonly rows: (show: Show) => readonly FailureRow[] }> {
  const deploy = (await deploysOf(parts, 0)).at(-1) ?? null
  const groups =
    queue === undefined
      ? (await groupsSince(parts, from)).groups
      : (await parts.mill.stats.errorGroups({ days: 1, queue, limit: PAGE })).rows.filter(
          ({ lastSeen }) => lastSeen.getTime() >= from,
        )
  return { rows: (show) => groups.slice(0, limit).map((group) => failureRow(group, deploy, show)) }
}

function failureRow(
  group: ErrorGroup,
  deploy: DeployMark | null,
  show: Show,
  retryable: Count | null = null,
): FailureRow {
  const { fingerprint, job, error, place, count, firstSeen, lastSeen, samples } = group
  return {
    fingerprint,
    job,
    error,
    message: show.text(samples.at(-1)?.message),
    place: place === '' ? null : place,
    count,
    spark: null,
    firstSeen: firstSeen.getTime(),
    lastSeen: lastSeen.getTime(),
    isNew: deploy !== null && firstSeen.getTime() >= deploy.at,
    retryable,
  }
}

function sentence(groups: readonly ErrorGroup[], total: number, deploy: DeployMark | null): Sentence {
  const [first] = groups
  if (first === undefined) return ['No failures in this range.']
  const plural = total === 1 ? '1 failed attempt' : `${total} failed attempts`
  const share = first.count === total ? (total === 1 ? '' : ', all of one cause') : `, ${first.count} of one cause`
  const isNew = deploy !== null && first.firstSeen.getTime() >= deploy.at
  const since = !isNew ? '' : deploy.version === null ? ', new since the last deploy' : `, new since ${deploy.version}`
  return [`${plural}${share}${since}.`]
}

/** One cause: its examples and its jobs. */
export async function readFailure(parts: Parts, fingerprint: string): Promise<MakeView> {
  if (!FINGERPRINT.test(fingerprint)) throw new ViewGone('This is no fingerprint.')
  const { rows: groups } = await parts.mill.stats.errorGroups({ days: KEPT_DAYS, fingerprint, limit: 1 })
  const [group] = groups
  if (group === undefined)
    throw new ViewGone('No failure of this cause is known. Causes are listed for 30 days after their last failure.')
  const deploy = (await deploysOf(parts, 0)).at(-1) ?? null
  const [{ rows: kept }, retryable, compared] = await Promise.all([
    parts.mill.findPage({ fingerprint }, { limit: PAGE }),
    retryableOf(parts, fingerprint),
    comparedOf(parts, fingerprint, group.job),
  ])
  return (show) => ({
    fields: {
      failure: failureRow(group, deploy, show, retryable),
      examples: kept.slice(0, EXAMPLES).map((record) => {
        const row = jobRow(parts, record, show)
        const error = record.error ?? record.attempts.findLast((each) => each.error !== undefined)?.error
        return { id: record.id, at: row.changedAt, error: parts.isSealed(record.job) ? null : show.error(error) }
      }),
      differences: compared.differences(show),
      differencesOf: compared.of,
      query: `print:${fingerprint}`,
    } satisfies FailureFields,
    rows: kept.map((record) => [record.id, jobRow(parts, record, show)]),
    absent: { ...ABSENT, ...(compared.isEnough ? {} : { differences: TOO_FEW }) },
  })
}
