import { show } from '../codec/show.js'
import { didYouMean } from '../codec/near-name.js'
import { isOptionsObject } from '../codec/options-object.js'
import { InvalidOptionsError, UnknownEventError } from '../errors.js'
import type { Problem } from '../errors.js'
import { isEvent, isJob } from '../job/definition/brands.js'
import { checkFields } from '../job/definition/check-fields.js'
import type { Check, Fields } from '../job/definition/check-fields.js'
import { NAME_MAX, textProblem } from '../job/definition/check-text.js'
import { isCount, isDurationOption, isFunction, isOneOf, isTimeout } from '../job/definition/check-values.js'
import { checkEnqueueOptions, isRetry } from '../job/definition/check-options.js'
import { parseDuration, parseInstant } from '../job/duration/duration.js'
import type { Enqueueable } from '../job/enqueue.js'
import type { Workflow } from './host.js'
import type { Deed } from './operation.js'
import type { Branch, StepContext, StepOptions } from './work.js'

/** The most items of one `each`. */
const ITEMS_MAX = 10_000

const isOperationName: Check = (value) => textProblem(value, NAME_MAX, 'text')
const isSleepName: Check = (value) => (value === '' ? undefined : isOperationName(value))

export function checkName(verb: string, name: unknown): void {
  refuse(verb, named('name', isOperationName(name)))
}

export function checkWork(verb: string, work: unknown): void {
  refuse(verb, named('its function', isFunction(work)))
}

const STEP: Fields = { fields: { key: isOperationName, retry: isRetry, timeout: isTimeout } }

type StepAct = (s: StepContext) => unknown

export function checkStep(
  name: unknown,
  given: unknown,
  act: unknown,
): { readonly deed: Deed; readonly key: string | undefined } {
  if (typeof given === 'function' && act === undefined && isOperationName(name) === undefined)
    return { deed: { kind: 'step', act: given as StepAct, retry: undefined, timeoutMs: undefined }, key: undefined }
  const [options, run] = typeof given === 'function' && act === undefined ? [{}, given] : [given, act]
  refuse('step', [
    ...named('name', isOperationName(name)),
    ...checkFields(options, 'options', STEP),
    ...named('its function', isFunction(run)),
  ])
  const { key, retry, timeout } = options as StepOptions
  const timeoutMs = timeout === undefined ? undefined : timeout === Infinity ? Infinity : milliseconds(timeout)
  return { deed: { kind: 'step', act: run as StepAct, retry, timeoutMs }, key }
}

const SLEEP: Fields = { fields: { name: isSleepName } }

export function checkSleep(span: unknown, options: unknown = {}): { readonly name: string; readonly deed: Deed } {
  refuse('sleep', [...named('the span', isDurationOption(span)), ...checkFields(options, 'options', SLEEP)])
  const deed: Deed = { kind: 'sleep', until: undefined, spanMs: milliseconds(span) }
  return { name: (options as { name?: string }).name ?? '', deed }
}

export function checkSleepUntil(
  instant: unknown,
  options: unknown = {},
): { readonly name: string; readonly deed: Deed } {
  const parsed = parseInstant(instant)
  refuse('sleepUntil', [
    ...named('the instant', parsed.ok ? undefined : parsed.problem),
    ...checkFields(options, 'options', SLEEP),
  ])
  const deed: Deed = { kind: 'sleep', until: parsed.ok ? parsed.atMs : 0, spanMs: undefined }
  return { name: (options as { name?: string }).name ?? '', deed }
}

const WAIT: Fields = { fields: { timeout: isDurationOption, name: isOperationName } }

export function checkWait(
  event: unknown,
  options: unknown = {},
  { name: workflow, rules }: Workflow,
): { readonly name: string; readonly deed: Deed } {
  const problems = checkFields(options, 'options', WAIT)
  if (!isEvent(event)) problems.unshift({ path: 'the event', message: `must be made by event(), got ${show(event)}` })
  refuse('waitFor', problems)
  if (!isEvent(event)) throw new Error('refused above')
  const { events } = rules
  if (events !== undefined && !events.some(({ name }) => name === event.name)) {
    const near = didYouMean(event.name, events.map(({ name }) => name)) // prettier-ignore
    throw new UnknownEventError(event.name, `: workflow ${JSON.stringify(workflow)} does not list it in events${near}`)
  }
  const { timeout, name = event.name } = options as { timeout?: unknown; name?: string }
  return { name, deed: { kind: 'wait', event, timeoutMs: timeout === undefined ? undefined : milliseconds(timeout) } }
}

