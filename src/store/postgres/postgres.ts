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
  /** The schema that holds our tables. Default: the URL's `?schema=`, else "millrace". */
  readonly schema?: string | undefined
  /**
   * Behind a pooler: a URL that leads to the same database without it. One connection of each process goes there, to listen for
   * what other processes commit; everything else goes through the pooler. Default: nothing is listened for behind a pooler, and
   * what others commit is found at the next poll.
   */
  readonly listen?: string | undefined
}

/** What PostgreSQL keeps of an identifier; more would be cut off in silence. */
const SCHEMA_MAX_BYTES = 63

/** `a,b` and `a:1,b:2` behind the login, as libpq takes them and `pg` does not. */
const SEVERAL_HOSTS = /^\s*\w+:\/\/(?:[^/?]*@)?[^/?@]*,|[?&]host=[^&]*,/

/**
 * A store in a PostgreSQL database: by URL, or the database behind a `pg.Pool` that you already have. The engine makes
 * connections of its own, three a process, whatever the concurrency.
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
      message: `must name one host, got ${show(target)}; let one name lead to the primary, by DNS or a proxy`,
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
      // Loaded here, because every program that imports `millrace` imports this file, and most keep their jobs in SQLite.
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
  // A variable that was read from a file has its line's end.
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
