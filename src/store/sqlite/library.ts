import { createRequire } from 'node:module'
import { StoreError } from '../../errors.js'
import type { SqliteConstructor } from './driver.js'

/** A SQLite library: how to open files with it, here and in the heartbeat's thread. */
export interface SqliteLibrary {
  readonly open: SqliteConstructor
  /** What a thread passes to `require` to get the same library; undefined when only its constructor is known. */
  readonly module: string | undefined
}

/** Below this version a WAL that several processes write can lose commits, so only one may write. */
export const SAFE_VERSION = '3.51.3'
/** What to try below that version. */
export const NEWER_SQLITE =
  'update Node, or run `npm install @photostructure/sqlite@1`, or update the library whose handle you pass'

interface SqliteModule {
  readonly DatabaseSync: SqliteConstructor
}

/** The runtime's own library where its SQLite is new enough, else the one that the user installed beside us. */
export function chooseLibrary(): SqliteLibrary {
  const builtIn = builtInLibrary()
  const version = process.versions['sqlite']
  if (builtIn !== undefined && version !== undefined && !isOlder(version, SAFE_VERSION)) return builtIn
  const library = packagedLibrary() ?? builtIn
  if (library !== undefined) return library
  throw new StoreError(
    'E_NO_SQLITE',
    `no SQLite library was found: Node ${process.version} has none built in and the optional package @photostructure/sqlite is ` +
      'not installed; run `npm install @photostructure/sqlite@1`, or use Node 22.13 or newer',
  )
}

/** The library behind a handle the user made: only its constructor is ours, unless it is one we know by name. */
export function libraryOf(handle: object): SqliteLibrary {
  // By prototype: a package may export a wrapper around the class of its handles.
  const prototype: unknown = Object.getPrototypeOf(handle)
  const known = [builtInLibrary(), packagedLibrary()].find((library) => library?.open.prototype === prototype)
  return known ?? { open: handle.constructor as SqliteConstructor, module: undefined }
}

export function isOlder(version: string, than: string): boolean {
  const a = version.split('.').map(Number)
  const b = than.split('.').map(Number)
  for (let i = 0; i < 3; i += 1) {
    const difference = (a[i] ?? 0) - (b[i] ?? 0)
    if (difference !== 0) return difference < 0
  }
  return false
}

/** Asked for at run time and not imported, so that bundlers and Node 20 never meet a name they do not know. */
function builtInLibrary(): SqliteLibrary | undefined {
  const host = process as { getBuiltinModule?: (name: string) => unknown }
  const module = host.getBuiltinModule?.('node:sqlite') as SqliteModule | undefined
  return module === undefined ? undefined : { open: module.DatabaseSync, module: 'node:sqlite' }
}

/**
 * Looked for from here, then from the app. In a CommonJS bundle there is no import.meta.url, and webpack puts the path of the
 * machine that built the bundle in its place.
 */
function packagedLibrary(): SqliteLibrary | undefined {
  for (const from of [import.meta.url, process.argv[1], `${process.cwd()}/`]) {
    const library = from === undefined ? undefined : packagedLibraryOf(from)
    if (library !== undefined) return library
  }
  return undefined
}

function packagedLibraryOf(from: string): SqliteLibrary | undefined {
  try {
    const require = createRequire(from)
    const module = require.resolve('@photostructure/sqlite')
    return { open: (require(module) as SqliteModule).DatabaseSync, module }
  } catch {
    return undefined // Not installed, or no binary for this machine: the caller has the next choice and the words.
  }
}
