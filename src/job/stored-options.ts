import type { RetryOptions } from './retry.js'
import type { PlaceRequest } from './unique.js'

/** What was given at enqueue beyond queue, priority, key and times, as it stands in the job's row. */
export interface StoredOptions {
  readonly title?: string | undefined
  readonly labels?: readonly string[] | undefined
  readonly retry?: RetryOptions | undefined
  /** Milliseconds; null lifts the limit (JSON has no Infinity). */
  readonly timeout?: number | null | undefined
  /** Written by the job's codec, which may write bytes: then as base64. */
  readonly meta?: { readonly text: string } | { readonly base64: string } | undefined
  /** The place it took when it was enqueued, to be taken anew by a retry. */
  readonly unique?: Pick<PlaceRequest, 'key' | 'while'> | undefined
}

export const NO_OPTIONS: StoredOptions = {}

/** JSON text, or null when there is nothing to keep; it escapes NUL and lone surrogates, so every store keeps it whole. */
export function writeOptions(options: StoredOptions): string | null {
  for (const value of Object.values(options)) if (value !== undefined) return JSON.stringify(options, infinities)
  return null
}

export function readOptions(text: string | null): StoredOptions {
  return text === null ? NO_OPTIONS : (JSON.parse(text, fromInfinities) as StoredOptions)
}

/** The new options of a job that keeps the place it has. */
export function withPlaceOf(before: string | null, after: string | null): string | null {
  return writeOptions({ ...readOptions(after), unique: readOptions(before).unique })
}

const INFINITE = '\u221e'
function infinities(_: string, value: unknown): unknown {
  return value === Infinity ? INFINITE : value
}
function fromInfinities(key: string, value: unknown): unknown {
  return key === 'limit' && value === INFINITE ? Infinity : value
}
