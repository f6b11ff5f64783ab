import { TransactionError } from '../../../errors.js'
import { transactionOf } from './handles.js'
import { callerQueries } from '../queries/caller-transactions.js'
import type { SqliteDatabase } from '../connection/driver.js'

/**
 * The store's own connection for `ctx.transaction`, when the user gave none. The handler may use it for one call. If it
 * keeps a reference, that must neither hold the file's write lock nor affect the next call.
 */
export class KeptHandle {
  readonly #open: () => SqliteDatabase
  readonly #settings: string
  #handle: SqliteDatabase | undefined
  #unseal: (() => void) | undefined

  /** `settings` are restored before each use. */
  constructor(open: () => SqliteDatabase, settings: string) {
    this.#open = open
    this.#settings = settings
  }

  /** For one call; afterwards it is kept for reuse, or dropped after an error. */
  take(): SqliteDatabase {
    this.#unseal?.()
    this.#unseal = undefined
    // Only the store begins a transaction here, unless the handler kept a statement.
    if (this.#handle !== undefined && transactionOf(this.#handle) !== 'none') this.drop()
    this.#handle ??= this.#open()
    this.#handle.exec(this.#settings)
    return this.#handle
  }

  putBack(): void {
    if (this.#handle === undefined) return
    const refuse = (name: string) => (): never => {
      throw new TransactionError(
        'E_TX_NOT_OPEN',
        `tx.${name}(): the tx of ctx.transaction() is over with its call; open a handle of your own for other work`,
      )
    }
    this.#unseal = shadow(this.#handle, ['exec', 'prepare', 'close'], refuse)
  }

  drop(): void {
    const handle = this.#handle
    this.#unseal?.()
    this.#handle = this.#unseal = undefined
    if (handle === undefined || transactionOf(handle) === 'closed') return
    try {
      // A statement of the user may keep a closed connection alive, and must not keep its transaction.
      if (transactionOf(handle) === 'open') handle.exec(callerQueries.rollback)
    } catch {
      // The error that made us drop it is reported already; closing it ends the transaction too.
    }
    handle.close()
  }
}

/**
 * Calls with a handle that cannot be closed meanwhile: its transaction would stay open while something refers to the
 * handle.
 */
export function keepingOpen<T>(handle: SqliteDatabase, call: () => T): T {
  const refuse = () => (): never => {
    throw new TransactionError(
      'E_TX_IN_USE',
      'ctx.transaction(): tx cannot be closed while its transaction is open; leave it open',
    )
  }
  const restore = shadow(handle, ['close'], refuse)
  try {
    return call()
  } finally {
    restore()
  }
}

/** Overrides methods of a handle; returns the function that restores them. */
function shadow(handle: SqliteDatabase, names: readonly string[], other: (name: string) => () => never): () => void {
  const before = names.map((name) => [name, Object.getOwnPropertyDescriptor(handle, name)] as const)
  for (const name of names) Object.defineProperty(handle, name, { value: other(name), configurable: true })
  return () => {
    for (const [name, own] of before)
      if (own === undefined) Reflect.deleteProperty(handle, name)
      else Object.defineProperty(handle, name, own)
  }
}
