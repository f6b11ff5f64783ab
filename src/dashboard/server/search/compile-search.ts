import { failureOf } from '../../../job/statistics/failure.js'
import type { JobFilter, JobRecord } from '../../../job/record.js'
import type { State } from '../../../job/rules/states.js'
import { isFinal } from '../../../job/rules/states.js'
import { valueAt } from '../../../job/rules/value-path.js'
import { checkSearch, durationOf, instantOf, parseSearch } from '../../search.js'
import type { Operator, SearchProblem, Term, Value } from '../../search.js'
import { Refusal } from '../parts.js'
import type { Parts } from '../parts.js'
import { changedAt } from '../views/job-row.js'

/** What a record is tested on. `shown` is what the user may see of it: a search must not find by what is hidden. */
export interface Tested {
  readonly record: JobRecord
  readonly shown: Pick<JobRecord, 'payload' | 'result' | 'meta' | 'captured' | 'title'>
}

type Test = (tested: Tested) => boolean

/** A search as a filter that an index serves, and the test of the rest. */
export interface Compiled {
  readonly filter: Omit<JobFilter, 'limit'>
  /** Undefined: the filter says all of it. */
  readonly test: Test | undefined
  /** A text that may be an id of a job. */
  readonly id: string | undefined
  /** The names of jobs or queues that no job has are no error: the user may search for them all the same. */
  readonly terms: readonly Term[]
}

/** The context of the words in a search. */
export interface SearchTimes {
  readonly now: number
  readonly deployedAt: number | undefined
  /** A handler that runs longer is slow. */
  readonly slowAfterMs: number
  /** The hosts and versions of the known workers, by their ids. */
  readonly workers: ReadonlyMap<string, { readonly host: string; readonly version: string | undefined }>
  /** Queue and job of the outages. */
  readonly probing: ReadonlySet<string>
}

const FINGERPRINT = /^[0-9a-f]{16}$/
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i
const ID_PREFIX = /^[0-9a-f]{8}[0-9a-f-]{0,28}$/i

/** Reads a search, or throws what is wrong with it. */
export function compileSearch(parts: Parts, text: string, times: SearchTimes): Compiled {
  const parsed = parseSearch(text)
  const problem = parsed.ok ? checkSearch(parsed.terms) : parsed.problem
  if (problem !== undefined) throw refused(problem)
  const terms = parsed.ok ? parsed.terms : []
  const [only] = terms
  const word =
    terms.length === 1 && only?.name === undefined && only?.negated === false ? only.values[0]?.text : undefined
  const left = new Map<string, Term[]>()
  const tests: Test[] = []
  for (const term of terms) {
    // The same qualifier twice is "or"; negated ones are each an exclusion.
    const name =
      term.negated || term.name === undefined || term.path.length > 0 || term.operator !== undefined
        ? `${left.size} !`
        : term.name
    left.set(name, [...(left.get(name) ?? []), term])
  }
  const filter: { -readonly [name in keyof JobFilter]: JobFilter[name] } = {}
  for (const [name, same] of left)
    if (!toFilter(parts, name, same, filter, times)) tests.push(anyOf(same.map((term) => testOf(parts, term, times))))
  const id = word !== undefined && UUID.test(word) ? word.toLowerCase() : undefined
  return {
    filter: filter as Compiled['filter'],
    test: tests.length === 0 ? undefined : (tested) => tests.every((test) => test(tested)),
    id,
    terms,
  }
}

export function refused({ text, hint, from, to }: SearchProblem): Refusal {
  return new Refusal('bad-search', text, { hint, at: { from, to } })
}

const anyOf =
  (tests: readonly Test[]): Test =>
  (tested) =>
    tests.some((test) => test(tested))

