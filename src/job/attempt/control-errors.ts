import { show } from '../../codec/show.js'
import { formatDuration, parseDuration, parseInstant } from '../duration/duration.js'
import type { When } from '../duration/duration.js'

/**
 * Errors that a handler throws to control what happens next. Recognised by brand, never by `instanceof`: two copies of the package
 * in one process must recognise each other's errors.
 */
const ABORT = Symbol.for('millrace.abort')
const SNOOZE = Symbol.for('millrace.snooze')

/**
 * Thrown in a handler: fail the job at once, without retries.
 *
 * ```ts
 * import { job, Abort } from 'millrace'
 * export const charge = job('charge', async (p: { card: string }) => {
 *   if (p.card === '') throw new Abort('the card was removed')
 * })
 * ```
 */
export class Abort extends Error {
  readonly [ABORT] = true
  constructor(reason: string, options?: { cause?: unknown }) {
    super(reason, options)
    this.name = 'Abort'
  }
}

/**
 * Thrown in a handler: try again later, without counting this attempt. It takes a duration, or an instant that is still to
 * come: a Date, a Temporal.Instant or ISO text. With anything else the attempt fails, and is retried as after any error.
 *
 * ```ts
 * import { job, Snooze } from 'millrace'
 * export const poll = job('poll-export', async (p: { url: string; opensAt: Date }) => {
 *   if (p.opensAt > new Date()) throw new Snooze(p.opensAt)
 *   const response = await fetch(p.url)
 *   if (response.status === 202) throw new Snooze('10m')
 * })
 * ```
 */
export class Snooze extends Error {
  readonly [SNOOZE] = true
  readonly delay: When
  constructor(delay: When) {
    super(`snoozed ${textOf(delay)}`)
    this.name = 'Snooze'
    this.delay = delay
  }
}

/** What is neither is refused when the attempt is settled: here it only must not throw. */
function textOf(delay: unknown): string {
  const span = parseDuration(delay)
  if (span.ok) return `for ${formatDuration(span.ms)}`
  const instant = parseInstant(delay)
  return instant.ok ? `until ${new Date(instant.atMs).toISOString()}` : `for ${show(delay)}`
}

export function isAbort(thrown: unknown): thrown is Abort {
  return isBranded(thrown, ABORT)
}

export function isSnooze(thrown: unknown): thrown is Snooze {
  return isBranded(thrown, SNOOZE)
}

function isBranded(thrown: unknown, brand: symbol): boolean {
  if (typeof thrown !== 'object' || thrown === null) return false
  try {
    return (thrown as Record<symbol, unknown>)[brand] === true
  } catch {
    return false // A proxy that throws is none of these.
  }
}
