import type { Problem } from '../errors.js'
import { isCategory } from './brands.js'
import type { Check, Fields } from './check.js'
import { checkFields } from './check.js'
import { show } from '../codec/show.js'
import { parseDuration, parseInstant, parseWhen } from './duration.js'
import { isAfter } from './check-after.js'
import { ON_PARENT_FAILURE } from './links.js'
import { KEY_MAX, NAME_MAX, textProblem } from './texts.js'
import { GENERATOR_PROBLEM, isGenerator, isLazy } from './lazy.js'

/** Bounds on what an enqueue may carry, in one place. */
export { KEY_MAX, NAME_MAX } from './texts.js'
export const TITLE_MAX = 500
export const LABELS_MAX = 16
export const LABEL_MAX = 100
export const PRIORITY_MAX = 1_000_000
export const UNIQUE_FIELDS_MAX = 16

/** Names are stored as text and shown to people, so what a database or a terminal would bend is refused. */
export const isName: Check = (value) => textProblem(value, NAME_MAX, 'text')
export const isKey: Check = (value) => textProblem(value, KEY_MAX, 'text')

export function checkName(path: string, value: unknown): Problem[] {
  const wrong = textProblem(value, NAME_MAX, 'text')
  return wrong === undefined ? [] : [{ path, message: wrong }]
}

export const isDurationOption: Check = (value) => {
  const parsed = parseDuration(value)
  return parsed.ok ? undefined : parsed.problem
}

/** Infinity lifts the limit. */
export const isDurationOrInfinity: Check = (value) => (value === Infinity ? undefined : isDurationOption(value))

/** A timeout of nothing would end every attempt before it began. */
export const isTimeout: Check = (value) => {
  const wrong = isDurationOrInfinity(value)
  if (wrong !== undefined) return wrong
  const parsed = parseDuration(value)
  return parsed.ok && parsed.ms < 1 ? `must be 1 ms or more, got ${show(value)}` : undefined
}

/** A duration from now or an instant; the past is allowed and runs at once. */
const isWhen: Check = (value) => {
  if (parseDuration(value).ok) return undefined
  // Only to say what is wrong with it, and both forms that are right.
  const parsed = parseWhen(value, 0)
  return parsed.ok || parseInstant(value).ok ? undefined : parsed.problem
}

export const isCount =
  (min: number, max = Number.MAX_SAFE_INTEGER): Check =>
  (value) => {
    if (typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max) return undefined
    const bounds = max === Number.MAX_SAFE_INTEGER ? `of ${min} or more` : `from ${min} to ${max}`
    return `must be a whole number ${bounds}, got ${show(value)}`
  }

export const isFunction: Check = (value) =>
  typeof value === 'function' ? undefined : `must be a function, got ${show(value)}`
export const isOneOf =
  (...allowed: readonly unknown[]): Check =>
  (value) =>
    allowed.includes(value)
      ? undefined
      : `must be ${allowed.map((a) => JSON.stringify(a)).join(' or ')}, got ${show(value)}`

const isLabels: Check = (value) => {
  if (!Array.isArray(value)) return `must be an array of at most ${LABELS_MAX} texts, got ${show(value)}`
  if (value.length > LABELS_MAX) return `must be at most ${LABELS_MAX}, got ${value.length}`
  // A hole is no label: flatMap alone would step over it.
  return Array.from<unknown>(value).flatMap((label, i) => {
    const wrong = textProblem(label, LABEL_MAX, 'text')
    return wrong === undefined ? [] : [{ path: `[${i}]`, message: wrong }]
  })
}

const isTitle: Check = (value) =>
  typeof value === 'string' && value.length <= TITLE_MAX
    ? undefined
    : `must be text of at most ${TITLE_MAX} characters, got ${show(value)}`

const isLimit: Check = (value) => (value === Infinity ? undefined : isCount(0)(value))
const isShare: Check = (value) =>
  typeof value === 'number' && value >= 0 && value <= 1 ? undefined : `must be a number from 0 to 1, got ${show(value)}`

const BACKOFF_FIELDS: Fields = {
  fields: {
    start: isDurationOption,
    factor: (value) =>
      typeof value === 'number' && value >= 1 && value <= 100
        ? undefined
        : `must be a number from 1 to 100, got ${show(value)}`,
    max: isDurationOption,
  },
}

const isBackoffData: Check = (value) => {
  if (value === 'exponential' || value === 'fixed') return undefined
  if (typeof value === 'object' && value !== null) return checkFields(value, '', BACKOFF_FIELDS)
  return `must be "exponential", "fixed" or { start, factor, max }, got ${show(value)}`
}

const RETRY_DATA: Fields = { fields: { limit: isLimit, backoff: isBackoffData, jitter: isShare } }
const RETRY_CODE: Fields = {
  fields: {
    ...RETRY_DATA.fields,
    backoff: (v) => (typeof v === 'function' ? undefined : isBackoffData(v)),
    when: isFunction,
  },
}

export const isRetry: Check = (value) => checkFields(value, '', RETRY_CODE)
const isRetryData: Check = (value) => {
  const given = value as { when?: unknown; backoff?: unknown }
  if (
    typeof value === 'object' &&
    value !== null &&
    (typeof given.when === 'function' || typeof given.backoff === 'function')
  )
    return 'has a function, which cannot be stored with a job; put it into the job’s definition'
  return checkFields(value, '', RETRY_DATA)
}

const KEEP_FIELDS: Fields = {
  fields: { done: isDurationOrInfinity, cancelled: isDurationOrInfinity, failed: isDurationOrInfinity },
}
export const isKeep: Check = (value) => (value === 'none' ? undefined : checkFields(value, '', KEEP_FIELDS))

