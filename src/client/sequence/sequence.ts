import type { Codec } from '../../codec/codec.js'
import type { ErrorRecord } from '../../codec/error-text.js'
import { show } from '../../codec/show.js'
import { InvalidOptionsError, JobGoneError } from '../../errors.js'
import type { Problem } from '../../errors.js'
import { commandGiven } from '../../job/command-options.js'
import type { CommandOptions } from '../../job/command-options.js'
import { checkFields } from '../../job/definition/check-fields.js'
import { isCount, isKey } from '../../job/definition/check-options.js'
import type { Duration } from '../../job/duration/duration.js'
import type { Enqueueable, Handle } from '../../job/enqueue.js'
import { sequenceState } from '../../job/rules/sequence.js'
import type { SequenceState, SequenceVerb } from '../../job/rules/sequence.js'
import type { OutputRow, SequenceRow, StepNote } from '../../store/sequences.js'
import type { Store } from '../../store/store.js'
import { canBeId, checkId } from '../check-arguments.js'
import type { CommandParts } from '../commands/command.js'
import type { LiveState } from '../../job/live-state.js'
import { decodeStored } from '../read/records.js'
import { changeSequence, notASequence } from './change-sequence.js'

/** A sequence, by its id or its key, from any process. */
export interface Sequence<Result = unknown> {
  /** A time-ordered UUIDv7. Of `mill.sequence([job, key])` it is empty until a verb has found the sequence. */
  readonly id: string
  /** False when no sequence was inserted, and this is the unfinished one that has the key. */
  readonly isNew: boolean
  /** Starts a sequence that is `waiting`. Every verb returns false when it does not apply in the present state. */
  start(options?: CommandOptions): Promise<boolean>
  /** Lets the item in hand end. When this has resolved, no other item begins, in any process, until `resume()`. */
  pause(options?: CommandOptions): Promise<boolean>
  /** Continues a paused sequence, or runs the item again at which it failed, with all its retries. */
  resume(options?: CommandOptions): Promise<boolean>
  /** Aborts the signal of the item in hand; what that item returns is recorded, and then the sequence is cancelled. */
  cancel(options?: CommandOptions): Promise<boolean>
  /** In any state: forgets all output and errors, and waits for `start()`. What an item in hand returns is not recorded. */
  reset(options?: CommandOptions): Promise<boolean>
  progress(): Promise<SequenceProgress>
  /** The recorded items in order, while it runs too: from index 0, or `from`, at most 100, or `limit`. */
  output(options?: SequenceOutputOptions): Promise<SequenceOutput<Result>[]>
  /** Waits until all items are done. Rejects as `handle.result()` does. */
  result(options?: { readonly timeout?: Duration | number | undefined }): Promise<{ done: number; total: number }>
  /** Its progress as live state, which is read while it is observed; undefined while there is no such sequence. */
  watch(): LiveState<SequenceProgress | undefined>
}

export interface SequenceOutputOptions {
  /** The index of the first item. Default 0. */
  readonly from?: number | undefined
  /** 1 to 1,000. Default 100. */
  readonly limit?: number | undefined
}

export interface SequenceProgress {
  readonly state: SequenceState
  /** A pause or cancel that takes effect when the item in hand has ended. */
  readonly requested?: 'pause' | 'cancel' | undefined
  /** The number of items that are recorded: never more than `output` has. */
  readonly done: number
  readonly total: number
  /** Why it failed, and at which item. */
  readonly error?: (ErrorRecord & { readonly index: number }) | undefined
  /** What the item in hand last reported by `ctx.progress`, and the last 20 lines that it has logged so far. */
  readonly item?: ItemInHand | undefined
}

/** The item in hand, a fraction of a second ago. */
export interface ItemInHand {
  readonly done: number
  readonly total?: number | undefined
  readonly log?: readonly string[] | undefined
}

