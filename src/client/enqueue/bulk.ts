import { show } from '../../codec/show.js'
import { InvalidOptionsError } from '../../errors.js'
import type { Problem } from '../../errors.js'
import type { CaptureResult } from '../../job/attempt/capture.js'
import type { EnqueueOptions } from '../../job/enqueue.js'
import type { Encoded } from '../../job/rules/outcome.js'
import type { Registered } from '../../job/definition/registry.js'
import { isThenable, ignoreRejection } from '../../job/definition/schema.js'
import type { EnqueueChain } from '../../job/limits/recursion.js'
import type { OnDuplicate } from '../../job/rules/unique.js'
import type { NewJob } from '../../store/store.js'
import { requireSync, txOf } from './in-transaction.js'
import { copyOptions } from './call-snapshot.js'
import { checkDraft, draft, encodePayload, hasPayloadCheck, rowLike } from './prepare.js'
import { refuse } from './refuse.js'
import type { Draft, Prepared, ItemProblems } from './prepare.js'

/** The most bad items of a bulk that one error lists. */
const WRONG_MAX = 20

/** The rows of a bulk. One insert has one `onDuplicate` policy for all its rows. */
export interface BulkRows {
  readonly rows: readonly NewJob[]
  readonly onDuplicate: OnDuplicate
}

export type BulkOptions = EnqueueOptions | ((payload: never, index: number) => EnqueueOptions) | undefined

/** The most jobs in one bulk. */
export const BULK_MAX = 1_000_000

/** The arguments of one `enqueueMany` call, copied. */
export interface Bulk {
  readonly registered: Registered
  readonly payloads: readonly unknown[]
  readonly options: BulkItemOptions
  readonly newId: () => string
  readonly nowMs: number
  /** The caller's async context, captured once for the whole bulk. */
  readonly captured: CaptureResult | undefined
  /** A job of the same name enqueues them. */
  readonly chain?: EnqueueChain | undefined
}

/** The options of each item of a bulk. */
export interface BulkItemOptions {
  readonly of: (index: number) => EnqueueOptions | undefined
  /** All items share one options object. */
  readonly areShared: boolean
  /** The first `tx` of any item. When there is one, the whole bulk is checked and written synchronously. */
  readonly tx: unknown
}

/**
 * An options function is called once for each item, for all items before any other work: any item may carry the `tx` that
 * makes the whole call synchronous.
 */
export function readBulkOptions(payloads: unknown, options: BulkOptions): BulkItemOptions {
  if (typeof options !== 'function') {
    const copy = copyOptions(options)
    return { of: () => copy, areShared: true, tx: txOf(copy) }
  }
  const all: EnqueueOptions[] = []
  let tx: unknown
  // Something that is not a valid bulk is refused later; the options function is not called for it.
  const length = Array.isArray(payloads) && payloads.length <= BULK_MAX ? payloads.length : 0
  for (let index = 0; index < length; index += 1) {
    try {
      all.push(copyOptions(ignoreIfPromise(options((payloads as readonly unknown[])[index] as never, index))))
    } catch (error) {
      // Throw synchronously when the call may belong to a transaction; otherwise reject the promise.
      if (index === 0 || tx !== undefined) throw error
      return { of: (at) => (at < index ? all[at] : rethrow(error)), areShared: false, tx }
    }
    if (tx === undefined) tx = txOf(all[index])
  }
  return { of: (index) => all[index], areShared: false, tx }
}

/** A copy of the caller's list, made at the call. An argument that is not a valid bulk is returned unchanged, to be refused later. */
export function copyPayloads(payloads: readonly unknown[]): readonly unknown[] {
  return Array.isArray(payloads) && payloads.length <= BULK_MAX ? [...(payloads as readonly unknown[])] : payloads
}

/** An async options function returns a promise. The check refuses it later; its rejection must not end the process. */
function ignoreIfPromise(options: EnqueueOptions): EnqueueOptions {
  return isThenable<unknown>(options) ? (ignoreRejection(options) as EnqueueOptions) : options
}

function rethrow(error: unknown): never {
  throw error
}

/** Builds the rows of a bulk. All items are checked before any is refused, so that one error lists every bad item. */
export async function prepareMany(bulk: Bulk): Promise<BulkRows> {
  const builder = new BulkBuilder(bulk)
  // A check may be asynchronous, and the caller may change the payloads meanwhile: encode all items first.
  const drafts = hasPayloadCheck(bulk.registered) ? builder.draftAll() : []
  for (let index = 0; builder.wants(index); index += 1) {
    if (builder.addLikeFirst(index)) continue
    const prepared = checkDraft(drafts[index] ?? builder.draft(index))
    builder.add(index, prepared instanceof Promise ? await prepared : prepared)
  }
  return builder.rows()
}

