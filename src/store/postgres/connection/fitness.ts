import { reason } from '../../../codec/show.js'
import { StoreError } from '../../../errors.js'

/** What a server says about itself, asked before anything is written to it. */
export interface Found {
  readonly version: string
  readonly number: number
  readonly replica: boolean
  readonly readonly: string
  readonly commit: string
  readonly fsync: string
  /** The number of the process that serves this session. */
  readonly process: number
  /** How it keeps texts, and under which name the database can be found. */
  readonly encoding: string
  readonly database: string
}

export const LOOK = `
  select current_setting('server_version') as version, current_setting('server_version_num')::integer as number,
         pg_is_in_recovery() as replica, current_setting('transaction_read_only') as readonly,
         current_setting('synchronous_commit') as commit, current_setting('fsync') as fsync,
         pg_backend_pid() as process, current_setting('server_encoding') as encoding, current_database()::text as database`

const OLDEST = 140_000

/** Refuses a server that cannot serve. */
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
 * A text may hold any character, and what a database lacks shows only when it comes: in an error that must be recorded, say,
 * whose job could then never end. SQL_ASCII takes every byte, and so also those of others that are no text at all.
 */
function refuseEncoding({ encoding, database }: Found, name: string): never {
  throw new StoreError(
    'E_STORE_ENCODING',
    `${name}: the database ${JSON.stringify(database)} is in ${encoding} and cannot hold every text; Millrace needs one in UTF8. ` +
      `Make one with \`create database … encoding 'UTF8' template template0\``,
  )
}

/** What serves and may lose something: told at start. */
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

/** What is left out where a pooler hands out sessions. */
export function poolerWarning(name: string): string {
  return (
    `${name}: a connection pooler stands between, so what other processes commit is looked for at every poll instead of heard at once; ` +
    'give Millrace the address of the server itself, or the address to listen at: postgres(url, { listen })'
  )
}

/** `name`: of what was given as `listen`. */
export function listenWarning(name: string, wrong: string): string {
  return `listen: ${name} ${wrong}; until that is mended, what other processes commit is looked for at every poll instead of heard at once`
}

/** What is done the slow way, where the tables belong to another role. Names are quoted. */
export function ownerWarning(name: string, { owner, role }: { readonly owner: string; readonly role: string }): string {
  return (
    `${name}: the tables belong to the role ${owner}, and ${role} may neither make nor drop their days: jobs that are old enough are ` +
    `deleted row by row, which is slower; to have days dropped whole, \`grant ${owner} to ${role}\``
  )
}

export function shortageWarning(name: string, error: unknown): string {
  return (
    `${name} has no connection left for now (${reason(error)}): calls and ctx.transaction wait for one; ` +
    'close some, raise max_connections or the size of the pool, or let a pooler stand between'
  )
}