/** Terms that an index serves. False: they are tested job by job. */
function toFilter(
  { mill }: Parts,
  name: string,
  terms: readonly Term[],
  filter: { -readonly [field in keyof JobFilter]: JobFilter[field] },
  times: SearchTimes,
): boolean {
  const values = terms.flatMap((term) => term.values)
  const texts = values.map(({ text }) => text)
  const isPlain = values.every(({ prefix }) => !prefix)
  switch (name) {
    case 'state':
      filter.state = texts as State[]
      return true
    case 'queue':
      if (isPlain) filter.queue = texts
      return isPlain
    case 'job':
      filter.job = values.flatMap((value) => jobNames(mill, value))
      // A prefix that fits no registered job may fit stored ones.
      if ((filter.job as string[]).length > 0) return true
      delete filter.job
      return false
    case 'print':
      // Only a whole fingerprint is indexed.
      if (texts.length === 1 && FINGERPRINT.test(texts[0] as string)) filter.fingerprint = texts[0] as string
      return filter.fingerprint !== undefined
    case 'after':
      if (texts.length === 1 && UUID.test(texts[0] as string)) filter.after = (texts[0] as string).toLowerCase()
      return filter.after !== undefined
    case 'label':
    case 'key':
    case 'group':
      if (isPlain && texts.length === 1) filter[name] = texts[0] as string
      return isPlain && texts.length === 1
    case 'since':
      if (texts.length === 1) filter.createdAfter = new Date(at(texts[0] as string, times))
      return texts.length === 1
    case 'until':
      if (texts.length === 1) filter.createdBefore = new Date(at(texts[0] as string, times))
      return texts.length === 1
    default:
      return false
  }
}

/** A name, or those of the jobs of a category, or those that begin so. */
function jobNames(mill: Parts['mill'], { text, prefix }: Value): string[] {
  const registered = mill.jobs()
  if (prefix) return registered.map(({ name }) => name).filter((name) => name.startsWith(text))
  const inCategory = registered.filter(({ categories }) => categories.includes(text)).map(({ name }) => name)
  return inCategory.length > 0 ? inCategory : [text]
}

function at(text: string, times: SearchTimes): number {
  const instant = instantOf(text, times)
  if (instant !== undefined) return instant
  throw new Refusal('bad-search', 'No deploy is known: no worker runs.', { hint: 'Name a time, such as since:1h.' })
}

function testOf(parts: Parts, term: Term, times: SearchTimes): Test {
  const test = positiveTest(parts, term, times)
  return term.negated ? (tested) => !test(tested) : test
}

/** What a qualifier compares as text. */
const TEXTS: Readonly<Record<string, (record: JobRecord, times: SearchTimes) => readonly (string | undefined)[]>> = {
  state: ({ state }) => [state],
  queue: ({ queue }) => [queue],
  label: ({ labels }) => labels,
  key: ({ key }) => [key],
  group: ({ group }) => [group],
  schedule: ({ tick }) => [tick?.schedule],
  sequence: ({ id }) => [id],
  after: ({ after }) => after,
  host: (record, { workers }) => [workers.get(lastWorker(record))?.host],
  version: (record, { workers }) => [workers.get(lastWorker(record))?.version],
}

/** What a qualifier compares as a number or a duration. */
const NUMBERS: Readonly<Record<string, (record: JobRecord, times: SearchTimes) => number | undefined>> = {
  attempt: ({ attempt }) => attempt,
  priority: ({ priority }) => priority,
  took: tookMs,
  wait: (record, { now }) => waitMs(record, now),
}

