import type { GroupSeal } from './groups.js'
import type { NewSequence } from './sequences.js'
import type { NewEvent, Sent } from './workflows.js'
import type { Claim, Inserted, InsertOptions, NewJob, SettledJob } from './store.js'

/**
 * Writes inside a transaction of the caller. `tx` is any handle that the store knows; another is refused with a
 * TransactionError. The writes of a call exist if and only if that transaction commits. A refused call leaves nothing
 * in the transaction, even if its owner catches the error and commits. If the handle is synchronous so is the call, its
 * refusals included: it must fit in a callback that cannot await.
 */
export interface TransactionStore {
  /** No handle is synchronous: every call returns a promise, and a refusal rejects it. */
  readonly answersLater: boolean
  /** Like `insertJobs`. */
  insertJobsIn(
    tx: unknown,
    jobs: readonly NewJob[],
    options: InsertOptions,
  ): readonly Inserted[] | Promise<readonly Inserted[]>
  /** Like `insertSequence`. */
  insertSequenceIn(tx: unknown, sequence: NewSequence): Inserted | Promise<Inserted>
  /** Like `sendEvent`. */
  sendEventIn(tx: unknown, event: NewEvent): Sent | Promise<Sent>
  /** Like `sealGroup`. */
  sealGroupIn(tx: unknown, seal: GroupSeal): boolean | Promise<boolean>
  /** Writes the settlement of a claimed job; false, and nothing is written, when the claim is lost. */
  settleJobIn(tx: unknown, settled: SettledJob): boolean | Promise<boolean>
  /**
   * Calls `call`, which may write with the verbs above. If the handle is synchronous and `call` throws, its writes are
   * undone. If it is not (`sync` is false), other statements may run in between, so nothing is undone, and `call` may
   * be asynchronous.
   */
  guarded<T>(tx: unknown, call: (sync: boolean) => T): T
  /**
   * Opens a transaction, lets `work` write in it, settles the job and commits. Throws LeaseLostError when the claim is
   * lost.
   */
  transact<T>(request: Transact<T>): Promise<T>
}

export interface Transact<T> {
  readonly claim: Claim
  /** Receives the handle of the open transaction. A throw rolls it back. */
  readonly work: (tx: unknown) => T
  readonly settle: (value: T) => SettledJob
  /** A reason to stop waiting for its turn, if there is one. */
  readonly stopped: () => unknown
}
