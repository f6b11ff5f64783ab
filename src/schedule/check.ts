import { didYouMean } from '../codec/near-name.js'
import { show } from '../codec/show.js'
import type { Problem } from '../errors.js'
import type { Check } from '../job/definition/check-fields.js'
import { checkFields } from '../job/definition/check-fields.js'
import { checkEnqueueOptions, checkName, isCount, isDurationOption, isOneOf } from '../job/definition/check-options.js'
import { parseInstant } from '../job/duration/duration.js'
import { FOREIGN_SCHEDULE_OPTIONS } from '../job/definition/foreign-option-names.js'
import { nextTick, parseRule } from './calendar.js'
import type { ParsedRule } from './calendar.js'
import type { RecurringOptions } from './record.js'

/** An instant, not a delay from now: the same call after a restart must mean the same. */
const isInstant: Check = (value) => {
  const parsed = parseInstant(value)
  return parsed.ok ? undefined : parsed.problem
}

const OWN: { readonly [name: string]: Check } = {
  timezone: () => undefined, // parseRule checks it together with the rule.
  missed: isOneOf('skip', 'once', 'all'),
  overlap: isOneOf('allow', 'skip', 'wait', 'cancel'),
  jitter: isDurationOption,
  from: isInstant,
  until: isInstant,
  expires: isDurationOption,
}

const REFUSED: Readonly<Record<string, string>> = {
  in: 'cannot be given: the rule says when; use from',
  at: 'cannot be given: the rule says when; use from',
  tx: 'cannot be given: a schedule is written by itself',
}

/** The problems of a call of `recurring()`, except those of its job and payload. `rest` are the enqueue options of its jobs. */
export function checkRecurring(
  id: unknown,
  rule: unknown,
  options: unknown,
): { readonly problems: readonly Problem[]; readonly own: RecurringOptions; readonly rest: object } {
  const { own, rest, problems } = splitOptions(options)
  const parsed = parseRule(rule, own['timezone'])
  problems.unshift(...checkName('id', id), ...(parsed.ok ? [] : parsed.problems))
  problems.push(...checkFields(own, 'options', { fields: OWN }), ...boundProblems(own, parsed))
  // Reported here, once, with the names of all options.
  problems.push(...checkEnqueueOptions(rest, 'options').map((problem) => near(problem)))
  return { problems, own, rest }
}

interface SplitOptions {
  readonly own: Record<string, unknown>
  readonly rest: Record<string, unknown>
  readonly problems: Problem[]
}

function splitOptions(options: unknown): SplitOptions {
  const parts: SplitOptions = { own: {}, rest: {}, problems: [] }
  if (options === undefined) return parts
  const [wrong] = checkFields(options, 'options', { fields: {} }).filter(({ path }) => path === 'options')
  if (wrong !== undefined) return { ...parts, problems: [wrong] }
  for (const [name, value] of Object.entries(options as object)) {
    const refused = Object.hasOwn(REFUSED, name) ? REFUSED[name] : undefined
    const advice = Object.hasOwn(FOREIGN_SCHEDULE_OPTIONS, name) ? FOREIGN_SCHEDULE_OPTIONS[name] : undefined
    if (advice !== undefined) parts.problems.push({ path: `options.${name}`, message: `is not an option; ${advice}` })
    else if (refused !== undefined && value !== undefined)
      parts.problems.push({ path: `options.${name}`, message: refused })
    else if (Object.hasOwn(OWN, name)) parts.own[name] = value
    else if (refused === undefined) parts.rest[name] = value
  }
  return parts
}

/** Checked only if both bounds are given: `until` alone may be in the past when an app repeats the call at its start. */
function boundProblems(own: Record<string, unknown>, parsed: ParsedRule): Problem[] {
  const [from, until] = [parseInstant(own['from']), parseInstant(own['until'])]
  if (!from.ok || !until.ok) return []
  const got = `got ${show(own['until'])}`
  if (until.atMs < from.atMs) return [{ path: 'options.until', message: `must not be before from, ${got}` }]
  const first = parsed.ok ? nextTick(parsed.rule, from.atMs - 1, from.atMs) : from.atMs
  if (first !== undefined && first <= until.atMs) return []
  const when = first === undefined ? 'there is none' : `the first one from there on is ${new Date(first).toISOString()}`
  return [{ path: 'options.until', message: `must leave a tick of the rule, ${got}: it would never fire; ${when}` }]
}

function near(problem: Problem): Problem {
  if (problem.message !== 'is not an option') return problem
  const name = problem.path.slice('options.'.length)
  return { ...problem, message: `${problem.message}${didYouMean(name, Object.keys(OWN))}` }
}

/** Checks the two bounds of a backfill. */
export function checkBackfill(from: unknown, to: unknown): { problems: Problem[]; fromAt: number; toAt: number } {
  const [first, last] = [parseInstant(from), parseInstant(to)]
  const problems: Problem[] = []
  if (!first.ok) problems.push({ path: 'from', message: first.problem })
  if (!last.ok) problems.push({ path: 'to', message: last.problem })
  if (first.ok && last.ok && last.atMs < first.atMs)
    problems.push({ path: 'to', message: `must not be before from (${iso(first.atMs)}), got ${iso(last.atMs)}` })
  return { problems, fromAt: first.ok ? first.atMs : 0, toAt: last.ok ? last.atMs : 0 }
}

export function iso(ms: number): string {
  return new Date(ms).toISOString()
}

export const LIST_MAX = 10_000

export function checkListOptions(options: unknown): Problem[] {
  return checkFields(options, '', { fields: { limit: isCount(1, LIST_MAX), after: isText } })
}

export function checkTicksOptions(options: unknown): Problem[] {
  return checkFields(options, '', { fields: { limit: isCount(1, LIST_MAX), before: isInstant } })
}

export function checkUpcomingOptions(options: unknown): Problem[] {
  return checkFields(options, '', { fields: { limit: isCount(1, LIST_MAX) } })
}

const isText: Check = (value) => (typeof value === 'string' ? undefined : `must be text, got ${show(value)}`)
