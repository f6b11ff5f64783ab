import { show } from '../../codec/show.js'
import { InvalidOptionsError } from '../../errors.js'
import type { Problem } from '../../errors.js'
import type { CaptureResult } from '../../job/attempt/capture.js'
import type { EnqueueOptions } from '../../job/enqueue.js'
import type { Encoded } from '../../job/rules/outcome.js'
import type { Registered } from '../../job/definition/registry.js'
import { isThenable, ignoreRejection } from '../../job/definition/schema.js'
import type { OnDuplicate } from '../../job/rules/unique.js'
import type { NewJob } from '../../store/store.js'
import { requireSync, txOf } from './in-transaction.js'
import { copyOptions } from './call-snapshot.js'
import { checkDraft, draft, encodePayload, hasPayloadCheck, rowLike } from './prepare.js'
import { refuse } from './refuse.js'
import type { Draft, Prepared, ItemProblems } from './prepare.js'

/** Bad items of a bulk that one error names. */
const WRONG_MAX = 20

/** The rows of a bulk, and what to do about held keys, which one insert answers in one way. */
export interface BulkRows {
  readonly rows: readonly NewJob[]
  readonly onDuplicate: OnDuplicate
}

export type BulkOptions = EnqueueOptions | ((payload: never, index: number) => EnqueueOptions) | undefined

/** Jobs in one bulk. */
export const BULK_MAX = 1_000_000

/** A bulk as a call gave it. */
export interface Bulk {
  readonly registered: Registered
  readonly payloads: readonly unknown[]
  readonly options: BulkItemOptions
  readonly newId: () => string
  /** Context taken where the call was made, once for the whole bulk. */
  readonly captured: CaptureResult | undefined
}

/** What is asked for the items of a bulk. */
export interface BulkItemOptions {
  readonly of: (index: number) => EnqueueOptions | undefined
  /** The same is asked for each of them. */
  readonly same: boolean
  /** The first transaction that is asked for, by whichever item: then all happens within the call. */
  readonly tx: unknown
}

/** A function of the caller's is called once for each item, and for all of them before anything else: one may ask for a tx. */
export function readBulkOptions(payloads: unknown, options: BulkOptions): BulkItemOptions {
  if (typeof options !== 'function') {
    const own = copyOptions(options)
    return { of: () => own, same: true, tx: txOf(own) }
  }
  const all: EnqueueOptions[] = []
  let tx: unknown
  // What is no bulk is refused as such, and nobody is asked about it.
  const length = Array.isArray(payloads) && payloads.length <= BULK_MAX ? payloads.length : 0
  for (let index = 0; index < length; index += 1) {
    try {
      all.push(copyOptions(quietly(options((payloads as readonly unknown[])[index] as never, index))))
    } catch (error) {
      // Thrown within the call where it may be part of a transaction, and by the promise where it is not.
      if (index === 0 || tx !== undefined) throw error
      return { of: (at) => (at < index ? all[at] : rethrow(error)), same: false, tx }
    }
    if (tx === undefined) tx = txOf(all[index])
  }
  return { of: (index) => all[index], same: false, tx }
}

/** The payloads at the call: the caller's list is read once. What is no bulk stays as it is, to be refused. */
export function copyPayloads(payloads: readonly unknown[]): readonly unknown[] {
  return Array.isArray(payloads) && payloads.length <= BULK_MAX ? [...(payloads as readonly unknown[])] : payloads
}

/** Of an async function: refused below as what it is, and nobody else waits for it. */
function quietly(options: EnqueueOptions): EnqueueOptions {
  return isThenable<unknown>(options) ? (ignoreRejection(options) as EnqueueOptions) : options
}

function rethrow(error: unknown): never {
  throw error
}

/** The rows of a bulk. Every item is looked at before one is refused, so that one error names all of them. */
export async function prepareMany(bulk: Bulk): Promise<BulkRows> {
  const gathered = new BulkBuilder(bulk)
  // A check may wait, and the caller goes on: what all items were at the call is written down first.
  const drafts = hasPayloadCheck(bulk.registered) ? gathered.draftAll() : []
  for (let index = 0; gathered.wants(index); index += 1) {
    if (gathered.addAlike(index)) continue
    const making = checkDraft(drafts[index] ?? gathered.draft(index))
    gathered.add(index, making instanceof Promise ? await making : making)
  }
  return gathered.rows()
}

/** The same within the call, for a bulk that goes into the caller's transaction. */
export function prepareManySync(bulk: Bulk): BulkRows {
  const gathered = new BulkBuilder(bulk)
  for (let index = 0; gathered.wants(index); index += 1)
    if (!gathered.addAlike(index)) gathered.add(index, requireSync(bulk.registered, checkDraft(gathered.draft(index))))
  return gathered.rows()
}

class BulkBuilder {
  readonly #bulk: Bulk
  readonly #rows: NewJob[] = []
  readonly #wrongs: ItemProblems[] = []
  readonly #areAlike: boolean
  #looked = 0
  #policy: OnDuplicate | undefined
  #otherPolicy: Problem | undefined

  constructor(bulk: Bulk) {
    this.#bulk = bulk
    this.#areAlike = differOnlyInPayload(bulk)
  }

  wants(index: number): boolean {
    return index < this.#bulk.payloads.length && this.#wrongs.length < WRONG_MAX
  }

  /** The short way of a bulk whose rows differ in nothing but their payloads; false when this one must go the long way. */
  addAlike(index: number): boolean {
    const first = this.#areAlike ? this.#rows[0] : undefined
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

  /** Every item, up to the one that is the last to be looked at. */
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
    const { registered, payloads, options: asked, newId, captured: taken } = this.#bulk
    const payload = payloads[index]
    // Told once when it is wrong.
    const problems = index === 0 ? taken?.problems : undefined
    const options = asked.of(index)
    return draft({ registered, payload, options, index, captured: taken?.captured, problems }, newId())
  }

  add(index: number, made: Prepared): void {
    const own = this.#bulk.options.of(index)
    this.#looked = index + 1
    if ('wrong' in made) this.#wrongs.push(made.wrong)
    else if (txOf(own) !== txOf(this.#bulk.options.of(0))) this.#wrongs.push(otherTransaction(index))
    else {
      this.#rows.push(made.row)
      if (made.row.key !== null) this.#notePolicy(index, own?.onDuplicate ?? 'return')
    }
  }

  rows(): BulkRows {
    const { registered, payloads } = this.#bulk
    const unseen = this.#wrongs.length < WRONG_MAX ? 0 : payloads.length - this.#looked
    if (this.#wrongs.length > 0) refuse(registered.job.name, this.#wrongs, unseen)
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

/** Nothing of their rows is made from their payloads, and nobody but us looks at those. */
function differOnlyInPayload({ options: asked, registered }: Bulk): boolean {
  const options = asked.same ? asked.of(0) : undefined
  const { input, accepts, title, after } = registered.job.options
  const named = typeof after === 'function' ? after : undefined
  return (
    asked.same &&
    [input, accepts, title, named, registered.unique, options?.title, options?.unique, options?.key].every(isMissing)
  )
}

function isMissing(value: unknown): boolean {
  return value === undefined
}

function otherTransaction(index: number): ItemProblems {
  const message = 'must be the same for all: a bulk is written whole or not at all'
  return { options: [{ path: `options[${index}].tx`, message }], payload: [] }
}
