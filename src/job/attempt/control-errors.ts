import { show } from '../../codec/show.js'
import type { Duration } from '../duration/duration.js'

/**
 * What a handler throws to say more than "it failed". Recognised by brand, never by `instanceof`, so that two copies of
 * the package in one process understand each other.
 */
const ABORT = Symbol.for('millrace.abort')
const SNOOZE = Symbol.for('millrace.snooze')

/**
 * Thrown in a handler: give up at once, whatever the retry policy says.
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
 * Thrown in a handler: try again later, without counting this attempt.
 *
 * ```ts
 * import { job, Snooze } from 'millrace'
 * export const poll = job('poll-export', async (p: { url: string }) => {
 *   const response = await fetch(p.url)
 *   if (response.status === 202) throw new Snooze('10m')
 * })
 * ```
 */
export class Snooze extends Error {
  readonly [SNOOZE] = true
  readonly delay: Duration
  constructor(delay: Duration) {
    super(`snoozed for ${show(delay)}`)
    this.name = 'Snooze'
    this.delay = delay
  }
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
    return false // A proxy that throws is not ours.
  }
}
