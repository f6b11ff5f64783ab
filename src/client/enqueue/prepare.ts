import type { Codec } from '../../codec/codec.js'
import { problemOf } from '../../codec/path.js'
import { reason, show } from '../../codec/show.js'
import { CodecError, InvalidPayloadError, PayloadTooLargeError } from '../../errors.js'
import type { Problem } from '../../errors.js'
import type { CaptureResult } from '../../job/attempt/capture.js'
import { checkEnqueueOptions, checkNotTooFar, LABELS_MAX, TITLE_MAX } from '../../job/definition/check-options.js'
import { parseDuration, parseInstant } from '../../job/duration/duration.js'
import type { EnqueueOptions } from '../../job/enqueue.js'
import type { Encoded } from '../../job/rules/outcome.js'
import type { Registered } from '../../job/definition/registry.js'
import { turnOf } from '../../job/definition/limit-options.js'
import { timeoutMs } from '../../job/definition/registry.js'
import { checkPayload } from '../../job/definition/schema.js'
import type { Checked } from '../../job/definition/schema.js'
import { NO_OPTIONS, writeOptions } from '../../job/definition/stored-options.js'
import type { CalledBy, Captured, StoredOptions } from '../../job/definition/stored-options.js'
import { fillTitle } from '../../job/definition/title.js'
import type { EnqueueChain } from '../../job/limits/recursion.js'
import type { UniqueSlotRequest } from '../../job/rules/unique.js'
import type { Parent } from '../../store/links.js'
import type { Due, NewJob } from '../../store/store.js'
import { linksOf } from './parent-links.js'
import type { RowLinks } from './parent-links.js'
import { PayloadSnapshot } from './call-snapshot.js'
import { metaProblem, writeMeta } from './meta.js'
import { uniqueSlotOf } from './unique-slot.js'

/** The most bytes of a stored payload. */
export const PAYLOAD_MAX_BYTES = 1024 * 1024

const NONE: EnqueueOptions = {}

/** One job of a call, before it is checked. */
export interface Item {
  readonly registered: Registered
  readonly payload: unknown
  readonly options: EnqueueOptions | undefined
  /** Its index in a bulk, for error messages; undefined for a single job. */
  readonly index?: number | undefined
  /** The async context of the caller, captured at the call. */
  readonly captured?: Captured | undefined
  /** Parents that `node.after()` added in a flow, in addition to those of its options. */
  readonly flowParents?: readonly Parent[] | undefined
  /** The workflow that calls or enqueues it. */
  readonly calledBy?: CalledBy | undefined
  /** A job of the same name enqueues it. */
  readonly chain?: EnqueueChain | undefined
  /** Problems that the call found before the item was prepared. */
  readonly problems?: readonly Problem[] | undefined
}

/** Every problem of one item; empty lists when it is valid. */
export interface ItemProblems {
  readonly options: Problem[]
  readonly payload: Problem[]
  cause?: unknown
  tooLarge?: PayloadTooLargeError
}

/** The row of one item, checked and encoded but not inserted; or every problem of the item. */
export type Prepared = { readonly row: NewJob } | { readonly wrong: ItemProblems }

/**
 * An item encoded for storage, before its payload is checked. Encoding comes first: a check may mutate the payload, and so may
 * the caller while an asynchronous check runs. Neither may change what is stored.
 */
export interface Draft {
  readonly item: Item
  readonly row: NewJob
  readonly wrong: ItemProblems
}

/** A promise only where the job's schema is asynchronous. */
export function prepare(item: Item, id: string, nowMs: number): Prepared | Promise<Prepared> {
  return checkDraft(draft(item, id, nowMs))
}

/** Whether this job checks its payloads, by a schema or by `accepts`. */
export function hasPayloadCheck({ job }: Registered): boolean {
  return job.options.input !== undefined || job.options.accepts !== undefined
}

export function checkDraft(draft: Draft): Prepared | Promise<Prepared> {
  const { registered, payload } = draft.item
  let checked: Checked | Promise<Checked>
  try {
    checked = checkPayload(registered.job.options, payload)
  } catch (error) {
    return finish(draft, threw('the job’s check', error))
  }
  if (checked instanceof Promise)
    return checked.then(
      (settled) => finish(draft, settled),
      (error: unknown) => finish(draft, threw('the job’s check', error)),
    )
  return finish(draft, checked)
}

/** The item with the captured context, or with the problems of capturing it. */
export function withCaptured(item: Item, context: CaptureResult | undefined): Item {
  if (context === undefined || (context.captured === undefined && context.problems.length === 0)) return item
  return { ...item, captured: context.captured, problems: [...(item.problems ?? []), ...context.problems] }
}

/** When the check refuses the payload, only its problems are reported: a missing title follows from the same mistake. */
function finish({ item, row, wrong }: Draft, checked: Checked): Prepared {
  if (!checked.ok) return { wrong: { options: wrong.options, payload: withItemPath(checked.problems, item.index) } }
  return wrong.options.length > 0 || wrong.payload.length > 0 ? { wrong } : { row }
}

