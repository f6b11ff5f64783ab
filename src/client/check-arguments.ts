import { InvalidOptionsError } from '../errors.js'
import type { Problem } from '../errors.js'
import type { Check, Fields } from '../job/definition/check-fields.js'
import { checkFields, notYet } from '../job/definition/check-fields.js'
import { didYouMean } from '../codec/near-name.js'
import { isOptionsObject } from '../codec/options-object.js'
import { show } from '../codec/show.js'
import { isId } from '../job/definition/check-after.js'
import { FOREIGN_FILTER_OPTIONS } from '../job/definition/foreign-option-names.js'
import {
  checkEnqueueOptions,
  checkNotTooFar,
  isCount,
  isDurationOrInfinity,
  isKey,
  isName,
} from '../job/definition/check-options.js'
import { isFingerprint } from '../job/statistics/failure.js'
import { parseInstant } from '../job/duration/duration.js'
import { STATES } from '../job/rules/states.js'
import { SCAN_FIELDS } from './read/scan.js'

const oneOrMany =
  (check: Check): Check =>
  (value) =>
    Array.isArray(value) ? value.map(check).find((wrong) => wrong !== undefined) : check(value)

const isState: Check = (value) =>
  (STATES as readonly unknown[]).includes(value)
    ? undefined
    : `must be one of ${STATES.join(', ')}, got ${show(value)}${typeof value === 'string' ? didYouMean(value, STATES) : ''}`
export const isInstant: Check = (value) => {
  const parsed = parseInstant(value)
  return parsed.ok ? undefined : parsed.problem
}

export const isFingerprintText: Check = (value) =>
  typeof value === 'string' && isFingerprint(value)
    ? undefined
    : `must be the fingerprint of an error group, got ${show(value)}`

const FILTER: Fields = {
  fields: {
    // A job, a category or a name. Only a name can be checked here; the registry checks the others.
    job: oneOrMany((value) => (typeof value === 'string' ? isName(value) : undefined)),
    queue: oneOrMany(isName),
    state: oneOrMany(isState),
    label: isName,
    key: isKey,
    group: isName,
    fingerprint: isFingerprintText,
    after: (value) => (isId(value) ? undefined : `must be a job's id (a UUID), got ${show(value)}`),
    createdAfter: isInstant,
    createdBefore: isInstant,
    order: (value) =>
      value === 'newest' || value === 'oldest' ? undefined : `must be "newest" or "oldest", got ${show(value)}`,
    limit: (value) => (value === Infinity ? undefined : isCount(0)(value)),
    ...SCAN_FIELDS,
  },
  foreignNames: FOREIGN_FILTER_OPTIONS,
  meant: (value) => (typeof value === 'string' ? `{ job: ${show(value)} }` : undefined),
}

export function checkResultOptions(options: unknown): Problem[] {
  return checkFields(options, '', {
    fields: { timeout: isDurationOrInfinity },
    meant: (value) => (isDurationOrInfinity(value) === undefined ? `{ timeout: ${show(value)} }` : undefined),
  })
}

export function checkFilter(filter: unknown): Problem[] {
  return withRange(filter, checkFields(filter, '', FILTER))
}

/** A range that no job can be in is a mistake of the caller, such as two instants that were swapped. */
function withRange(filter: unknown, problems: Problem[]): Problem[] {
  if (problems.length > 0 || !isOptionsObject(filter)) return problems
  const { createdAfter, createdBefore } = filter as { createdAfter?: unknown; createdBefore?: unknown }
  const [after, before] = [parseInstant(createdAfter), parseInstant(createdBefore)]
  if (!after.ok || !before.ok || before.atMs > after.atMs) return problems
  return [{ path: 'createdBefore', message: `must be later than createdAfter, got ${show(createdBefore)}` }]
}

/** A page has its own limit. */
export function checkPageFilter(filter: unknown): Problem[] {
  const { limit: _limit, ...fields } = FILTER.fields
  return withRange(filter, checkFields(filter, '', { ...FILTER, fields }))
}

/** Fields that are tested job by job: a count or a command of all of them would have to read every job. */
const SCANNED = Object.fromEntries(
  Object.keys(SCAN_FIELDS).map((name) => [name, notYet('iterate mill.find(filter), which tests each job')]),
)

/** A count covers all matching jobs: it has neither an order nor a limit. */
export function checkCountFilter(filter: unknown): Problem[] {
  const fields = Object.entries(FILTER.fields).filter(
    ([name]) => name !== 'order' && name !== 'limit' && !Object.hasOwn(SCAN_FIELDS, name),
  )
  return withRange(filter, checkFields(filter, '', { ...FILTER, fields: Object.fromEntries(fields), notYet: SCANNED }))
}

/** An edit takes the options of an enqueue, except those that identify the job. */
export function checkEdit(change: unknown, nowMs: number): Problem[] {
  if (!isOptionsObject(change)) return [{ path: 'change', message: `must be an object, got ${show(change)}` }]
  const { payload: _, ...options } = change as Record<string, unknown>
  const policy =
    options['onParentFailure'] === undefined || options['after'] !== undefined
      ? []
      : [{ path: 'onParentFailure', message: 'applies to the jobs in after; give both' }]
  const fixed = ['key', 'group', 'onDuplicate', 'unique', 'expires'].filter((name) => options[name] !== undefined)
  const withSuggestion = (problem: Problem): Problem =>
    problem.message === 'is not an option'
      ? { ...problem, message: `${problem.message}${didYouMean(problem.path, ['payload'])}` }
      : problem
  const wrong = checkEnqueueOptions(options, '').map(withSuggestion)
  return [
    ...(wrong.length > 0 ? wrong : checkNotTooFar(options, '', nowMs)),
    ...policy,
    ...fixed.map((path) => ({ path, message: 'cannot be edited; enqueue another job' })),
    ...(options['tx'] === undefined
      ? []
      : [{ path: 'tx', message: 'cannot be given to an edit, which commits by itself' }]),
  ]
}

/** Whether a job can have this id. A string that is no UUID, perhaps from a URL, is the id of no job; another type throws. */
export function canBeId(id: unknown): id is string {
  return typeof id === 'string' ? isId(id) : isId(checkId(id))
}

/** Throws unless the value has the form of a job's id: anything else is a programming error, not an unknown job. */
export function checkId(id: unknown): string {
  if (isId(id)) return id
  const advice = typeof id === 'object' && id !== null && 'id' in id ? '; pass handle.id' : ''
  throw new InvalidOptionsError('job id', [
    { path: 'id', message: `must be a job's id (a UUID), got ${show(id)}${advice}` },
  ])
}
