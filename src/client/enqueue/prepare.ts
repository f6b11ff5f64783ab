import { problemOf } from '../../codec/path.js'
import { reason, show } from '../../codec/show.js'
import { CodecError, InvalidPayloadError, PayloadTooLargeError } from '../../errors.js'
import type { Problem } from '../../errors.js'
import type { CaptureResult } from '../../job/attempt/capture.js'
import { checkEnqueueOptions, LABELS_MAX, TITLE_MAX } from '../../job/definition/check-options.js'
import { parseDuration, parseInstant } from '../../job/duration/duration.js'
import type { EnqueueOptions } from '../../job/enqueue.js'
import type { Encoded } from '../../job/rules/outcome.js'
import type { Registered } from '../../job/definition/registry.js'
import { timeoutMs } from '../../job/definition/registry.js'
import { checkPayload } from '../../job/definition/schema.js'
import type { Checked } from '../../job/definition/schema.js'
import { NO_OPTIONS, writeOptions } from '../../job/definition/stored-options.js'
import type { Captured, StoredOptions } from '../../job/definition/stored-options.js'
import { fillTitle } from '../../job/definition/title.js'
import type { UniqueSlotRequest } from '../../job/rules/unique.js'
import type { Parent } from '../../store/links.js'
import type { Due, NewJob } from '../../store/store.js'
import { linksOf } from './parent-links.js'
import type { RowLinks } from './parent-links.js'
import { PayloadSnapshot } from './call-snapshot.js'
import { metaProblem, writeMeta } from './meta.js'
import { uniqueSlotOf } from './unique-slot.js'

/** A payload may have so many bytes as it is stored. */
export const PAYLOAD_MAX_BYTES = 1024 * 1024

const NONE: EnqueueOptions = {}

/** One job as a call gave it. */
export interface Item {
  readonly registered: Registered
  readonly payload: unknown
  readonly options: EnqueueOptions | undefined
  /** Where it stands in a bulk, for errors; undefined for a single one. */
  readonly index?: number | undefined
  /** What `capture` took where the call was made. */
  readonly captured?: Captured | undefined
  /** Jobs of its flow that it comes after, beside what its options say. */
  readonly flowParents?: readonly Parent[] | undefined
  /** What the call itself already found wrong. */
  readonly problems?: readonly Problem[] | undefined
}

/** Everything that is wrong with one item; empty when nothing is. */
export interface ItemProblems {
  readonly options: Problem[]
  readonly payload: Problem[]
  cause?: unknown
  tooLarge?: PayloadTooLargeError
}

/** The row of one item, checked and encoded, with nothing written yet; or all that is wrong with it. */
export type Prepared = { readonly row: NewJob } | { readonly wrong: ItemProblems }

/**
 * An item as it will be stored if its payload passes the check. It is written before the check looks: what is stored is what
 * was given at the call, whatever a check, or the caller while a check waits, does to the object.
 */
export interface Draft {
  readonly item: Item
  readonly row: NewJob
  readonly wrong: ItemProblems
}

/** A promise only where the job's schema is asynchronous. */
export function prepare(item: Item, id: string): Prepared | Promise<Prepared> {
  return checkDraft(draft(item, id))
}

/** Whether anybody looks at the payloads of this job before they are stored. */
export function hasPayloadCheck({ job }: Registered): boolean {
  return job.options.input !== undefined || job.options.accepts !== undefined
}

export function checkDraft(drafted: Draft): Prepared | Promise<Prepared> {
  const { registered, payload } = drafted.item
  let checked: Checked | Promise<Checked>
  try {
    checked = checkPayload(registered.job.options, payload)
  } catch (error) {
    return finish(drafted, threw('the job’s check', error))
  }
  if (checked instanceof Promise)
    return checked.then(
      (settled) => finish(drafted, settled),
      (error: unknown) => finish(drafted, threw('the job’s check', error)),
    )
  return finish(drafted, checked)
}

