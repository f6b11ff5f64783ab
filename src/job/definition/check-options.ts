import type { Problem } from '../../errors.js'
import { isCategory, isEvent } from './brands.js'
import type { Check, Fields } from './check-fields.js'
import { checkFields, didMean, notYet } from './check-fields.js'
import {
  FOREIGN_BACKOFF_OPTIONS,
  FOREIGN_JOB_OPTIONS,
  FOREIGN_RETRY_OPTIONS,
  FOREIGN_ENQUEUE_OPTIONS,
  FOREIGN_KEEP_OPTIONS,
  FOREIGN_UNIQUE_OPTIONS,
} from './foreign-option-names.js'
import { show } from '../../codec/show.js'
import { isAfter } from './check-after.js'
import {
  isBoolean,
  isCount,
  isDurationOption,
  isDurationOrInfinity,
  isFunction,
  isKey,
  isName,
  isOneOf,
  isPositiveDuration,
  isShare,
  isSlowAfter,
  isTimeout,
  isWhen,
} from './check-values.js'
import { ON_PARENT_FAILURE } from '../rules/links.js'
import { NAME_MAX, textProblem } from './check-text.js'
import { parseWhen } from '../duration/duration.js'
import { EXECUTORS, isModule, isolationProblems, MEMORY_MAX_MB, MEMORY_MIN_MB } from './isolation.js'
import { isUpcast } from './upcast.js'
import { isLimitOption, isRateOption } from './limit-options.js'
import { GENERATOR_PROBLEM, isGenerator, isLazy } from './lazy.js'

/** The limits of the options of an enqueue. */
export { KEY_MAX, NAME_MAX } from './check-text.js'
export const TITLE_MAX = 500
export const LABELS_MAX = 16
export const LABEL_MAX = 100
export const PRIORITY_MAX = 1_000_000
export const UNIQUE_FIELDS_MAX = 16
const FACTOR_MAX = 100

export {
  checkName,
  isCount,
  isDurationOption,
  isDurationOrInfinity,
  isFunction,
  isKey,
  isName,
  isOneOf,
  isShare,
  isTimeout,
} from './check-values.js'

const isLabels: Check = (value) => {
  if (!Array.isArray(value))
    return `must be an array of at most ${LABELS_MAX} texts, got ${show(value)}${didMean(inList(value))}`
  if (value.length > LABELS_MAX) return `must be at most ${LABELS_MAX}, got ${value.length}`
  // A hole in a sparse array is no label; flatMap alone would skip it.
  return Array.from<unknown>(value).flatMap((label, i) => {
    const wrong = textProblem(label, LABEL_MAX, 'text')
    return wrong === undefined ? [] : [{ path: `[${i}]`, message: wrong }]
  })
}

/** The list that was probably meant by a single string. */
const inList = (value: unknown): string | undefined => (typeof value === 'string' ? `[${show(value)}]` : undefined)

const isTitle: Check = (value) =>
  typeof value === 'string' && value.length <= TITLE_MAX
    ? undefined
    : `must be text of at most ${TITLE_MAX} characters, got ${show(value)}`

const isLimit: Check = (value) => (value === Infinity ? undefined : isCount(0)(value))

const BACKOFF_FIELDS: Fields = {
  fields: {
    start: isDurationOption,
    factor: (value) =>
      typeof value === 'number' && value >= 1 && value <= FACTOR_MAX
        ? undefined
        : `must be a number from 1 to ${FACTOR_MAX}, got ${show(value)}`,
    max: isDurationOption,
  },
  foreignNames: FOREIGN_BACKOFF_OPTIONS,
}

const isBackoffData: Check = (value) => {
  if (value === 'exponential' || value === 'fixed') return undefined
  if (typeof value === 'object' && value !== null) return checkFields(value, '', BACKOFF_FIELDS)
  const meant = isDurationOption(value) === undefined ? `{ start: ${show(value)} }` : undefined
  return `must be "exponential", "fixed" or { start, factor, max }, got ${show(value)}${didMean(meant)}`
}

