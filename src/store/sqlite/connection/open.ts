import { chmodSync, rmSync, statSync } from 'node:fs'
import { StoreError } from '../../../errors.js'
import type { World } from '../../../world/world.js'
import { migrateCommand, refuseOlder } from '../../migrations.js'
import type { SqliteDatabase } from './driver.js'
import { isBusy } from './driver.js'
import { translate, translateOpening, translateSystem } from './faults.js'
import { FileIdentity } from '../file/file-identity.js'
import { chooseLibrary, isOlder, libraryOf, NEWER_SQLITE, SAFE_VERSION } from './library.js'
import type { SqliteLibrary } from './library.js'
import { migrate, refuseNewer, SCHEMA_VERSION, schemaVersion } from '../migrations/migrate.js'
import { holdFile } from './one-library.js'
import { checkPlace, makeFolder, realPath, whyNotOpened } from '../file/store-path.js'
import { lockWriter } from './writer-lock.js'

/** The argument of `sqlite(…)`: a path, or an open handle of the user. */
export interface SqliteTarget {
  readonly target: string | object
  /**
   * 'power' survives a power cut; 'process' survives a crash of the process, and a power cut may lose the last commits.
   */
  readonly durability: 'power' | 'process'
}

/** A file that was opened, checked and migrated. */
export interface OpenedFile {
  readonly database: SqliteDatabase
  /** The user's handle. It is `database` itself only for a database in memory. */
  readonly given: SqliteDatabase | undefined
  readonly library: SqliteLibrary
  /** The absolute path, or `:memory:`. */
  readonly path: string
  readonly version: string
  /** The schema version before the migration. */
  readonly foundVersion: number
  readonly warnings: readonly string[]
  /** Detects another file at the path; undefined in memory, and where files have no inode. */
  readonly identity: FileIdentity | undefined
  /** Closes the connection and releases what this process recorded about the file. */
  close(): void
}

const OPEN_PATIENCE_MS = 60_000

export async function openFile(given: SqliteTarget, autoMigrate: boolean, world: World): Promise<OpenedFile> {
  const { library, path, shared } = locate(given.target)
  const isNew = path !== ':memory:' && checkPlace(path).isNew
  const database = shared ?? connect(library, path)
  const undo: (() => void)[] = shared === undefined ? [() => void database.close()] : []
  try {
    // Read before anything is written: a file that is refused is not changed.
    const version = await patiently(world, path, () => inspect(database, path))
    if (path !== ':memory:') undo.push(holdFile(path, library.open))
    if (isNew) chmodSync(path, 0o600)
    const old = isOlder(version, SAFE_VERSION) && path !== ':memory:'
    if (old) undo.push(lockWriter(path, version))
    const foundVersion = await patiently(world, path, () => prepare(database, path, autoMigrate, isNew))
    return {
      database,
      given: typeof given.target === 'string' ? undefined : (given.target as SqliteDatabase),
      library,
      path,
      version,
      foundVersion,
      warnings: warningsOf(given, path, version, old),
      identity: FileIdentity.of(path, world.clock),
      close: () => undoAll(undo),
    }
  } catch (error) {
    undoAll(undo)
    if (isNew && statSync(path, { throwIfNoEntry: false })?.size === 0) rmSync(path)
    throw explain(error, path)
  }
}

interface Located {
  readonly library: SqliteLibrary
  readonly path: string
  /** The store uses the user's handle only for a database in memory: no second connection can reach it. */
  readonly shared: SqliteDatabase | undefined
}

function locate(target: string | object): Located {
  if (typeof target === 'string') {
    if (target === ':memory:') return { library: chooseLibrary(), path: target, shared: undefined }
    const library = chooseLibrary()
    makeFolder(target)
    return { library, path: realPath(target), shared: undefined }
  }
  const handle = target as SqliteDatabase
  const list = handle.prepare('pragma database_list').all() as { name: string; file: string | null }[]
  const file = list.find((entry) => entry.name === 'main')?.file
  if (file === undefined || file === null || file === '')
    return { library: libraryOf(handle), path: ':memory:', shared: handle }
  return { library: libraryOf(handle), path: file, shared: undefined }
}

