import { show } from '../../../codec/show.js'
import { TransactionError } from '../../../errors.js'

/** `what` is the beginning of the sentence "… that has no open transaction". */
export function notOpen(
  what: string,
  instead = 'pass the client or handle of the transaction, and await the call within it',
): TransactionError {
  return new TransactionError(
    'E_TX_NOT_OPEN',
    `${what} that has no open transaction: none was begun, or it has ended; ${instead}`,
  )
}

export function unknownHandle(got: string): TransactionError {
  return new TransactionError(
    'E_TX_UNKNOWN',
    'tx must be an open PostgreSQL transaction: a client of pg on which one was begun, the sql of postgres.js’ sql.begin, the transaction ' +
      `of Drizzle, Kysely, Knex, TypeORM, MikroORM or Prisma, or a { query(text, values) } of your own; got ${got}`,
  )
}

/** A handle of a known library, on a database that is not PostgreSQL. */
export function otherKind(what: string, kind: string): TransactionError {
  return unknownHandle(`${what} on ${kind}, and this store is in PostgreSQL`)
}

export function describe(tx: unknown): string {
  const given = Object(tx) as { prepare?: unknown; exec?: unknown; execute?: unknown; batch?: unknown; then?: unknown }
  if (typeof given.prepare === 'function' && typeof given.exec === 'function')
    return 'what looks like an SQLite handle, and this store is in PostgreSQL'
  if (typeof given.execute === 'function' && typeof given.batch === 'function')
    return 'what looks like an SQLite client (@libsql/client), and this store is in PostgreSQL'
  if (typeof given.then === 'function') return 'a promise; await it first'
  return show(tx)
}