const RETRY_DATA: Fields = {
  fields: { limit: isLimit, backoff: isBackoffData, jitter: isShare },
  foreignNames: FOREIGN_RETRY_OPTIONS,
  meant: (value) =>
    isLimit(value) === undefined ? `{ limit: ${show(value)} }` : value === false ? '{ limit: 0 }' : undefined,
}
const RETRY_CODE: Fields = {
  ...RETRY_DATA,
  fields: {
    ...RETRY_DATA.fields,
    backoff: (v) => (typeof v === 'function' ? undefined : isBackoffData(v)),
    when: isFunction,
  },
}

export const isRetry: Check = (value) => checkFields(value, '', RETRY_CODE)
const isRetryData: Check = (value) => {
  const retry = value as { when?: unknown; backoff?: unknown } | null
  if (typeof retry?.when === 'function' || typeof retry?.backoff === 'function')
    return 'has a function, which cannot be stored with a job; put it into the job’s definition'
  return checkFields(value, '', RETRY_DATA)
}

const KEEP_FIELDS: Fields = {
  fields: { done: isDurationOrInfinity, cancelled: isDurationOrInfinity, failed: isDurationOrInfinity },
  foreignNames: FOREIGN_KEEP_OPTIONS,
}
export const isKeep: Check = (value) => {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return checkFields(value, '', KEEP_FIELDS)
  if (value === 'none' || isDurationOrInfinity(value) === undefined) return undefined
  const meant = didMean(value === false ? '"none"' : undefined)
  return `must be a duration like "7d", Infinity, "none" or { done, cancelled, failed }, got ${show(value)}${meant}`
}

export const isCodec: Check = (value) => {
  const codec = value as { encode?: unknown; decode?: unknown } | null
  if (typeof codec === 'object' && typeof codec?.encode === 'function' && typeof codec.decode === 'function')
    return undefined
  return `must be a codec with encode and decode, got ${show(value)}; make one with codec({ types })`
}

const isSchema: Check = (value) => {
  const schema = value as { '~standard'?: { validate?: unknown } } | null
  if (typeof schema?.['~standard']?.validate === 'function') return undefined
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
  foreignNames: FOREIGN_UNIQUE_OPTIONS,
}

/** False: not unique, also when the job or a category is. */
const isUnique: Check = (value) => {
  if (value === false) return undefined
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return checkFields(value, '', UNIQUE_FIELDS)
  const meant = value === true ? '{}, by the whole payload' : isBy(value) === undefined ? '{ by: … }' : undefined
  return `must be { by, for, while, onDuplicate } or false, got ${show(value)}${didMean(meant)}`
}

const isCategories: Check = (value) => {
  if (!Array.isArray(value))
    return `must be an array of categories, got ${show(value)}${didMean(isCategory(value) ? `[${value.name}]` : undefined)}`
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
    upcast: isUpcast,
    queue: isName,
    is: isCategories,
    priority: isCount(-PRIORITY_MAX, PRIORITY_MAX),
    retry: isRetry,
    timeout: isTimeout,
    keep: isKeep,
    treatAsDone: isFunction,
    labels: isLabels,
    codec: isCodec,
    encrypt: isBoolean,
    unique: isUnique,
    after: (value) => (typeof value === 'function' ? undefined : isAfter(value)),
    onParentFailure: isOneOf(...ON_PARENT_FAILURE),
    title: (value) => (typeof value === 'function' ? undefined : isTitle(value)),
    executor: isOneOf(...EXECUTORS),
    module: isModule,
    memoryMb: isCount(MEMORY_MIN_MB, MEMORY_MAX_MB),
    slowAfter: isSlowAfter,
    limit: isLimitOption,
    rate: isRateOption,
  },
  notYet: {
    partition: notYet('give each part a queue of its own'),
    capture: notYet('set capture of millrace(), for all jobs'),
    minVersion: notYet('give the changed job another name'),
  },
  foreignNames: FOREIGN_JOB_OPTIONS,
}