export function connect(library: SqliteLibrary, path: string): SqliteDatabase {
  try {
    return new library.open(path)
  } catch (error) {
    throw explain(error, path)
  }
}

/** SQLite reports only that it cannot open or write a file; the file system says why. */
function explain(error: unknown, path: string): unknown {
  const fault = translateOpening(translateSystem(translate(error, path), path), path)
  if (path === ':memory:' || !(fault instanceof StoreError)) return fault
  return fault.code === 'E_CANNOT_OPEN' || fault.code === 'E_READ_ONLY' ? (whyNotOpened(path) ?? fault) : fault
}

/** Throws when the file is not a database; returns SQLite's version. */
export function inspect(database: SqliteDatabase, path: string): string {
  database.exec('pragma busy_timeout = 0')
  refuseNewer(schemaVersion(database), path)
  return (database.prepare('select sqlite_version() as version').get() as { version: string }).version
}

function prepare(database: SqliteDatabase, path: string, autoMigrate: boolean, isNew: boolean): number {
  const version = schemaVersion(database)
  if (!autoMigrate && version < SCHEMA_VERSION) refuseOlder(path, version, SCHEMA_VERSION, migrateCommand(path))
  // Possible only before the first write: it lets the store return free space to the disk later (shrink.ts).
  if (isNew) database.exec('pragma auto_vacuum = incremental')
  database.exec('pragma journal_mode = wal')
  database.exec(
    'pragma synchronous = full; pragma temp_store = memory; pragma cache_size = -8000; pragma journal_size_limit = 67108864',
  )
  if (schemaVersion(database) === SCHEMA_VERSION) return SCHEMA_VERSION
  database.exec('begin immediate')
  try {
    const { now } = database.prepare(`select cast(unixepoch('subsec') * 1000 as integer) as now`).get() as {
      now: number
    }
    const found = migrate(database, now)
    database.exec('commit')
    return found
  } catch (error) {
    rollBack(database)
    throw error
  }
}

/** A full or failing disk may have ended the transaction already; the first error is the one to report. */
function rollBack(database: SqliteDatabase): void {
  try {
    database.exec('rollback')
  } catch {
    // No transaction was open.
  }
}

/** Another process may be creating the tables: wait for it by timer, without blocking the event loop. */
export async function patiently<T>(world: World, path: string, work: () => T): Promise<T> {
  const start = world.clock.monotonic()
  for (;;) {
    try {
      return work()
    } catch (error) {
      if (!isBusy(error) || world.clock.monotonic() - start > OPEN_PATIENCE_MS)
        throw translateOpening(translate(error, path), path)
    }
    await new Promise<void>((next) => world.timers.after(5 + world.random() * 20, next))
  }
}

function warningsOf(given: SqliteTarget, path: string, version: string, old: boolean): string[] {
  const warnings: string[] = []
  if (given.durability === 'process')
    warnings.push(
      `${path}: durability 'process': a crash of the process loses nothing; a power cut may lose the last moments of acknowledged work`,
    )
  if (old)
    warnings.push(
      `${path}: SQLite ${version} is older than ${SAFE_VERSION}: only this process may write the file; to share it, ${NEWER_SQLITE}`,
    )
  const names = path === ':memory:' ? 1 : statSync(path).nlink
  if (names > 1)
    warnings.push(
      `${path}: the file has ${names} names (hard links), and each name has a write-ahead log of its own: jobs that another ` +
        'process enqueues under another name are lost. Remove the other names, and copy with "vacuum into" to back up',
    )
  return warnings
}

function undoAll(undo: readonly (() => void)[]): void {
  for (const step of [...undo].reverse()) step()
}