/** A recorded item. */
export interface SequenceOutput<Result = unknown> {
  readonly index: number
  /** Undefined when the handler returned nothing, or when its result was not kept; then `reason` says why. */
  readonly result: Result | undefined
  readonly reason?: string | undefined
  readonly log: readonly string[]
  /** How many attempts it took. */
  readonly attempt: number
  readonly startedAt: Date
  readonly endedAt: Date
}

/** An id, or the name of the job and the key. */
export type SequenceTarget = string | readonly [name: string, key: string]

export interface SequenceParts extends CommandParts {
  /** Live state by the id of a sequence, or by the name of its job and its key. */
  readonly watch: (target: SequenceTarget) => LiveState<SequenceProgress | undefined>
  readonly codecOf: (name: string) => Codec
  readonly handle: (id: string) => Handle<unknown>
  readonly nameOf: (job: Enqueueable) => string
}

/** How many items `output` returns if the caller does not say, and the most it returns. */
const OUTPUT_LIMIT = 100
export const OUTPUT_LIMIT_MAX = 1_000

/** A sequence that was just written. */
export function writtenSequence(parts: SequenceParts, { id, isNew }: Pick<Handle<unknown>, 'id' | 'isNew'>): Sequence {
  return new SequenceHandle(parts, id, isNew)
}

/** A sequence by its id or [job, key]; nothing is read before a verb is called. */
export function findSequence(parts: SequenceParts, target: unknown): Sequence {
  if (!Array.isArray(target)) {
    return new SequenceHandle(parts, checkTarget(target), false)
  }
  const [job, key] = target as readonly unknown[] as readonly [Enqueueable, unknown]
  const wrong = isKey(key)
  if (typeof wrong === 'string')
    throw new InvalidOptionsError('sequence([job, key])', [{ path: 'key', message: wrong }])
  return new SequenceHandle(parts, [parts.nameOf(job), key as string], false)
}

function checkTarget(target: unknown): string {
  if (typeof target === 'string') return checkId(target)
  const message = `must be an id, or [job, key], got ${show(target)}; to begin a sequence, give its items: sequence(job, items)`
  throw new InvalidOptionsError('sequence()', [{ path: 'id', message }])
}

class SequenceHandle implements Sequence {
  readonly isNew: boolean
  readonly #parts: SequenceParts
  readonly #target: SequenceTarget
  #id: string

  constructor(parts: SequenceParts, target: SequenceTarget, isNew: boolean) {
    this.#parts = parts
    this.#target = target
    this.#id = typeof target === 'string' ? target : ''
    this.isNew = isNew
  }

  get id(): string {
    return this.#id
  }

  start = (options?: unknown): Promise<boolean> => this.#change('start', options)
  pause = (options?: unknown): Promise<boolean> => this.#change('pause', options)
  resume = (options?: unknown): Promise<boolean> => this.#change('resume', options)
  cancel = (options?: unknown): Promise<boolean> => this.#change('cancel', options)
  reset = (options?: unknown): Promise<boolean> => this.#change('reset', options)