export function draft(input: Item, id: string, nowMs: number): Draft {
  const wrong: ItemProblems = { options: [...(input.problems ?? [])], payload: [] }
  if (input.options !== undefined)
    wrong.options.push(...checkEnqueueOptions(input.options, itemPath('options', input.index)))
  if (input.options !== undefined && wrong.options.length === 0)
    wrong.options.push(...checkNotTooFar(input.options, itemPath('options', input.index), nowMs))
  const options = wrong.options.length > 0 ? NONE : (input.options ?? NONE)
  const payload = encodeInto(input, wrong)
  const item = input.payload instanceof PayloadSnapshot ? { ...input, payload: input.payload.read() } : input
  const unique = uniqueOf(item, options, wrong)
  const stored = storedOptions(item, options, unique, wrong)
  const links = linksInto(item, options, wrong)
  const turn = turnInto(item, wrong)
  const { registered } = item
  const row: NewJob = {
    id,
    name: registered.job.name,
    queue: options.queue ?? registered.queue,
    priority: options.priority ?? registered.priority,
    key: options.key ?? null,
    unique,
    group: options.group,
    turn,
    // The input of the schema is stored, not its output: each attempt parses the payload again.
    payload,
    options: wrong.options.length > 0 ? null : writeOptions(stored),
    due: dueOf(options),
    expires: options.expires === undefined ? null : whenOf(options.expires),
    ...links,
    shape: registered.workflow === undefined ? undefined : 'workflow',
  }
  return { item, row, wrong }
}

/** A copy of a row with another id and payload. The fields keep their order, so that all rows share one hidden class in V8. */
export function rowLike(row: NewJob, id: string, payload: Encoded): NewJob {
  const { name, queue, priority, key, unique, group, turn, options, due, expires } = row
  const { after, onParentFailure, keepCancelledMs, shape } = row
  const links = { after, onParentFailure, keepCancelledMs }
  return { id, name, queue, priority, key, unique, group, turn, payload, options, due, expires, ...links, shape }
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

/** Encodes a payload with its job's codec. An unsupported value is refused with its path, a payload too large with its size. */
export function encodePayload(registered: Registered, payload: unknown, index?: number): Encoded {
  if (payload instanceof PayloadSnapshot) return payload.encoded
  return encodeBounded(registered.codec, subjectOf(registered), payload, index)
}

/** The same for any subject: a job, or an event that is sent. */
export function encodeBounded(codec: Codec, subject: string, payload: unknown, index?: number): Encoded {
  const encoded = encode(codec, subject, payload, index)
  // UTF-8 needs at most 3 bytes for a UTF-16 code unit, so a short text need not be counted.
  if (typeof encoded === 'string' && encoded.length * 3 <= PAYLOAD_MAX_BYTES) return encoded
  const bytes = typeof encoded === 'string' ? Buffer.byteLength(encoded) : encoded.byteLength
  const where = index === undefined ? subject : `${subject}: payloads[${index}]`
  if (bytes > PAYLOAD_MAX_BYTES) throw new PayloadTooLargeError(where, bytes, PAYLOAD_MAX_BYTES)
  return encoded
}

function encode(codec: Codec, subject: string, payload: unknown, index: number | undefined): Encoded {
  try {
    return codec.encode(payload)
  } catch (error) {
    const root = itemPath('payload', index)
    const problem =
      error instanceof CodecError
        ? problemOf(error, root)
        : { path: root, message: `could not be written: ${reason(error)}` }
    throw new InvalidPayloadError(subject, [problem], { cause: error })
  }
}

function subjectOf(registered: Registered): string {
  return `job ${JSON.stringify(registered.job.name)}`
}

/** Skipped when the payload or the `unique` option is already known to be wrong: one problem is enough. */
function uniqueOf(item: Item, options: EnqueueOptions, wrong: ItemProblems): UniqueSlotRequest | undefined {
  if (wrong.payload.length > 0 || (options === NONE && item.options?.unique !== undefined)) return undefined
  const found = uniqueSlotOf(item.registered, options, item.payload, itemPath('payload', item.index))
  if (found.ok) return found.slot
  wrong.payload.push(found.problem)
  wrong.cause ??= found.cause
  return undefined
}

/** An `after` function is not called with a payload that is already known to be wrong. */
function linksInto(item: Item, options: EnqueueOptions, wrong: ItemProblems): RowLinks {
  const payload = wrong.payload.length > 0 ? undefined : item.payload
  if (wrong.payload.length > 0 && typeof item.registered.job.options.after === 'function') return {}
  const answer = linksOf(item.registered, options, payload, item.flowParents ?? [], itemPath('payload', item.index))
  if (answer.ok) return answer.links
  wrong.payload.push(answer.problem)
  wrong.cause ??= answer.cause
  return {}
}

/** The functions of a limit or a rate are not called with a payload that is already known to be wrong. */
function turnInto({ registered, payload, index }: Item, wrong: ItemProblems): NewJob['turn'] {
  if (wrong.payload.length > 0) return undefined
  const answer = turnOf(registered.limit, registered.rate, payload, itemPath('payload', index))
  if (answer.ok) return answer.turn
  wrong.payload.push(answer.problem)
  wrong.cause ??= answer.cause
  return undefined
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
    version: versionOf(registered),
    meta: options.meta === undefined ? undefined : metaOf(item, options.meta, wrong),
    captured: item.captured,
    calledBy: item.calledBy,
    chain: item.chain,
    unique: unique === undefined ? undefined : { key: unique.key, while: unique.while },
  }
}

/** The most frequent case, and the one most bulks consist of: no options are stored with the payload. */
function storesNoOptions({ registered, captured, calledBy, chain }: Item): boolean {
  if (captured !== undefined || calledBy !== undefined || chain !== undefined || registered.upcast.length > 0)
    return false
  return registered.labels.length === 0 && registered.job.options.title === undefined
}

/** The version of a payload that is given now; version 0 is not stored. */
export function versionOf({ upcast }: Pick<Registered, 'upcast'>): number | undefined {
  return upcast.length === 0 ? undefined : upcast.length
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

/** A checked duration or instant. A duration stays relative: the store adds it to the time of its own clock. */
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
