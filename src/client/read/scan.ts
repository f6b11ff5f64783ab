import { formatPath, joinPath } from '../../codec/path.js'
import { show } from '../../codec/show.js'
import type { Problem } from '../../errors.js'
import { isOptionsObject } from '../../codec/options-object.js'
import { checkFields } from '../../job/definition/check-fields.js'
import type { Check } from '../../job/definition/check-fields.js'
import { textProblem } from '../../job/definition/check-text.js'
import { parseInstant } from '../../job/duration/duration.js'
import type { JobFilter, JobRecord, ValueTest } from '../../job/record.js'
import { parseValuePath, valueAt } from '../../job/rules/value-path.js'
import type { JobRow } from '../../store/store.js'

/*
 * The parts of a filter that no index serves. The store finds jobs by the other parts, and each of them is tested here,
 * on its decoded values: so a codec of the app and encrypted payloads are searched alike on both stores.
 */

const TEXT_MAX = 500
const isText: Check = (value) => textProblem(value, TEXT_MAX, 'text')
const COMPARED = ['gt', 'gte', 'lt', 'lte'] as const

const isComparable = (value: unknown): boolean => typeof value === 'number' || value instanceof Date

const isValueTest: Check = (value) => {
  if (value === null || ['string', 'number', 'boolean'].includes(typeof value)) return undefined
  if (!isOptionsObject(value))
    return `must be a text, a number, true, false, null, or { gt, gte, lt, lte }, got ${show(value)}`
  const compared: Check = (each) => (isComparable(each) ? undefined : `must be a number or a Date, got ${show(each)}`)
  const problems = checkFields(value, '', { fields: Object.fromEntries(COMPARED.map((name) => [name, compared])) })
  return problems.length > 0 || !isEmptyRange(value as Range) ? problems : `holds no value, got ${show(value)}`
}

type Range = Exclude<ValueTest, string | number | boolean | null>

/** Whether its lower bound is above its upper one. */
function isEmptyRange({ gt, gte, lt, lte }: Range): boolean {
  const [lowest, highest] = [
    Math.max(boundOf(gt, -Infinity), boundOf(gte, -Infinity)),
    Math.min(boundOf(lt, Infinity), boundOf(lte, Infinity)),
  ]
  const isOpen = boundOf(gt, -Infinity) === lowest || boundOf(lt, Infinity) === highest
  return lowest > highest || (lowest === highest && isOpen)
}

function boundOf(given: number | Date | undefined, none: number): number {
  return given === undefined ? none : numberOf(given)
}

const isValueFilter: Check = (value) => {
  if (!isOptionsObject(value)) return `must be an object of paths, such as { "user.id": 42 }, got ${show(value)}`
  return Object.entries(value).flatMap(([path, test]): readonly Problem[] => {
    const steps = parseValuePath(path)
    const wrong = typeof steps === 'string' ? `is no path: it ${steps}` : isValueTest(test)
    if (wrong === undefined) return []
    const at = formatPath([path])
    return typeof wrong === 'string'
      ? [{ path: at, message: wrong }]
      : wrong.map((each) => ({ ...each, path: joinPath(at, each.path) }))
  })
}

/** The checks of the fields that are scanned. */
export const SCAN_FIELDS: { readonly [name: string]: Check } = {
  labels: (value) =>
    Array.isArray(value) && value.length > 0
      ? value.map(isText).find((wrong) => wrong !== undefined)
      : `must be an array of labels, got ${show(value)}`,
  payload: isValueFilter,
  result: isValueFilter,
  meta: isValueFilter,
  captured: isValueFilter,
  error: isText,
  text: isText,
  worker: isText,
  changedAfter: (value) => {
    const parsed = parseInstant(value)
    return parsed.ok ? undefined : parsed.problem
  },
}

type Match = (record: JobRecord, row: JobRow) => boolean

/** The test of the scanned fields; undefined when the filter has none. */
export function matcherOf(filter: JobFilter): Match | undefined {
  const tests: Match[] = []
  const { labels, error, text, worker } = filter
  if (labels !== undefined) tests.push((record) => labels.every((label) => record.labels.includes(label)))
  for (const name of ['payload', 'result', 'meta', 'captured'] as const)
    for (const [path, test] of Object.entries(filter[name] ?? {})) tests.push(valueTest(name, path, test))
  if (error !== undefined) tests.push((record) => hasError(record, error.toLowerCase()))
  if (text !== undefined) tests.push((record, row) => hasText(record, row, text.toLowerCase()))
  if (worker !== undefined) tests.push((record) => lastWorker(record)?.startsWith(worker) === true)
  const after = parseInstant(filter.changedAfter)
  if (filter.changedAfter !== undefined && after.ok) tests.push((record) => changedAt(record) > after.atMs)
  return tests.length === 0 ? undefined : (record, row) => tests.every((each) => each(record, row))
}

function valueTest(of: 'payload' | 'result' | 'meta' | 'captured', path: string, test: ValueTest): Match {
  const steps = parseValuePath(path)
  return (record) => typeof steps !== 'string' && fits(valueAt(record[of], steps), test)
}

/** A text also matches a number, a boolean or a big integer that is written so: a search box has only texts. */
function fits(value: unknown, test: ValueTest): boolean {
  if (test !== null && typeof test === 'object') return inRange(value, test)
  if (value === test) return true
  if (typeof test !== 'string') return typeof value === 'bigint' && typeof test === 'number' && value === BigInt(test)
  if (value instanceof Date) return value.toISOString() === test
  return ['number', 'boolean', 'bigint'].includes(typeof value) && String(value) === test
}

function inRange(value: unknown, range: Range): boolean {
  const at = numberOf(value)
  if (Number.isNaN(at)) return false
  const { gt, gte, lt, lte } = range
  return (
    (gt === undefined || at > numberOf(gt)) &&
    (gte === undefined || at >= numberOf(gte)) &&
    (lt === undefined || at < numberOf(lt)) &&
    (lte === undefined || at <= numberOf(lte))
  )
}

function numberOf(value: unknown): number {
  if (typeof value === 'number' || typeof value === 'bigint') return Number(value)
  return value instanceof Date ? value.getTime() : NaN
}

function hasError({ error, attempts }: JobRecord, text: string): boolean {
  const last = error ?? attempts.findLast((attempt) => attempt.error !== undefined)?.error
  if (last === undefined) return false
  const code = (last as { readonly code?: unknown }).code
  return [last.name, last.message, typeof code === 'string' ? code : ''].some((each) =>
    each.toLowerCase().includes(text),
  )
}

function hasText(record: JobRecord, row: JobRow, text: string): boolean {
  const payload = typeof row.payload === 'string' ? row.payload : ''
  const texts = [record.title ?? '', record.key ?? '', record.reason ?? '', payload, ...record.labels]
  return texts.some((each) => each.toLowerCase().includes(text)) || hasError(record, text)
}

function lastWorker({ worker, attempts }: JobRecord): string | undefined {
  return worker ?? attempts.at(-1)?.worker
}

/** The last change that the record shows. */
function changedAt({ createdAt, startedAt, settledAt, attempts }: JobRecord): number {
  const ended = attempts.at(-1)?.endedAt
  return Math.max(...[createdAt, startedAt, settledAt, ended].map((at) => at?.getTime() ?? 0))
}
