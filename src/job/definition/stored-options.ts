import type { Codec } from '../../codec/codec.js'
import type { Encoded } from '../rules/outcome.js'
import type { EnqueueChain } from '../limits/recursion.js'
import type { RetryOptions } from '../rules/retry.js'
import type { UniqueSlotRequest } from '../rules/unique.js'

/** A value encoded by a codec; bytes are stored as base64. */
export type StoredValue = { readonly text: string } | { readonly base64: string }

/** The values that `capture` read at the enqueue, by name. */
export type Captured = Readonly<Record<string, StoredValue>>

/** The options of an enqueue that have no column of their own, as they are stored in the job's row. */
export interface StoredOptions {
  readonly title?: string | undefined
  readonly labels?: readonly string[] | undefined
  readonly retry?: RetryOptions | undefined
  /** Milliseconds; null: no limit (JSON has no Infinity). */
  readonly timeout?: number | null | undefined
  /** The version of the payload (`upcast`). Default 0. */
  readonly version?: number | undefined
  /** Encoded by the job's codec. */
  readonly meta?: StoredValue | undefined
  /** Encoded by the mill's codec, each value separately: a mill that does not capture a name never decodes it. */
  readonly captured?: Captured | undefined
  /** The unique slot that it took at the enqueue; a retry takes it again. */
  readonly unique?: Pick<UniqueSlotRequest, 'key' | 'while'> | undefined
  /** The SQL function `add_job` enqueued it. */
  readonly sql?: true | undefined
  /** The tick that enqueued it. */
  readonly tick?: { readonly schedule: string; readonly at: number } | undefined
  /** The workflow that called or enqueued it. */
  readonly calledBy?: CalledBy | undefined
  /** A job of the same name enqueued it. */
  readonly chain?: EnqueueChain | undefined
  /** The job is a sequence of so many items. */
  readonly sequence?: { readonly total: number } | undefined
}

export interface CalledBy {
  readonly id: string
  /** Calls within calls. */
  readonly depth: number
}

export const NO_OPTIONS: StoredOptions = {}

/** JSON text, or null when no option is set. JSON escapes NUL and lone surrogates, so every store can hold it. */
export function writeOptions(options: StoredOptions): string | null {
  if (options === NO_OPTIONS) return null
  for (const value of Object.values(options)) if (value !== undefined) return JSON.stringify(options, infinities)
  return null
}

export function readOptions(text: string | null): StoredOptions {
  return text === null ? NO_OPTIONS : (JSON.parse(text, fromInfinities) as StoredOptions)
}

/** A fast test of the text, without parsing. It is also true when only a nested value has that name. */
export function mayHaveLabels(text: string | null): text is string {
  return text !== null && text.includes('"labels"')
}

export function labelsOf(text: string | null): readonly string[] {
  return mayHaveLabels(text) ? [...new Set(readOptions(text).labels ?? [])] : []
}

/** Whether the options are those of a sequence. Most jobs have none, and then no text is parsed. */
export function isSequence(text: string | null): boolean {
  return text !== null && text.includes('"sequence":{"total":') && readOptions(text).sequence !== undefined
}

/** Whether `add_job` enqueued it. */
export function isOfSql(text: string | null): boolean {
  return text !== null && text.includes('"sql":true') && readOptions(text).sql === true
}

export function toStoredValue(codec: Codec, value: unknown): StoredValue {
  const encoded = codec.encode(value)
  return typeof encoded === 'string' ? { text: encoded } : { base64: Buffer.from(encoded).toString('base64') }
}

/** The output of the codec, to be decoded. */
export function fromStoredValue(stored: StoredValue): Encoded {
  return 'text' in stored ? stored.text : new Uint8Array(Buffer.from(stored.base64, 'base64'))
}

/**
 * The new options of a job that a unique `reschedule` moves. It keeps its `tick`: it still belongs to the tick that
 * enqueued it.
 */
export function withTickOf(before: string | null, after: string | null): string | null {
  return writeOptions({ ...readOptions(after), tick: readOptions(before).tick })
}

/** The new options of a job that `schedule` moves. It keeps its unique slot and its tick. */
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