export const isCodec: Check = (value) => {
  const codec = value as { encode?: unknown; decode?: unknown } | null
  if (typeof codec === 'object' && typeof codec?.encode === 'function' && typeof codec.decode === 'function')
    return undefined
  return `must be a codec with encode and decode, got ${show(value)}; make one with codec({ types })`
}

const isSchema: Check = (value) => {
  const schema = value as { '~standard'?: { validate?: unknown } } | null
  const kind = typeof schema
  if ((kind === 'object' || kind === 'function') && typeof schema?.['~standard']?.validate === 'function')
    return undefined
  return `must be a Standard Schema (zod 3.24+, valibot 1, arktype 2 …), got ${show(value)}`
}

const isField: Check = (value) => {
  const wrong = textProblem(value, NAME_MAX, 'the path of a field of the payload, as in "order.id"')
  if (wrong !== undefined) return wrong
  return (value as string).split('.').includes('')
    ? `must have a name on each side of a dot, got ${show(value)}`
    : undefined
}

const isBy: Check = (value) => {
  if (typeof value === 'function') return undefined
  if (typeof value === 'string') return isField(value)
  if (!Array.isArray(value)) return `must be a field of the payload, a list of them, or a function, got ${show(value)}`
  if (value.length === 0 || value.length > UNIQUE_FIELDS_MAX)
    return `must name 1 to ${UNIQUE_FIELDS_MAX} fields, got ${value.length}; leave it out for the whole payload`
  return Array.from<unknown>(value).flatMap((field, i) => {
    const wrong = isField(field)
    return typeof wrong === 'string' ? [{ path: `[${i}]`, message: wrong }] : []
  })
}

const UNIQUE_FIELDS: Fields = {
  fields: {
    by: isBy,
    for: (value) => isTimeout(value),
    while: isOneOf('unfinished', 'waiting'),
    onDuplicate: isOneOf('ignore', 'replace', 'reject', 'reschedule'),
  },
}

/** False: this one is not unique, whatever its job or category says. */
const isUnique: Check = (value) => {
  if (value === false) return undefined
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return checkFields(value, '', UNIQUE_FIELDS)
  return `must be { by, for, while, onDuplicate } or false, got ${show(value)}`
}

const isCategories: Check = (value) => {
  if (!Array.isArray(value)) return `must be an array of categories, got ${show(value)}`
  const wrong = value.findIndex((one) => !isCategory(one))
  return wrong === -1 ? undefined : `must hold categories made by category(), got ${show(value[wrong])} at [${wrong}]`
}

const isHandler: Check = (value) => {
  if (isGenerator(value)) return GENERATOR_PROBLEM
  return typeof value === 'function' || isLazy(value) ? undefined : `must be a function or lazy(…), got ${show(value)}`
}

const JOB_FIELDS: Fields = {
  fields: {
    description: isTitle,
    run: isHandler,
    input: isSchema,
    accepts: isFunction,
    queue: isName,
    is: isCategories,
    priority: isCount(-PRIORITY_MAX, PRIORITY_MAX),
    retry: isRetry,
    timeout: isTimeout,
    keep: isKeep,
    treatAsDone: isFunction,
    labels: isLabels,
    codec: isCodec,
    unique: isUnique,
    after: (value) => (typeof value === 'function' ? undefined : isAfter(value)),
    onParentFailure: isOneOf(...ON_PARENT_FAILURE),
    title: (value) => (typeof value === 'function' ? undefined : isTitle(value)),
  },
  notYet: {
    limit: [],
    rate: [],
    executor: ['loop'],
    encrypt: [false],
    outage: [],
    partition: [],
    upcast: [],
    slowAfter: [],
    capture: [],
    minVersion: [],
  },
}

/** A category says what its jobs share: their payload, its check and its title are each job's own. */
export function checkCategoryOptions(options: unknown): Problem[] {
  const { input: _input, accepts: _accepts, title: _title, after: _after, ...fields } = JOB_FIELDS.fields
  return checkFields(options, '', { ...JOB_FIELDS, fields })
}

/** A job's options. */
export function checkJobOptions(options: unknown): Problem[] {
  return checkFields(options, '', JOB_FIELDS)
}

/** Which handles it knows, the store says; what is no object at all is nobody's. */
export const isTransactionHandle: Check = (value) =>
  (typeof value === 'object' && value !== null) || typeof value === 'function'
    ? undefined
    : `must be the handle of your open transaction, got ${show(value)}`

const ENQUEUE_FIELDS: Fields = {
  fields: {
    title: isTitle,
    labels: isLabels,
    queue: isName,
    priority: isCount(-PRIORITY_MAX, PRIORITY_MAX),
    key: isKey,
    group: isName,
    onDuplicate: isOneOf('return', 'reject', 'replace'),
    in: isDurationOption,
    at: isWhen,
    retry: isRetryData,
    timeout: isTimeout,
    expires: isWhen,
    unique: isUnique,
    after: isAfter,
    onParentFailure: isOneOf(...ON_PARENT_FAILURE),
    meta: () => undefined,
    tx: isTransactionHandle,
  },
  notYet: { limit: [], rate: [] },
}

/** What one enqueue says. `path` is where it stands in the call, for bulk: `options[3]`. */
export function checkEnqueueOptions(options: unknown, path: string): Problem[] {
  const problems = checkFields(options, path, ENQUEUE_FIELDS)
  const given = options as { in?: unknown; at?: unknown; key?: unknown; onDuplicate?: unknown } | null
  if (given?.in !== undefined && given.at !== undefined)
    problems.push({ path, message: 'has both in and at; give one of them' })
  if (given?.onDuplicate !== undefined && given.key === undefined)
    problems.push({
      path: path === '' ? 'onDuplicate' : `${path}.onDuplicate`,
      message: 'needs a key to be a duplicate of',
    })
  return problems
}