  progress = async (): Promise<SequenceProgress> => {
    const id = await this.#need()
    return progressOf(isSequenceRow(id, await this.#parts.store.sequences.readSequence(id)))
  }

  output = async (options: SequenceOutputOptions = {}): Promise<SequenceOutput[]> => {
    check('output', checkFields(options, '', { fields: { from: isCount(0), limit: isLimit } }))
    const id = await this.#need()
    const { from = 0, limit = OUTPUT_LIMIT } = options
    const output = isSequenceRow(id, await this.#parts.store.sequences.readOutput(id, from, limit))
    const codec = this.#parts.codecOf(output.name)
    return output.rows.map((each) => toOutput(each, codec))
  }

  result = async (options?: {
    readonly timeout?: Duration | number | undefined
  }): Promise<{ done: number; total: number }> =>
    (await this.#parts.handle(await this.#need()).result(options)) as { done: number; total: number }

  watch = (): LiveState<SequenceProgress | undefined> => this.#parts.watch(this.#target)

  async #change(verb: SequenceVerb, options: unknown): Promise<boolean> {
    const given = commandGiven(verb, `sequence.${verb}()`, options, this.#parts.auditKeepMs, {
      keepsReason: verb === 'cancel' || verb === 'pause' || verb === 'reset',
    })
    const id = await this.#resolve()
    return id === undefined || !canBeId(id) ? false : changeSequence(this.#parts, id, verb, given)
  }

  async #need(): Promise<string> {
    const id = await this.#resolve()
    if (id === undefined) throw new JobGoneError(this.#id)
    return id
  }

  async #resolve(): Promise<string | undefined> {
    const id = await sequenceId(this.#parts.store, this.#target)
    if (id !== undefined) this.#id = id
    return id
  }
}

/** The id of the unfinished sequence that holds the key, else of the newest that had it. */
async function sequenceId(store: Store, target: SequenceTarget): Promise<string | undefined> {
  return typeof target === 'string' ? target : (await store.jobs.readKeyed(...target))?.id
}

/** The progress of a sequence; undefined when there is none. */
export async function readProgress(store: Store, target: SequenceTarget): Promise<SequenceProgress | undefined> {
  const id = await sequenceId(store, target)
  const row = id === undefined ? undefined : await store.sequences.readSequence(id)
  return row?.isSequence === true ? progressOf(row) : undefined
}

const isLimit = (value: unknown): string | undefined => {
  const wrong = isCount(1)(value)
  if (wrong !== undefined) return wrong as string
  return (value as number) <= OUTPUT_LIMIT_MAX ? undefined : `must be at most ${OUTPUT_LIMIT_MAX}, got ${show(value)}`
}

function check(verb: string, problems: readonly Problem[]): void {
  if (problems.length > 0) throw new InvalidOptionsError(`sequence.${verb}()`, problems)
}

function isSequenceRow<Row extends { readonly isSequence: boolean; readonly name: string }>(
  id: string,
  row: Row | undefined,
): Row {
  if (row === undefined) throw new JobGoneError(id)
  if (row.isSequence) return row
  throw notASequence(id, row.name)
}

export function progressOf(row: SequenceRow): SequenceProgress {
  const state = sequenceState(row)
  const report = row.progress === null ? undefined : (JSON.parse(row.progress) as ItemReport)
  const isShown = row.state === 'running' && report?.item === row.done
  return {
    state,
    done: row.done,
    total: row.total,
    ...(row.requested === null ? {} : { requested: row.requested }),
    ...(state === 'failed' ? { error: { ...errorOf(row), index: row.done } } : {}),
    ...(isShown && report !== undefined ? { item: itemOf(report) } : {}),
  }
}

function itemOf({ done, total, log }: ItemReport): ItemInHand {
  return { done, ...(total === undefined ? {} : { total }), ...(log === undefined ? {} : { log }) }
}

interface ItemReport extends ItemInHand {
  /** The index of the item that reported it. */
  readonly item?: number | undefined
}

function errorOf({ error, reason, state }: SequenceRow): ErrorRecord {
  if (error !== null) return JSON.parse(error) as ErrorRecord
  return { name: state === 'parked' ? 'Parked' : 'Error', message: reason ?? 'it failed' }
}

function toOutput(row: OutputRow, codec: Codec): SequenceOutput {
  const note = row.note === null ? {} : (JSON.parse(row.note) as StepNote)
  const decoded = row.result === null ? { ok: true as const, value: undefined } : decodeStored(codec, row.result)
  const why = decoded.ok ? note.why : `the result does not decode: ${decoded.why}`
  return {
    index: row.index,
    result: decoded.ok ? decoded.value : undefined,
    ...(why === undefined ? {} : { reason: why }),
    log: note.log ?? [],
    attempt: row.attempt,
    startedAt: new Date(row.startedAt),
    endedAt: new Date(Math.max(row.startedAt, row.endedAt)),
  }
}
