import { reason, showText } from '../../../codec/show.js'
import { TransactionError } from '../../../errors.js'
import { callerQueries } from '../queries/caller-transactions.js'
import { sqlStateOf } from '../connection/sql-executor.js'
import type { SqlExecutor } from '../connection/sql-executor.js'
import { notOpen } from './refusals.js'

/**
 * The database of the store: its schema as a quoted identifier, and the token in the one row of `<schema>.identity`. A
 * copy of the database has the same token; the oid differs between databases of a server, and each cluster has an
 * identifier of its own.
 */
export interface Home {
  readonly schema: string
  readonly token: string
  readonly oid: string
  /** Null: the role may not read it. */
  readonly cluster: string | null
}

export function isSame(a: Home, b: Home): boolean {
  const isSameCluster = a.cluster === null || b.cluster === null || a.cluster === b.cluster
  return a.token === b.token && a.oid === b.oid && isSameCluster
}

/** Read on a connection of the store's own. */
export async function readHome(executor: SqlExecutor, schema: string): Promise<Home> {
  const identity = `${schema}.identity`
  const [location] = await executor.query<Location>(callerQueries.leaveMark, [schema, identity])
  const [found] = await executor.query<Found>(callerQueries.findMark(identity, location?.readable === 'yes'), [])
  return { schema, token: found?.token ?? '', oid: location?.oid ?? '', cluster: found?.cluster ?? null }
}

/**
 * Checks that this executor writes in an open transaction of the store's database. No library can be trusted to know: a
 * client runs statements after its commit as well, each in a transaction of its own. So two statements read it
 * from the server; they do not fail in a usable transaction.
 */
export async function checkOpen(executor: SqlExecutor, home: Home): Promise<void> {
  const identity = `${home.schema}.identity`
  const location = await readRow<Location>(executor, callerQueries.leaveMark, [home.schema, identity])
  checkLocation(location, home)
  const found = await readRow<Found>(executor, callerQueries.findMark(identity, location.readable === 'yes'), [])
  if (found.mark !== 'open') throw notOpen('tx is a connection')
  if (found.token === null)
    throw new TransactionError(
      'E_TX_STALE',
      'tx began before the tables of the jobs were made and does not see them; roll back, and try it again',
    )
  const { token, cluster } = found
  if (!isSame({ schema: home.schema, token, oid: location.oid, cluster }, home)) throw elsewhere(location, home)
  if (location.locked === 'on')
    throw new TransactionError(
      'E_TX_READ_ONLY',
      'tx may only read: it began as read only, or its server is a standby; begin one that may write',
    )
}

interface Location {
  readonly database: string
  readonly oid: string
  /** Whether the role may read the identifier of the cluster. */
  readonly readable: 'yes' | 'no'
  readonly locked: 'on' | 'off'
  readonly home: 'here' | 'missing' | 'denied'
}

interface Found {
  readonly mark: string | null
  readonly token: string | null
  readonly cluster: string | null
}

function checkLocation(location: Location, home: Home): void {
  if (location.home === 'missing') throw elsewhere(location, home)
  if (location.home === 'denied')
    throw new TransactionError(
      'E_TX_DENIED',
      `tx is of a role that may not use the tables of the jobs in the schema ${home.schema} of the database ` +
        `${showText(location.database)}; grant it usage on the schema, and select, insert, update and delete on its tables`,
    )
}

async function readRow<R extends object>(executor: SqlExecutor, text: string, values: readonly string[]): Promise<R> {
  const rows = await executor.query<R>(text, values).catch((error: unknown) => {
    throw unusable(error)
  })
  const row = rows[0]
  if (row !== undefined && 'mark' in row) return row
  throw new TransactionError(
    'E_TX_UNKNOWN',
    'tx does not answer as PostgreSQL does: a row was expected, by its column names',
  )
}

/** Why a statement that does not fail in a usable transaction has failed. */
function unusable(error: unknown): TransactionError {
  if (error instanceof TransactionError) return error
  const options = { cause: error }
  if (sqlStateOf(error) === ABORTED)
    return new TransactionError(
      'E_TX_ABORTED',
      'tx is a transaction in which a statement has failed, so that it can only be rolled back; do that, and try it again',
      options,
    )
  if (isGone(error))
    return new TransactionError('E_TX_CLOSED', `tx is on a connection that was closed: ${reason(error)}`, options)
  return new TransactionError('E_TX_NOT_OPEN', `tx cannot be used; has it ended? ${reason(error)}`, options)
}

const ABORTED = '25P02'

/** A lost connection has an SQLSTATE class of its own; the others are messages of pg, postgres.js and Node. */
function isGone(error: unknown): boolean {
  const { code } = Object(error) as { code?: unknown }
  return (
    /^(08|57P0)/.test(sqlStateOf(error) ?? '') ||
    /^(CONNECTION_|ECONN|EPIPE)/.test(String(code)) ||
    /not queryable|connection (terminated|error)/i.test(reason(error))
  )
}

function elsewhere(location: Location, home: Home): TransactionError {
  return new TransactionError(
    'E_TX_OTHER_DATABASE',
    `tx belongs to another database than the jobs: it is in ${showText(location.database)}, and the schema ${home.schema} there is ` +
      'not this store’s; one transaction spans one database: open the mill on that of your data, or enqueue without tx',
  )
}