/** The item with the context that was taken for it, or what is wrong with that context. */
export function withCaptured(item: Item, taken: CaptureResult | undefined): Item {
  if (taken === undefined || (taken.captured === undefined && taken.problems.length === 0)) return item
  return { ...item, captured: taken.captured, problems: [...(item.problems ?? []), ...taken.problems] }
}

/** What the check says of a payload is all that is said of it: that it has no title either is of no use. */
function finish({ item, row, wrong }: Draft, checked: Checked): Prepared {
  if (!checked.ok) return { wrong: { options: wrong.options, payload: withItemPath(checked.problems, item.index) } }
  return wrong.options.length > 0 || wrong.payload.length > 0 ? { wrong } : { row }
}

export function draft(given: Item, id: string): Draft {
  const wrong: ItemProblems = { options: [...(given.problems ?? [])], payload: [] }
  if (given.options !== undefined)
    wrong.options.push(...checkEnqueueOptions(given.options, itemPath('options', given.index)))
  const options = wrong.options.length > 0 ? NONE : (given.options ?? NONE)
  const payload = encodeInto(given, wrong)
  const item = given.payload instanceof PayloadSnapshot ? { ...given, payload: given.payload.read() } : given
  const unique = uniqueOf(item, options, wrong)
  const stored = storedOptions(item, options, unique, wrong)
  const links = linksInto(item, options, wrong)
  const { registered } = item
  const row: NewJob = {
    id,
    name: registered.job.name,
    queue: options.queue ?? registered.queue,
    priority: options.priority ?? registered.priority,
    key: options.key ?? null,
    unique,
    group: options.group,
    // Stored as it was given; the schema's output is made anew at each attempt.
    payload,
    options: wrong.options.length > 0 ? null : writeOptions(stored),
    due: dueOf(options),
    expires: options.expires === undefined ? null : whenOf(options.expires),
    ...links,
  }
  return { item, row, wrong }
}

/** Another row of a bulk, its fields in the same order: objects of one shape are the cheap ones. */
export function rowLike(row: NewJob, id: string, payload: Encoded): NewJob {
  const { name, queue, priority, key, unique, group, options, due, expires, after, onParentFailure, keepCancelledMs } =
    row
  const links = { after, onParentFailure, keepCancelledMs }
  return { id, name, queue, priority, key, unique, group, payload, options, due, expires, ...links }
}

function encodeInto(item: Item, wrong: ItemProblems): Encoded {
  try {
    return encodePayload(item.registered, item.payload, item.index)
  } catch (error) {
    wrong.cause = error
    if (error instanceof InvalidPayloadError) wrong.payload.push(...error.problems)
    else if (error instanceof PayloadTooLargeError) {
      wrong.tooLarge = error
      wrong.payload.push({
        path: itemPath('payload', item.index),
        message: `has ${error.bytes} bytes and the limit is ${PAYLOAD_MAX_BYTES}`,
      })
    } else throw error
    return ''
  }
}

/** Writes a payload with its job's codec; what cannot be written is refused with its path, what is too large with its size. */
export function encodePayload(registered: Registered, payload: unknown, index?: number): Encoded {
  if (payload instanceof PayloadSnapshot) return payload.encoded
  const encoded = encode(registered, payload, index)
  // Three bytes a character is the most UTF-8 needs: short texts need no counting.
  if (typeof encoded === 'string' && encoded.length * 3 <= PAYLOAD_MAX_BYTES) return encoded
  const bytes = typeof encoded === 'string' ? Buffer.byteLength(encoded) : encoded.byteLength
  const subject = subjectOf(registered)
  const where = index === undefined ? subject : `${subject}: payloads[${index}]`
  if (bytes > PAYLOAD_MAX_BYTES) throw new PayloadTooLargeError(where, bytes, PAYLOAD_MAX_BYTES)
  return encoded
}

function encode(registered: Registered, payload: unknown, index: number | undefined): Encoded {
  try {
    return registered.codec.encode(payload)
  } catch (error) {
    const root = itemPath('payload', index)
    const problem =
      error instanceof CodecError
        ? problemOf(error, root)
        : { path: root, message: `could not be written: ${reason(error)}` }
    throw new InvalidPayloadError(subjectOf(registered), [problem], { cause: error })
  }
}

