import { InvalidOptionsError } from '../../errors.js'
import { systemWatch } from '../../world/watch.js'
import type { World } from '../../world/world.js'
import { checkFields } from '../../job/definition/check-fields.js'
import { show } from '../../codec/show.js'
import type { StoreChoice } from '../choice.js'
import { STORE_CHOICE } from '../choice.js'
import { isHandle } from './connection/driver.js'
import type { SqliteHandle } from './connection/driver.js'
import { fileMigrations } from './migrations/file-migrations.js'
import { openFile } from './connection/open.js'
import { SqliteStore } from './sqlite-store.js'

/** Not a path: a URL, perhaps in quotes, or one without its scheme, `user:password@host/database`. */
const ADDRESS = /:\/\/|^[^/\\:@]+:[^/\\@]+@[^/\\]+\//
/** Addresses of other servers, with or without slashes. */
const OTHER_SERVER = /^\W*(rediss?|mysql|mariadb|mongodb(?:\+srv)?|amqps?|nats|kafka|mssql|sqlserver|https?):/i
/** A path as other libraries write it. */
const FILE_URL = /^\s*(?:file|sqlite3?):(?:\/\/)?/i
const BARE_PASSWORD = /^([^/\\:@]+):[^/\\@]+@/

export interface SqliteOptions {
  /**
   * 'power' (default): an acknowledged enqueue survives a power cut. 'process': faster for single writes; survives a crash
   * of the process, and a power cut may lose the last moments of acknowledged work.
   */
  readonly durability?: 'power' | 'process' | undefined
}

/**
 * A store in one SQLite file: by path, or the file behind a handle you already have open (node:sqlite, better-sqlite3,
 * libsql, @photostructure/sqlite). With a handle, the engine opens connections of its own with the same library.
 *
 * ```ts
 * import { millrace, sqlite } from 'millrace'
 * const mill = await millrace({ store: sqlite('app.db', { durability: 'process' }) })
 * await mill.close()
 * ```
 */
export function sqlite(target: string | SqliteHandle, options: SqliteOptions = {}): StoreChoice {
  const problems = checkFields(options, 'options', {
    fields: {
      durability: (value) =>
        value === 'power' || value === 'process' ? undefined : `must be "power" or "process", got ${show(value)}`,
    },
  })
  if (!isHandle(target) && (typeof target !== 'string' || target.trim() === '' || target.includes('\u0000')))
    problems.unshift({
      path: 'target',
      message: `must be a path, ":memory:" or an open SQLite handle, got ${show(target)}`,
    })
  else if (typeof target === 'string') {
    const message = addressProblem(target)
    if (message !== undefined) problems.unshift({ path: 'target', message })
  }
  if (problems.length > 0) throw new InvalidOptionsError('sqlite()', problems)
  const durability = options.durability ?? 'power'
  return {
    [STORE_CHOICE]: true,
    open: async (world: World, autoMigrate: boolean) => {
      const file = await openFile({ target, durability }, autoMigrate, world)
      return new SqliteStore(file, world, { durability, watch: systemWatch })
    },
    ...(typeof target === 'string' ? { migrations: fileMigrations(target) } : {}),
  }
}

/** What is wrong with a text that is not a path. */
function addressProblem(target: string): string | undefined {
  const got = `got ${show(target.replace(BARE_PASSWORD, '$1:***@'))}`
  if (FILE_URL.test(target))
    return `must be the path itself, ${got}; did you mean ${show(target.replace(FILE_URL, ''))}?`
  const other = OTHER_SERVER.exec(target)?.[1]
  if (other !== undefined)
    return `must be a path or a postgres:// URL, ${got}: ${other}: is no store of Millrace, which keeps jobs in a SQLite file or in PostgreSQL`
  if (!ADDRESS.test(target)) return undefined
  return `must be a path: a URL names another kind of store, and PostgreSQL’s begins with "postgres://", ${got}`
}
