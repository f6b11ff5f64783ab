import { show } from '../../codec/show.js'
import { InvalidOptionsError } from '../../errors.js'
import { checkFields } from '../../job/definition/check-fields.js'
import type { World } from '../../world/world.js'
import type { StoreChoice } from '../choice.js'
import { STORE_CHOICE } from '../choice.js'
import { databaseMigrations } from './migrations/database-migrations.js'
import { DEFAULT_SCHEMA, isPool, schemaOf, targetOf } from './connection/target.js'
import type { PgPool } from './connection/target.js'

export interface PostgresOptions {
  /** The schema of the tables. Default: the URL's `?schema=`, else "millrace". */
  readonly schema?: string | undefined
  /**
   * Behind a pooler: a URL of the same database without it. Each process makes one connection to it and listens there
   * for commits of other processes; all other connections use the pooler. Default: behind a pooler the process does not
   * listen, and finds the commits of others at its next poll.
   */
  readonly listen?: string | undefined
}

/** PostgreSQL's limit of an identifier; it truncates a longer one without an error. */
const SCHEMA_MAX_BYTES = 63

/** `a,b` and `a:1,b:2` after the login, which libpq accepts and `pg` does not. */
const SEVERAL_HOSTS = /^\s*\w+:\/\/(?:[^/?]*@)?[^/?@]*,|[?&]host=[^&]*,/

/**
 * A store in a PostgreSQL database: by URL, or the database of a `pg.Pool` that you already have. The engine makes
 * connections of its own, three per process, whatever the concurrency.
 *
 * ```ts
 * import { millrace } from 'millrace'
 * import { postgres } from 'millrace/postgres'
 * const mill = await millrace({ store: postgres('postgres://localhost/app', { schema: 'jobs' }) })
 * await mill.close()
 * ```
 */
export function postgres(target: string | PgPool, options: PostgresOptions = {}): StoreChoice {
  const problems = checkFields(options, 'options', { fields: { schema: schemaProblem, listen: listenProblem } })
  if (!isPool(target) && !isUrl(target))
    problems.unshift({ path: 'target', message: `must be a postgres:// URL or a pg.Pool, got ${show(target)}` })
  else if (typeof target === 'string' && SEVERAL_HOSTS.test(target))
    problems.unshift({
      path: 'target',
      message: `must name one host, got ${show(target)}; use one name that resolves to the primary, by DNS or a proxy`,
    })
  const { where, schema, wrong: misnamed } = schemaOf(typeof target === 'string' ? target.trim() : target)
  const wrong = misnamed ?? (schema === undefined ? undefined : schemaProblem(schema))
  if (wrong !== undefined) problems.push({ path: 'target?schema', message: wrong })
  if (problems.length > 0) throw new InvalidOptionsError('postgres()', problems)
  const chosen = options.schema ?? schema ?? DEFAULT_SCHEMA
  const direct = typeof options.listen === 'string' ? schemaOf(options.listen.trim()) : undefined
  if (direct?.schema !== undefined && direct.schema !== chosen) refuseListen(direct.schema, chosen)
  return {
    [STORE_CHOICE]: true,
    open: async (world: World, autoMigrate: boolean) => {
      // Imported here, because every program that imports `millrace` imports this file, and most use SQLite.
      const [{ openDatabase }, { PostgresStore }] = await Promise.all([
        import('./connection/open.js'),
        import('./postgres-store.js'),
      ])
      const listen = direct === undefined ? undefined : await targetOf(direct.where, chosen, 'options.listen')
      const place = { ...(await targetOf(where, chosen)), listen }
      return new PostgresStore(await openDatabase(place, autoMigrate, world), world)
    },
    migrations: databaseMigrations(where, chosen),
  }
}

function listenProblem(value: unknown): string | undefined {
  if (!isUrl(value)) return `must be the postgres:// URL of the server itself, past the pooler, got ${show(value)}`
  if (SEVERAL_HOSTS.test(value)) return `must name one host, got ${show(value)}`
  return schemaOf(value.trim()).wrong
}

function refuseListen(schema: string, chosen: string): never {
  const message = `names the schema ${JSON.stringify(schema)}, and the store is in ${JSON.stringify(chosen)}; leave it out there`
  throw new InvalidOptionsError('postgres()', [{ path: 'options.listen', message }])
}

function isUrl(target: unknown): target is string {
  // A variable that was read from a file may end with a line break.
  return typeof target === 'string' && /^\s*postgres(ql)?:\/\/./.test(target)
}

function schemaProblem(value: unknown): string | undefined {
  if (typeof value !== 'string' || value === '' || value.includes('\u0000'))
    return `must be the name of a schema, got ${show(value)}`
  if (value === 'information_schema') return 'must not be information_schema, which is the server’s own'
  if (/^pg_/i.test(value)) return `must not begin with "pg_", which PostgreSQL keeps for itself, got ${show(value)}`
  if (!(value as string & { isWellFormed(): boolean }).isWellFormed())
    return `must be well-formed Unicode, got ${show(value)}`
  const bytes = Buffer.byteLength(value)
  return bytes > SCHEMA_MAX_BYTES ? `must have at most ${SCHEMA_MAX_BYTES} bytes, got ${bytes}` : undefined
}
