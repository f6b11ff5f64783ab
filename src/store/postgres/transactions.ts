import { NotYetError } from '../../errors.js'
import type { Hint, Inserted, InsertOptions, NewJob, SettledJob } from '../store.js'
import type { Transact, TransactionStore } from '../transaction-store.js'
import type { Executor } from './executor.js'
import type { Lanes } from './lanes.js'
import type { Opened } from './open.js'
import type { Session } from './session.js'

export interface TransactionParts {
  readonly opened: Opened
  readonly lanes: Lanes
  readonly session: (db: Executor) => Session
  readonly committed: (hint: Hint | undefined) => void
}

export class PostgresTransactions implements TransactionStore {
  readonly parts: TransactionParts
  constructor(parts: TransactionParts) {
    this.parts = parts
  }
  insertJobsIn(_tx: unknown, _jobs: readonly NewJob[], _options: InsertOptions): Promise<readonly Inserted[]> {
    throw new NotYetError('tx')
  }
  settleJobIn(_tx: unknown, _settled: SettledJob): Promise<boolean> {
    throw new NotYetError('tx')
  }
  guarded<T>(_tx: unknown, call: (sync: boolean) => T): T {
    return call(false)
  }
  transact<T>(_request: Transact<T>): Promise<T> {
    throw new NotYetError('tx')
  }
}
