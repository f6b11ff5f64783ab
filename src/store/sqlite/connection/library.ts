import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { reason } from '../../../codec/show.js'
import { StoreError } from '../../../errors.js'
import type { SqliteConstructor } from './driver.js'

/** A SQLite library: how to open files with it, here and in the heartbeat thread. */
export interface SqliteLibrary {
  readonly open: SqliteConstructor
  /**
   * The name that a thread passes to `require` to get the same library; undefined when only its constructor is known.
   */
  readonly module: string | undefined
}

/** Below this version a WAL that several processes write can lose commits, so only one process may write. */
export const SAFE_VERSION = '3.51.3'
/** The advice for an older version. */
export const NEWER_SQLITE =
  'update Node, or run `npm install @photostructure/sqlite@1`, or update the library whose handle you pass'

interface SqliteModule {
  readonly DatabaseSync: SqliteConstructor
}

/** The runtime's own library if its SQLite is new enough, else the package that the user installed. */
export function chooseLibrary(): SqliteLibrary {
  const own = builtInLibrary()
  const version = process.versions['sqlite']
  if (own !== undefined && version !== undefined && !isOlder(version, SAFE_VERSION)) return own
  const packaged = loadPackage()
  if (packaged.library !== undefined) return packaged.library
  if (own !== undefined) return own
  throw new StoreError('E_NO_SQLITE', noLibrary(packaged, isBundled(import.meta.url)), { cause: packaged.failure })
}

/** The library of a user's handle: only its constructor is known, unless it is one that Millrace loads by name. */
export function libraryOf(handle: object): SqliteLibrary {
  // By prototype: a package may export a wrapper around the class of its handles.
  const prototype: unknown = Object.getPrototypeOf(handle)
  const known = [builtInLibrary(), loadPackage().library].find((library) => library?.open.prototype === prototype)
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

/** Loaded at run time and not imported, so that bundlers and Node 20 never resolve a name they do not know. */
function builtInLibrary(): SqliteLibrary | undefined {
  const host = process as { getBuiltinModule?: (name: string) => unknown }
  const module = host.getBuiltinModule?.('node:sqlite') as SqliteModule | undefined
  return module === undefined ? undefined : { open: module.DatabaseSync, module: 'node:sqlite' }
}

const PACKAGE = '@photostructure/sqlite'

/** The package, or how far the search for it came. */
export interface LoadedPackage {
  readonly library: SqliteLibrary | undefined
  /** Its path, if it was found. */
  readonly path: string | undefined
  /** The error of the search, or of loading it. */
  readonly failure: unknown
}

function loadPackage(): LoadedPackage {
  // Not imported: webpack treats an imported createRequire as its own, which finds nothing outside of the bundle.
  const { createRequire } = process.getBuiltinModule('node:module')
  let failed: LoadedPackage = { library: undefined, path: undefined, failure: undefined }
  for (const from of placesToLookFrom(import.meta.url)) {
    const require = createRequire(from)
    try {
      const path = require.resolve(PACKAGE)
      failed = { ...failed, path }
      return { library: { open: (require(path) as SqliteModule).DatabaseSync, module: path }, path, failure: undefined }
    } catch (failure) {
      // Not installed, or no binary for this machine: the caller tries the next library and reports the error.
      failed = { ...failed, failure: failed.path === undefined ? failure : (failed.failure ?? failure) }
    }
  }
  return failed
}

/**
 * Where to search for the package: from this file, then from the app that installed it, which need not be in a parent
 * folder. In a CommonJS bundle there is no import.meta.url, and webpack replaces it with the path on the machine that
 * built the bundle.
 */
function placesToLookFrom(own: string | undefined): string[] {
  return [own, process.argv[1], `${process.cwd()}/`].filter((place) => place !== undefined)
}

/** Whether a bundler put this file, whose URL is `own`, into another one. */
export function isBundled(own: string | undefined): boolean {
  return (
    own === undefined || !/\/store\/sqlite\/connection\/library\.[jt]s$/.test(own) || !existsSync(fileURLToPath(own))
  )
}

/**
 * Why there is no library, and what to do: it is not installed, a bundle cannot reach it, or it cannot be loaded on
 * this machine.
 */
export function noLibrary({ path, failure }: Pick<LoadedPackage, 'path' | 'failure'>, bundled: boolean): string {
  const none = `Node ${process.version} has none built in`
  if (path !== undefined)
    return `no SQLite library can be loaded: ${none}, and ${PACKAGE} is at ${path} but cannot be loaded: ${reason(failure)}. ${
      bundled ? BUNDLED : `Is there a binary for ${process.platform}-${process.arch} in it? ${INSTALL}`
    }`
  if (bundled)
    return `no SQLite library can be loaded from here: ${none}, and this code runs in a bundle that cannot reach ${PACKAGE}. ${BUNDLED}`
  return `no SQLite library was found: ${none} and the optional package ${PACKAGE} is not installed; ${INSTALL}`
}

const INSTALL = `run \`npm install ${PACKAGE}@1\`, or use Node 22.13 or newer`
const BUNDLED = `A bundle cannot hold its binary: mark ${PACKAGE} as external, and where the bundle runs ${INSTALL}`