/** What a qualifier finds in its own way. */
const TESTS: Readonly<Record<string, (parts: Parts, value: Value, tested: Tested, times: SearchTimes) => boolean>> = {
  job: ({ mill }, value, { record }) => isText(record.job, value) || jobNames(mill, value).includes(record.job),
  print: (_parts, { text }, { record }) => fingerprints(record).some((each) => each.startsWith(text.toLowerCase())),
  since: (_parts, { text }, { record }, times) => record.createdAt.getTime() > at(text, times),
  until: (_parts, { text }, { record }, times) => record.createdAt.getTime() < at(text, times),
  changed: (_parts, { text }, { record }, times) => changedAt(record) > at(text, times),
  error: (parts, { text }, { record }) => errorTexts(parts, record).some((each) => hasPart(each, text)),
  log: (parts, { text }, { record }) =>
    !parts.isSealed(record.job) &&
    record.attempts.some(({ log }) => log?.some((line) => hasPart(shownLine(parts, line), text)) === true),
  title: (_parts, { text }, { shown }) => hasPart(shown.title ?? '', text),
  worker: (_parts, { text }, { record }) => lastWorker(record).startsWith(text),
  is: (parts, { text }, { record }, times) => isOfKind(parts, text, record, times),
}

/** The test of one term, or of a list of values. */
function positiveTest(parts: Parts, term: Term, times: SearchTimes): Test {
  const { name, path, operator, values } = term
  if (name === undefined) return wordTest(parts, (values[0] as Value).text)
  const any =
    (test: (value: Value, tested: Tested) => boolean): Test =>
    (tested) =>
      values.some((value) => test(value, tested))
  const [textsOf, numberIn, test] = [own(TEXTS, name), own(NUMBERS, name), own(TESTS, name)]
  if (textsOf !== undefined)
    return any((value, { record }) => textsOf(record, times).some((each) => each !== undefined && isText(each, value)))
  if (numberIn !== undefined)
    return any(({ text }, { record }) => compares(numberIn(record, times), operator, durationOf(text) ?? Number(text)))
  if (test !== undefined) return any((value, tested) => test(parts, value, tested, times))
  if (name === 'due')
    return any(({ text }, { record }) => compares(record.dueAt.getTime(), operator ?? '<', dueAt(text, times)))
  const place = name as 'payload' | 'result' | 'meta' | 'captured'
  return any(
    (value, { record, shown }) =>
      !isHiddenValue(parts, record, place) && fits(valueAt(shown[place], path), operator, value),
  )
}

function own<T>(of: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(of, name) ? of[name] : undefined
}

function lastWorker({ attempts }: JobRecord): string {
  return attempts.at(-1)?.worker ?? ''
}

/** Texts are searched as the least role sees them: what is hidden from it must not be found. */
function shownLine(parts: Parts, line: string): string {
  return parts.hasRules ? parts.showFor('viewer').text(line) : line
}

/** A duration ahead: due:1h is what becomes due within an hour. */
function dueAt(when: string, times: SearchTimes): number {
  const span = durationOf(when)
  return span === undefined ? at(when, times) : times.now + span
}

const isText = (text: string, { text: wanted, prefix }: Value): boolean =>
  prefix ? text.startsWith(wanted) : text === wanted
const hasPart = (text: string, part: string): boolean => text.toLowerCase().includes(part.toLowerCase())

function compares(value: number | undefined, operator: Operator | undefined, to: number): boolean {
  if (value === undefined) return false
  switch (operator) {
    case '>':
      return value > to
    case '>=':
      return value >= to
    case '<':
      return value < to
    case '<=':
      return value <= to
    case undefined:
      return value === to
    default:
      return operator satisfies never
  }
}

/** Equal by text, number, true, false and null; a text also equals what is written so. */
function fits(value: unknown, operator: Operator | undefined, { text, quoted, prefix }: Value): boolean {
  if (operator !== undefined) return compares(numberOf(value), operator, comparedTo(text))
  if (value === null) return !quoted && text === 'null'
  if (value instanceof Date) return value.toISOString().startsWith(text)
  const written = textOf(value)
  return written !== undefined && (prefix ? written.startsWith(text) : written === text)
}

function textOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value
  return typeof value === 'number' || typeof value === 'boolean' || typeof value === 'bigint'
    ? String(value)
    : undefined
}

