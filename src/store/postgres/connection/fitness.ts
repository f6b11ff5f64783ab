import { reason } from '../../../codec/show.js'
import { StoreError } from '../../../errors.js'

/** What a server reports about itself, read before anything is written to it. */
export interface Found {
  readonly version: string
  readonly number: number
  readonly replica: boolean
  readonly readonly: string
  readonly commit: string
  readonly fsync: string
  /** The id of the server process of this session. */
  readonly process: number
  /** The encoding of the database, and its name. */
  readonly encoding: string
  readonly database: string
}

export const INSPECT_SERVER = `
  select current_setting('server_version') as version, current_setting('server_version_num')::integer as number,
         pg_is_in_recovery() as replica, current_setting('transaction_read_only') as readonly,
         current_setting('synchronous_commit') as commit, current_setting('fsync') as fsync,
         pg_backend_pid() as process, current_setting('server_encoding') as encoding, current_database()::text as database`

const OLDEST = 140_000

/** Throws for a server that cannot hold a store. */
export function refuseUnfit(found: Found, name: string): void {
  if (found.number < OLDEST)
    throw new StoreError(
      'E_STORE_VERSION',
      `${name} is PostgreSQL ${found.version} and Millrace needs 14 or newer; upgrade the server`,
    )
  if (found.replica)
    throw new StoreError('E_STORE_READ_ONLY', `${name} is a replica and takes no writes; connect to the primary`)
  if (found.readonly === 'on')
    throw new StoreError(
      'E_STORE_READ_ONLY',
      `${name} is read-only (default_transaction_read_only is on); turn it off for this role, or connect to the primary`,
    )
  if (found.encoding !== 'UTF8') refuseEncoding(found, name)
}

/**
 * A text may hold any character, and a character that the encoding lacks fails only when it is written: in an error
 * that must be recorded, say, whose job could then never end. SQL_ASCII accepts every byte, and so also bytes of other
 * programs that are not valid text.
 */
function refuseEncoding({ encoding, database }: Found, name: string): never {
  throw new StoreError(
    'E_STORE_ENCODING',
    `${name}: the database ${JSON.stringify(database)} is in ${encoding} and cannot hold every text; Millrace needs one in UTF8. ` +
      `Make one with \`create database … encoding 'UTF8' template template0\``,
  )
}

/** Settings under which the store works and may lose data; reported at start. */
export function warningsOf(found: Found, name: string): string[] {
  const warnings: string[] = []
  if (found.commit === 'off')
    warnings.push(
      `${name}: synchronous_commit is off: a crash of the server can lose the last moments of acknowledged jobs; set it to on for this role`,
    )
  if (found.fsync === 'off')
    warnings.push(`${name}: fsync is off: a crash of the machine can lose or damage everything; turn it on`)
  return warnings
}

/** What the store does without when a pooler assigns sessions. */
export function poolerWarning(name: string): string {
  return (
    `${name}: a connection pooler is in between, so commits of other processes are found at the next poll instead of at once; ` +
    'give Millrace the address of the server itself, or the address to listen at: postgres(url, { listen })'
  )
}

/** `name`: that of the `listen` address. */
export function listenWarning(name: string, wrong: string): string {
  return `listen: ${name} ${wrong}; until that is corrected, commits of other processes are found at the next poll instead of at once`
}

/** The consequence when the tables belong to another role. Names are quoted. */
export function ownerWarning(name: string, { owner, role }: { readonly owner: string; readonly role: string }): string {
  return (
    `${name}: the tables belong to the role ${owner}, and ${role} may neither create nor drop their partitions of days: expired jobs are ` +
    `deleted row by row, which is slower; to have whole days dropped, \`grant ${owner} to ${role}\``
  )
}

export function shortageWarning(name: string, error: unknown): string {
  return (
    `${name} has no connection left (${reason(error)}): calls and ctx.transaction wait for one; ` +
    'close some, raise max_connections or the size of the pool, or put a pooler in front of it'
  )
}
