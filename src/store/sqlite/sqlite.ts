import { InvalidOptionsError } from '../../errors.js'
import { systemWatch } from '../../world/watch.js'
import type { World } from '../../world/world.js'
import { checkFields } from '../../job/check.js'
import { show } from '../../codec/show.js'
import type { StoreChoice } from '../choice.js'
import { STORE_CHOICE } from '../choice.js'
import { isHandle } from './driver.js'
import type { SqliteHandle } from './driver.js'
import { fileMigrations } from './file-migrations.js'
import { openFile } from './open.js'
import { SqliteStore } from './sqlite-store.js'

/** Who writes this means no file: a URL, in quotes perhaps, or one that lost its beginning, `user:password@host/database`. */
const ADDRESS = /:\/\/|^[^/\\:@]+:[^/\\@]+@[^/\\]+\//
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
  if (!isHandle(target) && (typeof target !== 'string' || target === '' || target.includes('\u0000')))
    problems.unshift({
      path: 'target',
      message: `must be a path, ":memory:" or an open SQLite handle, got ${show(target)}`,
    })
  else if (typeof target === 'string' && ADDRESS.test(target))
    problems.unshift({
      path: 'target',
      message: `must be a path: a URL names another kind of store, and PostgreSQL’s begins with "postgres://", got ${show(target.replace(BARE_PASSWORD, '$1:***@'))}`,
    })
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