function numberOf(value: unknown): number | undefined {
  if (typeof value === 'number' || typeof value === 'bigint') return Number(value)
  if (value instanceof Date) return value.getTime()
  if (typeof value !== 'string') return undefined
  const written = comparedTo(value)
  return Number.isNaN(written) ? undefined : written
}

function comparedTo(text: string): number {
  return /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : Date.parse(text)
}

/** Encrypted values never match. */
function isHiddenValue(parts: Parts, { job }: JobRecord, name: string): boolean {
  return name !== 'captured' && parts.isSealed(job)
}

function errorTexts(parts: Parts, { error, attempts, job }: JobRecord): readonly string[] {
  const last = error ?? attempts.findLast((attempt) => attempt.error !== undefined)?.error
  if (last === undefined) return []
  if (parts.isSealed(job)) return [last.type ?? last.name]
  return [last.type ?? last.name, last.name, shownLine(parts, last.message), String(last.code ?? '')]
}

function fingerprints({ job, error, attempts }: JobRecord): readonly string[] {
  const thrown = [error, ...attempts.map((attempt) => attempt.error)]
  return thrown.flatMap((each) => (each === undefined ? [] : [failureOf(job, each).fingerprint]))
}

function wordTest(parts: Parts, word: string): Test {
  const isId = ID_PREFIX.test(word)
  return ({ record, shown }) => {
    if (isId && record.id.startsWith(word.toLowerCase())) return true
    const texts = [shown.title ?? '', record.key ?? '', ...record.labels, ...errorTexts(parts, record)]
    if (texts.some((text) => hasPart(text, word))) return true
    return !parts.isSealed(record.job) && hasText(shown.payload, word.toLowerCase(), 0)
  }
}

const DEPTH_MAX = 32

/** Whether a text, number or key within a value has these characters. */
function hasText(value: unknown, part: string, depth: number): boolean {
  if (typeof value === 'string') return value.toLowerCase().includes(part)
  if (typeof value === 'number' || typeof value === 'bigint') return String(value).includes(part)
  if (value instanceof Date) return value.toISOString().toLowerCase().includes(part)
  if (typeof value !== 'object' || value === null || depth > DEPTH_MAX) return false
  const hasIt = (each: unknown): boolean => hasText(each, part, depth + 1)
  if (Array.isArray(value) || value instanceof Set) return [...(value as Iterable<unknown>)].some(hasIt)
  if (value instanceof Map) return [...value].some(([key, one]) => hasIt(key) || hasIt(one))
  return Object.entries(value).some(([key, one]) => key.toLowerCase().includes(part) || hasIt(one))
}

function tookMs({ attempts, state }: JobRecord): number | undefined {
  const last = attempts.at(-1)
  return last === undefined || state === 'running' ? undefined : last.endedAt.getTime() - last.startedAt.getTime()
}

function waitMs({ dueAt: due, startedAt, attempts, state }: JobRecord, now: number): number | undefined {
  const started = attempts[0]?.startedAt ?? startedAt
  if (started !== undefined) return Math.max(0, started.getTime() - due.getTime())
  return isFinal(state) ? undefined : Math.max(0, now - due.getTime())
}

function isOfKind(parts: Parts, kind: string, record: JobRecord, times: SearchTimes): boolean {
  switch (kind) {
    case 'recurring':
      return record.tick !== undefined
    case 'encrypted':
      return parts.isSealed(record.job)
    case 'unfinished':
      return !isFinal(record.state)
    case 'final':
      return isFinal(record.state)
    case 'slow':
      return (
        record.state === 'running' &&
        record.startedAt !== undefined &&
        times.now - record.startedAt.getTime() > times.slowAfterMs
      )
    case 'probing':
      return record.state === 'retrying' && times.probing.has(`${record.queue}\n${record.job}`)
    case 'workflow':
      return parts.isWorkflow(record.job)
    default:
      throw new Refusal('not-in-this-version', `A search for is:${kind} is not in this version.`)
  }
}
