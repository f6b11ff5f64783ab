import type { RequestKind } from '../job/rules/request.js'
import type { SequenceVerb } from '../job/rules/sequence.js'
import type { Encoded } from '../job/rules/outcome.js'
import type { State } from '../job/rules/states.js'
import type { AuditNote } from '../job/command-options.js'
import type { Claim, Inserted, InsertOptions, NewJob } from './store.js'

/** The sequences role: the items and the log of jobs that work off a list in order. */
export interface SequenceStore {
  /** Writes a slice of the items of a list. The list is removed after an hour if no sequence is inserted for it. */
  addItems(slice: ItemSlice): Promise<null>
  /**
   * Inserts the job of a sequence with the last items of its list: the sequence exists from then on, whole. If an
   * unfinished sequence holds the key, nothing is inserted and its id is returned.
   */
  insertSequence(sequence: NewSequence): Promise<Inserted>
  /** Applies a verb in one transaction, by `decideSequence`. */
  changeSequence(change: SequenceChange): Promise<SequenceChanged>
  /** Undefined when there is no such job. */
  readSequence(id: string): Promise<SequenceRow | undefined>
  /** The recorded items from an index on, in order. Undefined when there is no such job. */
  readOutput(id: string, from: number, limit: number): Promise<Output | undefined>
  /** Stored items from an index on, in order: one at least where there is one, and no more than `ITEMS_AHEAD_BYTES`. */
  readItems(sequence: SequenceOwner, from: number, limit: number): Promise<readonly Encoded[]>
}

/** Whose items they are. The stores need only the id; sealed items are bound to the name too. */
export interface SequenceOwner {
  readonly id: string
  readonly name: string
}

export interface ItemSlice {
  /** The id and the name of the job that the sequence will have. */
  readonly id: string
  readonly name?: string | undefined
  /** The number of items of the whole list. */
  readonly total: number
  /** The index of the first item of this slice. */
  readonly from: number
  readonly payloads: readonly Encoded[]
}

export interface NewSequence {
  readonly job: NewJob
  readonly options: InsertOptions
  /** The last items of the list; the earlier ones were written before. */
  readonly last: ItemSlice
  /** False: it waits for `start()`. */
  readonly start: boolean
  /** The result of a sequence without items, which is done at once, and how long it is kept. */
  readonly empty: { readonly result: Encoded; readonly keepMs: number }
}

export interface SequenceChange {
  readonly id: string
  readonly verb: SequenceVerb
  readonly reason: string
  /** How long a cancelled sequence is kept. */
  readonly keepMs: number
  readonly audit?: AuditNote | undefined
}

/** What a verb did. `from` is the state of its job before; nothing is written for 'no'. */
export interface SequenceChanged {
  /** 'gone': no such job. 'plain': a job that is no sequence. */
  readonly did: 'moved' | 'requested' | 'no' | 'gone' | 'plain'
  readonly from: State | null
  readonly to: State | null
  readonly name: string | null
  readonly queue: string | null
  /** A worker may still begin an item for up to `heldUnconfirmedMs`. */
  readonly inHand: boolean
}

/** A sequence as one statement reads it. */
export interface SequenceRow {
  readonly ref: number
  readonly name: string
  readonly queue: string
  readonly isSequence: boolean
  readonly state: State
  readonly isUnstarted: boolean
  readonly requested: RequestKind | null
  readonly run: number
  readonly done: number
  readonly total: number
  /** JSON of the error of its job, and the reason of its state. */
  readonly error: string | null
  readonly reason: string | null
  /** The last report of the item in hand: JSON text. */
  readonly progress: string | null
}

export interface SequenceListed extends SequenceRow {
  readonly id: string
  readonly key: string | null
  readonly createdAt: number
}

export interface Output {
  readonly name: string
  readonly isSequence: boolean
  readonly rows: readonly OutputRow[]
}

export interface OutputRow {
  readonly index: number
  readonly result: Encoded | null
  /** JSON of `StepNote`. */
  readonly note: string | null
  readonly attempt: number
  readonly startedAt: number
  readonly endedAt: number
}

/** A row of the log that is written under a claim. */
export interface NewStep {
  readonly run: number
  readonly address: string
  /** 'item' for a sequence. */
  readonly kind: string
  /** The number of the answer; null: the operation stays open. */
  readonly no: number | null
  /** One more than the number of the answer last given when the operation was called; 0 for an item. */
  readonly since?: number | undefined
  /** When a sleep, a timeout or the wait for a step's next attempt ends, by the store's clock. */
  readonly until?: number | null | undefined
  /** Counted attempts. */
  readonly attempt: number
  readonly startedAt: number
  readonly endedAt: number
  readonly value: Encoded | null
  readonly error: string | null
  readonly note: string | null
}

/** The note of a step, as JSON. */
export interface StepNote {
  readonly log?: readonly string[] | undefined
  /** Why the result is not kept, or why a failure counts as done. */
  readonly why?: string | undefined
}

/** A step that is written while its claim goes on. */
export interface AppendedStep extends Claim {
  /** Whose step it is. */
  readonly id?: string | undefined
  readonly name?: string | undefined
  readonly queue: string
  readonly step: NewStep
  /** The job was in flight at crashes before: this answer ends their count. */
  readonly endsStreak: boolean
  /** Read the items after this index of the list with the answer; undefined: none are needed. */
  readonly itemsFrom?: { readonly list: number; readonly index: number } | undefined
}

/** The state of a claim between two items. */
export interface Boundary {
  /** False: the claim is lost, and nothing was written. */
  readonly held: boolean
  readonly requested: RequestKind | null
  readonly isQueuePaused: boolean
}

export interface Appended extends Boundary {
  /** The row has its answer: this one, or that of a transaction of the handler. */
  readonly isAnswered: boolean
  readonly items: readonly Encoded[]
}

/** The position of a claimed sequence. */
export interface ClaimedSequence {
  readonly run: number
  readonly list: number
  readonly total: number
  /** The next item, and its failed attempts. */
  readonly index: number
  readonly attempt: number
  /** The result of the item before. */
  readonly previous: Encoded | null
  /** The payloads from `index` on that are read so far. */
  readonly items: readonly Encoded[]
}

/** Items in one transaction: a few tens of milliseconds. */
export const ITEMS_PER_WRITE = 5_000
/** Items that a worker reads ahead, and their bytes. */
export const ITEMS_AHEAD = 100
export const ITEMS_AHEAD_BYTES = 1024 * 1024
/** A list without a sequence is removed after this time. */
export const LIST_KEEP_MS = 3_600_000