/** Options of the call itself; the others are those of an enqueue, which are checked with the job. */
export function checkCall(
  verb: 'call' | 'enqueue' | 'results',
  job: unknown,
  payload: unknown,
  given: unknown,
): { readonly name: string; readonly deed: Extract<Deed, { kind: 'call' | 'enqueue' }> } {
  const problems: Problem[] = []
  if (!isJob(job) && typeof job !== 'string')
    problems.push({ path: 'the job', message: `must be made by job() or workflow(), got ${show(job)}` })
  if (given !== undefined && !isOptionsObject(given))
    problems.push({ path: 'options', message: `must be an object, got ${show(given)}` })
  const { name, onCancel, ...options } = { ...(given as { name?: unknown; onCancel?: unknown; tx?: unknown }) }
  if (name !== undefined) problems.push(...named('options.name', isOperationName(name)))
  if (onCancel !== undefined && verb === 'call')
    problems.push(...named('options.onCancel', isOneOf('cancel', 'leave')(onCancel)))
  if (onCancel !== undefined && verb !== 'call')
    problems.push({ path: 'options.onCancel', message: 'belongs to w.call' })
  if (options.tx !== undefined)
    problems.push({ path: 'options.tx', message: 'is not taken: the job and its record are one commit already' })
  if (given !== undefined && problems.length === 0) problems.push(...checkEnqueueOptions(options, 'options'))
  refuse(verb, problems)
  const of = job as Enqueueable
  const deed = {
    kind: verb === 'call' ? 'call' : 'enqueue',
    job: of,
    payload,
    options,
    leaves: onCancel === 'leave',
  } as const
  return { name: (name as string | undefined) ?? (typeof of === 'string' ? of : of.name), deed }
}

const ALL: Fields = { fields: { concurrency: isCount(1) } }
const EACH: Fields = { fields: { concurrency: isCount(1), key: isFunction } }

export function branchesOf(
  verb: 'all' | 'race',
  branches: unknown,
  options: unknown = {},
): { readonly entries: [string, Branch][]; readonly isList: boolean; readonly concurrency: number } {
  const isList = Array.isArray(branches) && verb === 'all'
  const problems = checkFields(options, 'options', ALL)
  if (!isList && !isOptionsObject(branches))
    problems.push({ path: 'branches', message: `must be an object of functions, got ${show(branches)}` })
  const entries = problems.length > 0 ? [] : Object.entries(branches as Record<string, Branch>)
  if (verb === 'race' && entries.length === 0 && problems.length === 0)
    problems.push({ path: 'branches', message: 'must have at least one, or it would never end' })
  for (const [name, branch] of entries)
    if (typeof branch !== 'function')
      problems.push({ path: `branches.${name}`, message: `must be a function (w) => …, got ${show(branch)}` })
  refuse(verb, problems)
  return { entries, isList, concurrency: (options as { concurrency?: number }).concurrency ?? Infinity }
}

export function checkEach(
  name: unknown,
  items: unknown,
  turn: unknown,
  options: unknown = {},
): { readonly keys: readonly string[] | undefined; readonly concurrency: number } {
  const problems = [
    ...named('name', isOperationName(name)),
    ...named('its function', isFunction(turn)),
    ...checkFields(options, 'options', EACH),
  ]
  if (!Array.isArray(items)) problems.push({ path: 'items', message: `must be an array, got ${show(items)}` })
  else if (items.length > ITEMS_MAX)
    problems.push({
      path: 'items',
      message: `must be at most ${ITEMS_MAX}, got ${items.length}; use mill.sequence() for long lists`,
    })
  refuse('each', problems)
  const { key, concurrency = Infinity } = options as { key?: (item: unknown) => string; concurrency?: number }
  const keys = key === undefined ? undefined : (items as unknown[]).map((item) => key(item))
  if (keys !== undefined) refuse('each', keyProblems(keys))
  return { keys, concurrency }
}

function keyProblems(keys: readonly unknown[]): Problem[] {
  const seen = new Map<unknown, number>()
  return keys.flatMap((key, i) => {
    const wrong = isOperationName(key)
    const before = seen.get(key)
    seen.set(key, i)
    if (typeof wrong === 'string') return [{ path: `the key of items[${i}]`, message: wrong }]
    if (before === undefined) return []
    return [{ path: `the key of items[${i}]`, message: `is ${show(key)}, which items[${before}] has too` }]
  })
}

export function checkVersion(id: unknown, latest: unknown): void {
  refuse('version', [...named('the id', isOperationName(id)), ...named('latest', isCount(1)(latest))])
}

function named(path: string, wrong: ReturnType<Check>): Problem[] {
  if (wrong === undefined) return []
  return typeof wrong === 'string' ? [{ path, message: wrong }] : [...wrong]
}

function refuse(verb: string, problems: readonly Problem[]): void {
  if (problems.length > 0) throw new InvalidOptionsError(`w.${verb}()`, problems)
}

function milliseconds(value: unknown): number {
  const parsed = parseDuration(value)
  return parsed.ok ? parsed.ms : 0
}