/** A category has the options that its jobs share. The schema, `accepts`, `upcast`, `title` and `after` depend on the payload of each job. */
export function checkCategoryOptions(options: unknown): Problem[] {
  const {
    input: _input,
    accepts: _accepts,
    upcast: _upcast,
    title: _title,
    after: _after,
    ...fields
  } = JOB_FIELDS.fields
  return [...checkFields(options, '', { ...JOB_FIELDS, fields }), ...isolationProblems(Object(options))]
}

export function checkJobOptions(options: unknown): Problem[] {
  const problems = checkFields(options, '', JOB_FIELDS)
  const { input, accepts } = Object(options) as { readonly input?: unknown; readonly accepts?: unknown }
  if (input !== undefined && accepts !== undefined)
    problems.push({
      path: 'accepts',
      message: 'is not called when there is input, whose schema checks the payload; leave one out',
    })
  return [...problems, ...isolationProblems(Object(options))]
}

const isEvents: Check = (value) => {
  if (!Array.isArray(value)) return `must be an array of events made by event(), got ${show(value)}`
  const wrong = value.findIndex((one) => !isEvent(one))
  return wrong === -1 ? undefined : `must hold events made by event(), got ${show(value[wrong])} at [${wrong}]`
}

const CALL_A_JOB =
  'the body of a workflow runs in the event loop; give it to a job, and call that with w.call(job, payload)'

function workflowFields(): Fields {
  const { executor: _executor, module: _module, memoryMb: _memory, treatAsDone: _treat, ...shared } = JOB_FIELDS.fields
  return {
    ...JOB_FIELDS,
    fields: {
      ...shared,
      events: isEvents,
      deadline: isPositiveDuration(1),
      cancelWithin: isPositiveDuration(1),
      concurrency: isCount(1),
      steps: isCount(1),
      strict: isOneOf(true, false),
    },
    foreignNames: {
      ...FOREIGN_JOB_OPTIONS,
      executor: CALL_A_JOB,
      module: CALL_A_JOB,
      memoryMb: CALL_A_JOB,
      treatAsDone: 'catch the error of the step in the body instead',
    },
  }
}

/** A workflow has the options of a job, but for those of an attempt that runs elsewhere or whose error counts as success. */
export function checkWorkflowOptions(options: unknown): Problem[] {
  const problems = checkFields(options, '', workflowFields())
  const { input, accepts, run } = Object(options) as { readonly [name: string]: unknown }
  if (run === undefined) problems.push({ path: 'run', message: 'must be the body: async (input, w) => …' })
  if (input !== undefined && accepts !== undefined)
    problems.push({ path: 'accepts', message: 'is not called when there is input; leave one out' })
  return problems
}

/** The store decides which handles it accepts; a value that is no object cannot be one. */
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
  foreignNames: FOREIGN_ENQUEUE_OPTIONS,
  meant: (value) => {
    if (value instanceof Date) return '{ at: … }'
    return isDurationOption(value) === undefined ? `{ in: ${show(value)} }` : undefined
  },
}

/** Checks that no time of checked options is farther from now than an instant may be. */
export function checkNotTooFar(options: unknown, path: string, nowMs: number): Problem[] {
  const given = options as { readonly at?: unknown; readonly expires?: unknown }
  return (['at', 'expires'] as const).flatMap((name) => {
    const parsed = given[name] === undefined ? undefined : parseWhen(given[name], nowMs)
    return parsed?.ok === false ? [{ path: path === '' ? name : `${path}.${name}`, message: parsed.problem }] : []
  })
}

/** Checks the options of one enqueue. `path` is their path in error messages; in a bulk it is `options[3]`. */
export function checkEnqueueOptions(options: unknown, path: string): Problem[] {
  const problems = checkFields(options, path, ENQUEUE_FIELDS)
  const enqueue = options as { in?: unknown; at?: unknown; key?: unknown; onDuplicate?: unknown } | null
  if (enqueue?.in !== undefined && enqueue.at !== undefined)
    problems.push({ path, message: 'has both in and at; give one of them' })
  if (enqueue?.onDuplicate !== undefined && enqueue.key === undefined)
    problems.push({
      path: path === '' ? 'onDuplicate' : `${path}.onDuplicate`,
      message: 'needs a key to be a duplicate of',
    })
  return problems
}
