import { didYouMean } from '../../../codec/near-name.js'
import { withoutPassword } from '../../../codec/show.js'
import { InvalidOptionsError, StoreError } from '../../../errors.js'
import { migrateCommand } from '../../migrations.js'
import { resolvePackage } from '../../resolve-package.js'
import type { PgClient } from './client.js'
import { OWN_TYPES } from './types.js'

/** Where a database is, and how to connect to it. */
export interface Target {
  readonly schema: string
  /** For messages: host, port and database, without a password. */
  readonly name: string
  /** The command that migrates its tables. */
  readonly migrateCommand: string
  /** A client of the engine's own, not connected yet. */
  readonly makeClient: () => PgClient
  /** A client for a handler: it parses values as the app has configured `pg`. */
  readonly makeHandlerClient: () => PgClient
  /** The module that the heartbeat thread passes to `require`, and the settings that it connects with. */
  readonly module: string | undefined
  readonly settings: object
  /** The user's pool, if one was passed. */
  readonly pool: PgPool | undefined
  /** The same database without the pooler, to listen there. */
  readonly listen?: Target | undefined
}

/** The part of `pg` that we use. */
interface Pg {
  readonly Client: new (config: object) => PgClient
}

/** A pool of `pg`, whose settings say where the database is. */
export interface PgPool {
  readonly options: object
  connect(): Promise<unknown>
  query(text: string, values?: unknown[]): Promise<{ rows: unknown[] }>
}

export function isPool(value: unknown): value is PgPool {
  const pool = Object(value) as Partial<Record<keyof PgPool | 'totalCount', unknown>>
  return typeof pool.options === 'object' && typeof pool.connect === 'function' && typeof pool.totalCount === 'number'
}

/** An idle connection is probed (TCP keepalive) after this time; the system's default is two hours. */
const KEEP_ALIVE_MS = 10_000

export const DEFAULT_SCHEMA = 'millrace'

/**
 * The schema that a URL names, as `?schema=jobs`, and the URL without it: the server has no such setting. `wrong`: the
 * problem of the query string; `pg` would ignore a misspelt name.
 */
export function schemaOf(where: string | PgPool): {
  readonly where: string | PgPool
  readonly schema: string | undefined
  readonly wrong: string | undefined
} {
  if (typeof where !== 'string' || !where.includes('?')) return { where, schema: undefined, wrong: undefined }
  const [before, query = ''] = where.split('?', 2) as [string, string?]
  const parameters = new URLSearchParams(query)
  const schemas = new Set(parameters.getAll('schema'))
  const misspelt = [...parameters.keys()].find((name) => name !== 'schema' && didYouMean(name, ['schema']) !== '')
  const wrong =
    misspelt !== undefined
      ? `has ${JSON.stringify(misspelt)}, which is no setting${didYouMean(misspelt, ['schema'])}`
      : schemas.size > 1
        ? `names several schemas, ${[...schemas].map((each) => JSON.stringify(each)).join(' and ')}; name one`
        : undefined
  if (schemas.size === 0) return { where, schema: undefined, wrong }
  parameters.delete('schema')
  const rest = parameters.size === 0 ? before : `${before}?${parameters.toString()}`
  return { where: rest, schema: [...schemas][0], wrong }
}

/** If no host answers, not even with a refusal, the system would wait for minutes. */
const CONNECT_MAX_MS = 30_000

/** `path`: how an error names the URL. */
export async function targetOf(where: string | PgPool, schema = DEFAULT_SCHEMA, path = 'target'): Promise<Target> {
  const pg = await loadPg()
  const given = settingsOf(where)
  const settings = {
    connectionTimeoutMillis: CONNECT_MAX_MS,
    ...given,
    application_name: 'millrace',
    // The time limit of the app's queries does not apply to ours, which have their own.
    query_timeout: undefined,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
  }
  // Whatever the app's defaults are, our parsers read texts.
  const makeClient = (): PgClient => Object.assign(new pg.Client({ ...settings, types: OWN_TYPES }), { binary: false })
  refuseUnreadable(makeClient, given, path)
  return {
    schema,
    name: nameOf(given, schema),
    migrateCommand: commandOf(given, schema),
    makeClient,
    makeHandlerClient: () => new pg.Client(settings),
    module: resolvePackage('pg'),
    settings,
    pool: typeof where === 'string' ? undefined : where,
  }
}

/**
 * `pg` parses the URL when a client is made. Its error contains the whole URL with the password, so it is not passed
 * on.
 */
function refuseUnreadable(makeClient: () => PgClient, { connectionString }: Settings, path: string): void {
  try {
    makeClient()
  } catch (error) {
    if (connectionString === undefined) throw error
    throw new InvalidOptionsError('postgres()', [
      {
        path,
        message:
          `must be a URL that can be read, got ${JSON.stringify(withoutPassword(connectionString))}; ` +
          'in a user or password write # / ? @ : % as %23 %2F %3F %40 %3A %25',
      },
    ])
  }
}

interface Settings {
  readonly connectionString?: string
  readonly host?: string
  readonly port?: number
  readonly database?: string
  readonly user?: string
  readonly password?: unknown
}

function settingsOf(where: string | PgPool): Settings {
  if (typeof where === 'string') return { connectionString: where }
  const options = where.options as Settings
  // The password of a pool is not enumerable, so a spread alone would lose it.
  return options.password === undefined ? options : { ...options, password: options.password }
}

async function loadPg(): Promise<Pg> {
  try {
    // webpack leaves this import as it is: the heartbeat thread needs the file of pg anyway, and a bundle without it
    // gets no warning.
    const module = (await import(/* webpackIgnore: true */ 'pg')) as unknown as { default?: Pg } & Pg
    return module.default ?? module
  } catch (error) {
    throw new StoreError('E_NO_PG', 'the package pg is not installed; run `npm install pg`', { cause: error })
  }
}

function nameOf({ connectionString, host, port, database }: Settings, schema: string): string {
  const where =
    connectionString === undefined
      ? `postgres://${host ?? 'localhost'}${port === undefined ? '' : `:${port}`}/${database ?? ''}`
      : withoutLogin(connectionString)
  return schema === DEFAULT_SCHEMA ? where : `${where} (schema ${schema})`
}

function commandOf(settings: Settings, schema: string): string {
  const { connectionString, user } = settings
  const login = user === undefined ? '' : `${user}:***@`
  const url =
    connectionString === undefined
      ? nameOf(settings, DEFAULT_SCHEMA).replace('://', () => `://${login}`)
      : withoutPassword(connectionString)
  return migrateCommand(url, ...(schema === DEFAULT_SCHEMA ? [] : ['--schema', schema]))
}

function withoutLogin(url: string): string {
  try {
    const { hostname, port, pathname, searchParams } = new URL(url)
    const host = searchParams.get('host') ?? (hostname === '' ? 'localhost' : hostname)
    return `postgres://${host}${port === '' ? '' : `:${port}`}${pathname}`
  } catch {
    return 'PostgreSQL'
  }
}
