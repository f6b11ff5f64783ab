import type { Codec } from '../../codec/codec.js'
import type { Encoded } from '../rules/outcome.js'
import type { RetryOptions } from '../rules/retry.js'
import type { UniqueSlotRequest } from '../rules/unique.js'

/** A value as a codec wrote it; bytes stand as base64. */
export type StoredValue = { readonly text: string } | { readonly base64: string }

/** What `capture` took at the enqueue, by name. */
export type Captured = Readonly<Record<string, StoredValue>>

/** What was given at enqueue beyond queue, priority, key and times, as it stands in the job's row. */
export interface StoredOptions {
  readonly title?: string | undefined
  readonly labels?: readonly string[] | undefined
  readonly retry?: RetryOptions | undefined
  /** Milliseconds; null lifts the limit (JSON has no Infinity). */
  readonly timeout?: number | null | undefined
  /** Written by the job's codec. */
  readonly meta?: StoredValue | undefined
  /** Written by the mill's codec, each by itself: a mill that does not know a name never reads it. */
  readonly captured?: Captured | undefined
  /** The place it took when it was enqueued, to be taken anew by a retry. */
  readonly unique?: Pick<UniqueSlotRequest, 'key' | 'while'> | undefined
  /** The tick that enqueued it. */
  readonly tick?: { readonly schedule: string; readonly at: number } | undefined
}

export const NO_OPTIONS: StoredOptions = {}

/** JSON text, or null when there is nothing to keep; it escapes NUL and lone surrogates, so every store keeps it whole. */
export function writeOptions(options: StoredOptions): string | null {
  if (options === NO_OPTIONS) return null
  for (const value of Object.values(options)) if (value !== undefined) return JSON.stringify(options, infinities)
  return null
}

export function readOptions(text: string | null): StoredOptions {
  return text === null ? NO_OPTIONS : (JSON.parse(text, fromInfinities) as StoredOptions)
}

/** By the text alone; true also where only a nested value has that name. */
export function mayHaveLabels(text: string | null): text is string {
  return text !== null && text.includes('"labels"')
}

/** Each label once. */
export function labelsOf(text: string | null): readonly string[] {
  return mayHaveLabels(text) ? [...new Set(readOptions(text).labels ?? [])] : []
}

export function toStoredValue(codec: Codec, value: unknown): StoredValue {
  const written = codec.encode(value)
  return typeof written === 'string' ? { text: written } : { base64: Buffer.from(written).toString('base64') }
}

/** As the codec wrote it, to be decoded. */
export function fromStoredValue(written: StoredValue): Encoded {
  return 'text' in written ? written.text : new Uint8Array(Buffer.from(written.base64, 'base64'))
}

/** The new options of a job that is moved: whatever moves it, it stays the job of the tick that enqueued it, or of none. */
export function withTickOf(before: string | null, after: string | null): string | null {
  return writeOptions({ ...readOptions(after), tick: readOptions(before).tick })
}

/** The same for one that keeps the place it has. */
export function withSlotOf(before: string | null, after: string | null): string | null {
  const { unique, tick } = readOptions(before)
  return writeOptions({ ...readOptions(after), unique, tick })
}

const INFINITE = '\u221e'
function infinities(_: string, value: unknown): unknown {
  return value === Infinity ? INFINITE : value
}
function fromInfinities(key: string, value: unknown): unknown {
  return key === 'limit' && value === INFINITE ? Infinity : value
}
