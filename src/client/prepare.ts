import { problemOf } from '../codec/path.js'
import { CodecError, InvalidOptionsError, InvalidPayloadError, PayloadTooLargeError } from '../errors.js'
import type { Problem } from '../errors.js'
import { checkEnqueueOptions, TITLE_MAX } from '../job/check-options.js'
import { parseDuration, parseInstant } from '../job/duration.js'
import type { EnqueueOptions } from '../job/enqueue.js'
import type { Encoded } from '../job/outcome.js'
import type { Registered } from '../job/registry.js'
import { timeoutMs } from '../job/registry.js'
import { checkPayload } from '../job/schema.js'
import type { Checked } from '../job/schema.js'
import { writeOptions } from '../job/stored-options.js'
import type { StoredOptions } from '../job/stored-options.js'
import { fillTitle } from '../job/title.js'
import type { Due, NewJob } from '../store/store.js'

/** A payload may have so many bytes as it is stored. */
export const PAYLOAD_MAX_BYTES = 1024 * 1024

const NONE: EnqueueOptions = {}

/** One job as a call gave it, checked and encoded; nothing is written yet. */
export interface Item {
  readonly registered: Registered
  readonly payload: unknown
  readonly options: EnqueueOptions | undefined
  /** Where it stands in a bulk, for errors; undefined for a single one. */
  readonly index?: number | undefined
}

/** Makes the row of one item, or throws what is wrong with it. A promise only where the schema is asynchronous. */
export function prepare(item: Item, id: string): NewJob | Promise<NewJob> {
  const problems = item.options === undefined ? [] : checkEnqueueOptions(item.options, place('options', item.index))
  const checked = checkPayload(item.registered.job.options, item.payload)
  if (checked instanceof Promise) return checked.then((settled) => finish(item, id, problems, settled))
  return finish(item, id, problems, checked)
}

function finish(item: Item, id: string, problems: Problem[], checked: Checked): NewJob {
  const subject = `job ${JSON.stringify(item.registered.job.name)}`
  if (problems.length > 0) {
    const all = checked.ok ? problems : [...problems, ...placed(checked.problems, item.index)]
    throw new InvalidOptionsError(subject, all)
  }
  if (!checked.ok) throw new InvalidPayloadError(subject, placed(checked.problems, item.index))
  const { registered } = item
  const options = item.options ?? NONE
  return {
    id,
    name: registered.job.name,
    queue: options.queue ?? registered.queue,
    priority: options.priority ?? registered.priority,
    key: options.key ?? null,
    // Stored as it was given; the schema's output is made anew at each attempt.
    payload: encodePayload(registered, item.payload, item.index),
    options: writeOptions(storedOptions(registered, item.payload, options)),
    due: dueOf(options),
    expires: options.expires === undefined ? null : whenOf(options.expires),
  }
}

/** Writes a payload with its job's codec; what cannot be written is refused with its path, what is too large with its size. */
export function encodePayload(registered: Registered, payload: unknown, index?: number): Encoded {
  const subject = `job ${JSON.stringify(registered.job.name)}`
  const encoded = encode(registered, payload, subject, index)
  // Three bytes a character is the most UTF-8 needs: short texts need no counting.
  if (typeof encoded === 'string' && encoded.length * 3 <= PAYLOAD_MAX_BYTES) return encoded
  const bytes = typeof encoded === 'string' ? Buffer.byteLength(encoded) : encoded.byteLength
  const where = index === undefined ? subject : `${subject}: payloads[${index}]`
  if (bytes > PAYLOAD_MAX_BYTES) throw new PayloadTooLargeError(where, bytes, PAYLOAD_MAX_BYTES)
  return encoded
}

function encode(registered: Registered, payload: unknown, subject: string, index: number | undefined): Encoded {
  try {
    return registered.codec.encode(payload)
  } catch (error) {
    const root = place('payload', index)
    if (!(error instanceof CodecError))
      throw new InvalidPayloadError(subject, [{ path: root, message: `could not be written: ${String(error)}` }], {
        cause: error,
      })
    throw new InvalidPayloadError(subject, [problemOf(error, root)], { cause: error })
  }
}

function storedOptions(registered: Registered, payload: unknown, options: EnqueueOptions): StoredOptions {
  const title = options.title ?? registered.job.options.title
  const labels = [...new Set([...registered.labels, ...(options.labels ?? [])])]
  return {
    title:
      title === undefined
        ? undefined
        : fillTitle(title as string | ((p: unknown) => string), payload).slice(0, TITLE_MAX),
    labels: labels.length === 0 ? undefined : labels,
    retry: options.retry,
    timeout: options.timeout === undefined ? undefined : finite(timeoutMs(options.timeout, Infinity)),
    meta: options.meta === undefined ? undefined : writeMeta(registered, options.meta),
  }
}

function writeMeta(registered: Registered, meta: unknown): NonNullable<StoredOptions['meta']> {
  try {
    const written = registered.codec.encode(meta)
    return typeof written === 'string' ? { text: written } : { base64: Buffer.from(written).toString('base64') }
  } catch (error) {
    const problem = { path: 'options.meta', message: error instanceof Error ? error.message : String(error) }
    throw new InvalidOptionsError(`job ${JSON.stringify(registered.job.name)}`, [problem])
  }
}

function dueOf(options: EnqueueOptions): Due {
  if (options.in !== undefined) return whenOf(options.in)
  if (options.at !== undefined) return whenOf(options.at)
  return NOW
}

const NOW: Due = { inMs: 0 }

/** A duration stays a duration: the store adds its own clock's now. The value was checked before. */
export function whenOf(value: unknown): Due {
  const duration = parseDuration(value)
  if (duration.ok) return { inMs: duration.ms }
  const instant = parseInstant(value)
  return instant.ok ? { at: instant.atMs } : NOW
}

function place(name: string, index: number | undefined): string {
  return index === undefined ? name : `${name === 'payload' ? 'payloads' : name}[${index}]`
}

function placed(problems: readonly Problem[], index: number | undefined): Problem[] {
  if (index === undefined) return [...problems]
  return problems.map((p) => ({ ...p, path: p.path.replace(/^payload/, `payloads[${index}]`) }))
}

function finite(ms: number): number | null {
  return ms === Infinity ? null : ms
}
