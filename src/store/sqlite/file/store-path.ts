import { accessSync, constants, lstatSync, mkdirSync, readlinkSync, realpathSync, statSync } from 'node:fs'
import type { Stats } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { StoreError } from '../../../errors.js'
import { translateSystem } from '../connection/faults.js'

/** As many links as the system follows. */
const LINKS_MAX = 40

/**
 * The path without symbolic links, also of a file that does not exist yet. SQLite resolves links for its -wal and -shm,
 * so the store must find the files beside the database by the same path, whichever path each process was given.
 */
export function realPath(given: string): string {
  let path = resolve(given)
  for (let left = LINKS_MAX; left > 0; left -= 1) {
    const link = translateErrors(path, () => lstatSync(path, { throwIfNoEntry: false }))
    // The folder may be missing too; then the check of the folder reports it.
    if (link === undefined)
      return join(
        translateErrors(path, () => realFolder(dirname(path))),
        basename(path),
      )
    if (!link.isSymbolicLink()) return translateErrors(path, () => realpathSync(path))
    path = resolve(realFolder(dirname(path)), readlinkSync(path))
  }
  throw translateSystem({ code: 'ELOOP' }, given)
}

/**
 * Creates the missing folders of a new store. Called before its real path is resolved: a folder in the path may be a
 * link.
 */
export function makeFolder(given: string): void {
  const path = resolve(given)
  const folder = dirname(path)
  if (translateErrors(path, () => statSync(folder, { throwIfNoEntry: false })) !== undefined) return
  if (isTooLong(path)) throw translateSystem({ code: 'ENAMETOOLONG' }, path)
  const above = nearestAbove(folder)
  if (!isAllowed(above, constants.W_OK | constants.X_OK))
    throw readOnly(`${path} cannot be made: there is no folder ${folder}, and ${above} is read-only for ${user()}`)
  translateErrors(path, () => mkdirSync(folder, { recursive: true }))
}

function nearestAbove(folder: string): string {
  const above = dirname(folder)
  return above === folder || statSync(above, { throwIfNoEntry: false }) !== undefined ? above : nearestAbove(above)
}

function realFolder(folder: string): string {
  return statSync(folder, { throwIfNoEntry: false }) === undefined ? folder : realpathSync(folder)
}

/**
 * Refuses a path that cannot be a store, with advice, before SQLite opens it: SQLite's error says less, and it creates
 * files.
 */
export function checkPlace(path: string): { readonly isNew: boolean } {
  if (isTooLong(path)) throw translateSystem({ code: 'ENAMETOOLONG' }, path)
  const there = translateErrors(path, () => statSync(path, { throwIfNoEntry: false }))
  if (there === undefined) checkFolder(path)
  else checkFile(path, there)
  return { isNew: there === undefined }
}

function checkFolder(path: string): void {
  const folder = dirname(path)
  const there = translateErrors(path, () => statSync(folder, { throwIfNoEntry: false }))
  if (there?.isDirectory() !== true)
    throw cannotOpen(`${path} cannot be made: there is no folder ${folder}, to which a link leads; make it first`)
  if (!isAllowed(folder, constants.W_OK | constants.X_OK))
    throw readOnly(`${path} cannot be made: its folder ${folder} is read-only for ${user()}`)
}

function checkFile(path: string, there: Stats): void {
  const wrongKind = notAFile(path, there)
  if (wrongKind !== undefined) throw wrongKind
  if (!isAllowed(path, constants.R_OK))
    throw cannotOpen(`${path} cannot be opened: ${user()} may not read it; change its owner or its permissions`)
  // SQLite would open it for reading only, and the first enqueue would fail.
  if (!isAllowed(path, constants.W_OK)) throw readOnly(`${path} is read-only for ${user()}`)
}

function notAFile(path: string, there: Stats): StoreError | undefined {
  if (there.isFile()) return undefined
  if (!there.isDirectory())
    return cannotOpen(`${path} is a device, a pipe or a socket; the store is a file: choose another path`)
  return cannotOpen(`${path} is a folder; the store is a file: add a file name, such as ${path}/millrace.db`)
}

/** Why SQLite cannot open a file that passed the checks; undefined when no reason is found. */
export function whyNotOpened(path: string): StoreError | undefined {
  return translateErrors(path, () => folderProblem(path))
}

function folderProblem(path: string): StoreError | undefined {
  const itself = statSync(path, { throwIfNoEntry: false })
  const wrongKind = itself === undefined ? undefined : notAFile(path, itself)
  if (wrongKind !== undefined) return wrongKind
  for (const beside of [`${path}-wal`, `${path}-shm`]) {
    const there = lstatSync(beside, { throwIfNoEntry: false })
    if (there !== undefined && !there.isFile())
      return cannotOpen(`${beside} is not a file, and SQLite needs that name for ${path}; remove it`)
    if (there !== undefined && !isAllowed(beside, constants.R_OK | constants.W_OK))
      return cannotOpen(
        `${path} cannot be opened: ${user()} may not read and write ${beside}, which another user made; let all processes run as one ` +
          'user, or give both users the file and what is beside it',
      )
  }
  if (!isAllowed(dirname(path), constants.W_OK | constants.X_OK))
    return readOnly(
      `${path} cannot be opened: its folder is read-only for ${user()}, and SQLite keeps -wal and -shm beside the file`,
    )
  return isTooLong(path) ? (translateSystem({ code: 'ENAMETOOLONG' }, path) as StoreError) : undefined
}

function isTooLong(path: string): boolean {
  return Buffer.byteLength(path) > PATH_MAX_BYTES || Buffer.byteLength(basename(path)) > NAME_MAX_BYTES
}

/** SQLite accepts paths of up to 512 bytes; its own endings and those of the store need room. */
const PATH_MAX_BYTES = 500
const NAME_MAX_BYTES = 240

function isAllowed(path: string, mode: number): boolean {
  try {
    accessSync(path, mode)
    return true
  } catch {
    return false // EACCES, EPERM or EROFS: the advice is the same.
  }
}

function user(): string {
  const id = process.getuid?.()
  return id === undefined ? 'this user' : `this user (uid ${id})`
}

function cannotOpen(message: string): StoreError {
  return new StoreError('E_CANNOT_OPEN', message)
}

function readOnly(what: string): StoreError {
  return new StoreError(
    'E_READ_ONLY',
    `${what}, or its file system is mounted read-only; Millrace writes to the file and makes others beside it: change owner or ` +
      'permissions, or choose another path',
  )
}

function translateErrors<T>(path: string, call: () => T): T {
  try {
    return call()
  } catch (error) {
    throw translateSystem(error, path)
  }
}