function subjectOf(registered: Registered): string {
  return `job ${JSON.stringify(registered.job.name)}`
}

/** A payload or a `unique` that was found wrong already needs no second complaint. */
function uniqueOf(item: Item, options: EnqueueOptions, wrong: ItemProblems): UniqueSlotRequest | undefined {
  if (wrong.payload.length > 0 || (options === NONE && item.options?.unique !== undefined)) return undefined
  const found = uniqueSlotOf(item.registered, options, item.payload, itemPath('payload', item.index))
  if (found.ok) return found.slot
  wrong.payload.push(found.problem)
  wrong.cause ??= found.cause
  return undefined
}

/** A payload that was found wrong already is asked nothing more. */
function linksInto(item: Item, options: EnqueueOptions, wrong: ItemProblems): RowLinks {
  const payload = wrong.payload.length > 0 ? undefined : item.payload
  if (wrong.payload.length > 0 && typeof item.registered.job.options.after === 'function') return {}
  const answer = linksOf(item.registered, options, payload, item.flowParents ?? [], itemPath('payload', item.index))
  if (answer.ok) return answer.links
  wrong.payload.push(answer.problem)
  wrong.cause ??= answer.cause
  return {}
}

function storedOptions(
  item: Item,
  options: EnqueueOptions,
  unique: UniqueSlotRequest | undefined,
  wrong: ItemProblems,
): StoredOptions {
  const { registered, index } = item
  if (options === NONE && unique === undefined && storesNoOptions(item)) return NO_OPTIONS
  const labels = [...new Set([...registered.labels, ...(options.labels ?? [])])]
  if (labels.length > LABELS_MAX)
    wrong.options.push({
      path: `${itemPath('options', index)}.labels`,
      message: `and the job’s own must be at most ${LABELS_MAX} together, got ${labels.length}`,
    })
  return {
    title: titleOf(item, options, wrong),
    labels: labels.length === 0 ? undefined : labels,
    retry: options.retry,
    timeout: options.timeout === undefined ? undefined : finite(timeoutMs(options.timeout, Infinity)),
    meta: options.meta === undefined ? undefined : metaOf(item, options.meta, wrong),
    captured: item.captured,
    unique: unique === undefined ? undefined : { key: unique.key, while: unique.while },
  }
}

/** The commonest case, and the one that bulks are made of: nothing is stored beside the payload. */
function storesNoOptions({ registered, captured }: Item): boolean {
  return captured === undefined && registered.labels.length === 0 && registered.job.options.title === undefined
}

function titleOf(item: Item, options: EnqueueOptions, wrong: ItemProblems): string | undefined {
  const title = options.title ?? item.registered.job.options.title
  if (title === undefined || wrong.payload.length > 0) return undefined
  try {
    return fillTitle(title as string | ((p: unknown) => string), item.payload).slice(0, TITLE_MAX)
  } catch (error) {
    wrong.payload.push({
      path: itemPath('payload', item.index),
      message: `cannot be given a title: the job’s title() threw ${reason(error)}`,
    })
    wrong.cause = error
    return undefined
  }
}

function metaOf(item: Item, meta: unknown, wrong: ItemProblems): StoredOptions['meta'] {
  try {
    return writeMeta(item.registered, meta)
  } catch (error) {
    wrong.options.push(metaProblem(error, `${itemPath('options', item.index)}.meta`))
    return undefined
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

function threw(what: string, error: unknown): Checked {
  return {
    ok: false,
    problems: [{ path: 'payload', message: `could not be checked: ${what} threw ${show(reason(error))}` }],
  }
}

function itemPath(name: string, index: number | undefined): string {
  return index === undefined ? name : `${name === 'payload' ? 'payloads' : name}[${index}]`
}

function withItemPath(problems: readonly Problem[], index: number | undefined): Problem[] {
  if (index === undefined) return [...problems]
  return problems.map((p) => ({ ...p, path: p.path.replace(/^payload/, `payloads[${index}]`) }))
}

function finite(ms: number): number | null {
  return ms === Infinity ? null : ms
}
