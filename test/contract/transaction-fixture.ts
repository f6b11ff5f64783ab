import type { InsertOptions, Inserted, NewJob } from '../../src/store/store.js'
import { ContractFixture } from './fixture.js'
import type { ContractSubject } from './fixture.js'

/** What every store must do inside a caller's transaction; used like `storeContract`, with a way to begin one. */
export interface TransactionCase {
  readonly name: string
  readonly run: (subject: TransactionSubject) => Promise<void>
}

export interface TransactionSubject extends ContractSubject {
  /** A transaction on a connection of the caller. */
  openTransaction(): Promise<CallerTransaction> | CallerTransaction
}

export interface CallerTransaction {
  readonly tx: unknown
  readonly commit: () => Promise<void> | void
  readonly rollBack: () => Promise<void> | void
}

export class TransactionFixture extends ContractFixture {
  readonly openTransaction: TransactionSubject['openTransaction']
  constructor(subject: TransactionSubject) {
    super(subject)
    this.openTransaction = () => subject.openTransaction()
  }
  /** Refusals may be thrown within the call or by a promise. */
  async insertIn(
    tx: unknown,
    jobs: readonly NewJob[],
    options: Partial<InsertOptions> = {},
  ): Promise<readonly Inserted[]> {
    return this.store.transactions.insertJobsIn(tx, jobs, {
      onDuplicate: 'return',
      keepCancelledMs: Infinity,
      ...options,
    })
  }
}

export function transactionCase(name: string, run: (fixture: TransactionFixture) => Promise<void>): TransactionCase {
  return {
    name,
    run: async (subject) => {
      try {
        await run(new TransactionFixture(subject))
      } finally {
        await subject.store.close()
      }
    },
  }
}