/** The synchronous form, for a bulk that is inserted in the caller's transaction. */
export function prepareManySync(bulk: Bulk): BulkRows {
  const builder = new BulkBuilder(bulk)
  for (let index = 0; builder.wants(index); index += 1)
    if (!builder.addLikeFirst(index)) builder.add(index, requireSync(bulk.registered, checkDraft(builder.draft(index))))
  return builder.rows()
}

class BulkBuilder {
  readonly #bulk: Bulk
  readonly #rows: NewJob[] = []
  readonly #wrongs: ItemProblems[] = []
  readonly #differOnlyInPayload: boolean
  #checked = 0
  #policy: OnDuplicate | undefined
  #otherPolicy: Problem | undefined

  constructor(bulk: Bulk) {
    this.#bulk = bulk
    this.#differOnlyInPayload = differOnlyInPayload(bulk)
  }

  wants(index: number): boolean {
    return index < this.#bulk.payloads.length && this.#wrongs.length < WRONG_MAX
  }

  /** The fast path for rows that differ only in their payload: copies the first row. False when the slow path is needed. */
  addLikeFirst(index: number): boolean {
    const first = this.#differOnlyInPayload ? this.#rows[0] : undefined
    if (first === undefined) return false
    const { registered, payloads, newId } = this.#bulk
    let payload: Encoded
    try {
      payload = encodePayload(registered, payloads[index], index)
    } catch {
      return false
    }
    this.#rows.push(rowLike(first, newId(), payload))
    return true
  }

  /** Drafts of all items, up to the item at which WRONG_MAX is reached. */
  draftAll(): Draft[] {
    const drafts: Draft[] = []
    let wrongs = 0
    for (let index = 0; index < this.#bulk.payloads.length && wrongs < WRONG_MAX; index += 1) {
      const drafted = this.draft(index)
      if (drafted.wrong.options.length + drafted.wrong.payload.length > 0) wrongs += 1
      drafts.push(drafted)
    }
    return drafts
  }

  draft(index: number): Draft {
    const { registered, payloads, options, newId, nowMs, captured: context, chain } = this.#bulk
    // The items share one captured context: only the first reports what is wrong with it.
    const problems = index === 0 ? context?.problems : undefined
    const captured = context?.captured
    return draft(
      { registered, payload: payloads[index], options: options.of(index), index, captured, chain, problems },
      newId(),
      nowMs,
    )
  }

  add(index: number, prepared: Prepared): void {
    const options = this.#bulk.options.of(index)
    this.#checked = index + 1
    if ('wrong' in prepared) this.#wrongs.push(prepared.wrong)
    else if (txOf(options) !== txOf(this.#bulk.options.of(0))) this.#wrongs.push(otherTransaction(index))
    else {
      this.#rows.push(prepared.row)
      if (prepared.row.key !== null) this.#notePolicy(index, options?.onDuplicate ?? 'return')
    }
  }

  rows(): BulkRows {
    const { registered, payloads } = this.#bulk
    const unchecked = this.#wrongs.length < WRONG_MAX ? 0 : payloads.length - this.#checked
    if (this.#wrongs.length > 0) refuse(registered.job.name, this.#wrongs, unchecked)
    if (this.#otherPolicy !== undefined) throw new InvalidOptionsError('enqueueMany()', [this.#otherPolicy])
    return { rows: this.#rows, onDuplicate: this.#policy ?? 'return' }
  }

  #notePolicy(index: number, onDuplicate: OnDuplicate): void {
    this.#policy ??= onDuplicate
    if (onDuplicate === this.#policy) return
    const message = `must be the same for all, got ${show(onDuplicate)} after ${show(this.#policy)}`
    this.#otherPolicy ??= { path: `options[${index}].onDuplicate`, message }
  }
}

/** True when no column but `payload` depends on the payload, and neither a schema nor `accepts` checks it. */
function differOnlyInPayload({ options: all, registered }: Bulk): boolean {
  const options = all.areShared ? all.of(0) : undefined
  const { input, accepts, title, after } = registered.job.options
  const afterFunction = typeof after === 'function' ? after : undefined
  const perPayload = [
    input,
    accepts,
    title,
    afterFunction,
    registered.unique,
    registered.limit?.key,
    registered.rate?.key,
    registered.rate?.weight,
    options?.title,
    options?.unique,
    options?.key,
  ]
  return all.areShared && perPayload.every(isMissing)
}

function isMissing(value: unknown): boolean {
  return value === undefined
}

function otherTransaction(index: number): ItemProblems {
  const message = 'must be the same for all: a bulk is written whole or not at all'
  return { options: [{ path: `options[${index}].tx`, message }], payload: [] }
}
