import { show } from '../../codec/show.js'
import type { Problem } from '../../errors.js'
import type { Check } from './check-fields.js'
import { didMean } from './check-fields.js'
import { parseDuration, parseInstant, parseWhen } from '../duration/duration.js'
import { KEY_MAX, NAME_MAX, textProblem } from './check-text.js'

/** Names are stored and displayed, so characters that a database or a terminal would change are refused. */
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

/** Infinity: no limit. */
export const isDurationOrInfinity: Check = (value) => (value === Infinity ? undefined : isDurationOption(value))

/** At least 1 ms: a timeout of 0 would end every attempt before it began. */
export const isTimeout: Check = (value) => {
  const wrong = isDurationOrInfinity(value)
  if (wrong !== undefined) return wrong
  const parsed = parseDuration(value)
  return parsed.ok && parsed.ms < 1 ? `must be 1 ms or more, got ${show(value)}` : undefined
}

export const isPositiveDuration =
  (min: number): Check =>
  (value) => {
    const parsed = parseDuration(value)
    if (!parsed.ok) return parsed.problem
    return parsed.ms >= min ? undefined : `must be ${min} ms or more, got ${show(value)}`
  }

const SLOW_AFTER_MIN_MS = 10
export const isSlowAfter: Check = isPositiveDuration(SLOW_AFTER_MIN_MS)

/** A duration from now or an instant; an instant in the past is allowed and means at once. */
export const isWhen: Check = (value) => {
  const parsed = parseWhen(value, 0)
  // An instant may be more than 100 years after 1970.
  return parsed.ok || parseInstant(value).ok ? undefined : parsed.problem
}

export const isCount =
  (min: number, max = Number.MAX_SAFE_INTEGER): Check =>
  (value) => {
    const count = Number.isInteger(value) ? (value as number) : NaN
    if (count >= min && count <= max) return undefined
    const bounds = max === Number.MAX_SAFE_INTEGER ? `of ${min} or more` : `from ${min} to ${max}`
    // The value of an environment variable is a string: suggest the number.
    const meant = typeof value === 'string' && /^\d+$/.test(value) ? String(Number(value)) : undefined
    return `must be a whole number ${bounds}, got ${show(value)}${didMean(meant)}`
  }

export const isBoolean: Check = (value) =>
  typeof value === 'boolean' ? undefined : `must be true or false, got ${show(value)}`
export const isFunction: Check = (value) =>
  typeof value === 'function' ? undefined : `must be a function, got ${show(value)}`
export const isOneOf =
  (...allowed: readonly unknown[]): Check =>
  (value) =>
    allowed.includes(value)
      ? undefined
      : `must be ${allowed.map((a) => JSON.stringify(a)).join(' or ')}, got ${show(value)}`

export const isShare: Check = (value) =>
  typeof value === 'number' && value >= 0 && value <= 1 ? undefined : `must be a number from 0 to 1, got ${show(value)}`
