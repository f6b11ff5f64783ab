import { existsSync } from 'node:fs'
import type { Migrations } from '../../migrations.js'
import { chooseLibrary } from '../connection/library.js'
import { printMigration, SCHEMA_VERSION, schemaVersion } from './migrate.js'
import { connect, inspect, openFile, patiently } from '../connection/open.js'
import { realPath } from '../file/store-path.js'

/** Migrates the tables of a file without opening a store. */
export function fileMigrations(target: string): Migrations {
  return {
    latest: SCHEMA_VERSION,
    async inspect(world) {
      const path = realPath(target)
      // Opening a missing file would create it.
      if (!existsSync(path)) return { name: path, version: 0 }
      const database = connect(chooseLibrary(), path)
      try {
        const version = await patiently(world, path, () => {
          inspect(database, path)
          return schemaVersion(database)
        })
        return { name: path, version }
      } finally {
        database.close()
      }
    },
    async apply(world) {
      const file = await openFile({ target, durability: 'power' }, true, world)
      file.close()
      return { name: file.path, from: file.foundVersion }
    },
    print: printMigration,
  }
}
