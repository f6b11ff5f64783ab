import type { GroupSeal } from './groups.js'
import type { Claim, Inserted, InsertOptions, NewJob, SettledJob } from './store.js'

/**
 * Writing inside a transaction of the caller's own. `tx` is any handle that the store knows; another is refused with a
 * TransactionError. What a call writes is there if and only if that transaction commits, and a call that is refused leaves
 * nothing in it, also when its owner swallows the error and commits. Where the handle is synchronous so is the call, its
 * refusals included: it must fit into a callback that cannot await.
 */
export interface TransactionStore {
  /** No handle is synchronous here: every call answers by a promise, and what is refused rejects. */
  readonly answersLater: boolean
  /** As `insertJobs`. */
  insertJobsIn(
    tx: unknown,
    jobs: readonly NewJob[],
    options: InsertOptions,
  ): readonly Inserted[] | Promise<readonly Inserted[]>
  /** As `sealGroup`. */
  sealGroupIn(tx: unknown, seal: GroupSeal): boolean | Promise<boolean>
  /** Writes what became of a claimed job; false, and nothing written, when its fence is not its any more. */
  settleJobIn(tx: unknown, settled: SettledJob): boolean | Promise<boolean>
  /**
   * Calls `call`, which may write by the verbs above. Where the handle is synchronous, what it wrote is undone when it throws.
   * Where it is not (`sync` is false) others may write in between, so that nothing can be undone, and `call` may take its time.
   */
  guarded<T>(tx: unknown, call: (sync: boolean) => T): T
  /** Opens a transaction of its own, lets `work` write in it, settles the job and commits. Throws LeaseLostError when the fence is gone. */
  transact<T>(request: Transact<T>): Promise<T>
}

export interface Transact<T> {
  readonly claim: Claim
  /** Given the handle of the open transaction. A throw rolls it back. */
  readonly work: (tx: unknown) => T
  readonly settle: (value: T) => SettledJob
  /** Why it need not wait any longer for its turn, once it need not. */
  readonly stopped: () => unknown
}
