import { statSync } from 'node:fs'
import type { BigIntStats } from 'node:fs'
import { StoreGoneError } from '../../../errors.js'
import type { Clock } from '../../../world/clock.js'
import { translateSystem } from '../connection/faults.js'

/**
 * Checks that the path still leads to the file that was opened. SQLite writes through descriptors, so after the file was deleted,
 * renamed or replaced, commits succeed in a file that no other process will open. After every flush, and before the caller gets
 * its answer, device and inode of the file, its -wal and its -shm are compared with those at the open. The -shm counts because it
 * holds the locks: a process that finds none makes a new one, and both processes then write the same -wal.
 *
 * While a connection of ours is open, SQLite keeps the inodes of -wal and -shm. Not detected: other contents copied into the same
 * inode (`cp backup.db jobs.db`). See docs/decisions/sqlite-file-identity.md.
 */
export class FileIdentity {
  /** In a form that can be passed to a thread. */
  readonly parts: readonly IdentityPart[]
  readonly #clock: Clock
  #gone: StoreGoneError | undefined
  #verifiedAt = -Infinity
  #walBytes = 0
  #watcher: IdentityWatcher | undefined

  private constructor(parts: readonly IdentityPart[], clock: Clock) {
    this.parts = parts
    this.#clock = clock
  }

  /** Call it after the connection's first read, so that the -wal exists. Undefined where files have no inode. */
  static of(path: string, clock: Clock): FileIdentity | undefined {
    if (path === ':memory:') return undefined
    const parts = [path, `${path}${WAL}`, `${path}-shm`].flatMap((each) => {
      const stats = statOrUndefined(each, path)
      return stats === undefined || stats.ino === 0n ? [] : [{ path: each, dev: stats.dev, ino: stats.ino }]
    })
    return parts.length === 0 ? undefined : new FileIdentity(parts, clock)
  }

  /** Throws StoreGoneError when the file was deleted or replaced; after that always, even when the file is restored. */
  verify(): void {
    if (this.#gone !== undefined) throw this.#gone
    for (const part of this.parts) {
      const stats = statOrUndefined(part.path, this.#path)
      if (stats?.ino !== part.ino || stats.dev !== part.dev) throw this.#noteGone(part.path, stats !== undefined)
      if (part.path.endsWith(WAL)) this.#walBytes = Number(stats.size)
    }
    this.#verifiedAt = this.#clock.monotonic()
    this.#watcher?.verified(this.#walBytes)
  }

  /** The same, unless it was verified within the last few milliseconds, as it is between two commits at full speed. */
  verifyIfDue(): void {
    if (this.#gone !== undefined || this.#clock.monotonic() - this.#verifiedAt > VERIFIED_FOR_MS) this.verify()
  }

  /** At most one watcher: the store. */
  watch(watcher: IdentityWatcher): void {
    this.#watcher = watcher
  }

  #noteGone(path: string, isReplaced: boolean): StoreGoneError {
    const error = goneError(this.#path, path, isReplaced)
    this.#gone = error
    this.#watcher?.gone(error)
    return error
  }

  get #path(): string {
    return this.parts[0]?.path ?? ''
  }
}

export interface IdentityWatcher {
  /** Called once, when the file is first found deleted or replaced. */
  gone(error: StoreGoneError): void
  /** Called each time the file was found in place, with the size of its -wal. */
  verified(walBytes: number): void
}

export interface IdentityPart {
  readonly path: string
  readonly dev: bigint
  readonly ino: bigint
}

/** Opens another connection by the path, which must lead to the store's file: SQLite would create a missing one. */
export function openSame<T extends { close(): unknown }>(identity: FileIdentity | undefined, open: () => T): T {
  identity?.verify()
  const handle = open()
  try {
    identity?.verify()
    return handle
  } catch (error) {
    handle.close()
    throw error
  }
}

/** The same check as part of a thread's program, which has `identity` (the parts) and `statSync` in scope. */
export const IS_GONE = `
const isGone = () => identity.some(({ path, dev, ino }) => {
  const stats = statSync(path, { bigint: true, throwIfNoEntry: false })
  return stats === undefined || stats.ino !== ino || stats.dev !== dev
})
`

const WAL = '-wal'
const VERIFIED_FOR_MS = 10
const STAT = { bigint: true, throwIfNoEntry: false } as const

function statOrUndefined(path: string, name: string): BigIntStats | undefined {
  try {
    return statSync(path, STAT)
  } catch (error) {
    throw translateSystem(error, name)
  }
}

function goneError(name: string, path: string, isReplaced: boolean): StoreGoneError {
  const what =
    path === name ? name : `${path.endsWith(WAL) ? 'the write-ahead log' : 'the index of the write-ahead log'} ${path}`
  return new StoreGoneError(
    `${what} ${isReplaced ? 'was replaced by another file' : 'was deleted or moved'} while this mill had it open; this call is not ` +
      'acknowledged, though what it wrote may be in the file that was deleted or moved, and every further call fails. ' +
      `Restore ${name}, with all processes that use it stopped; then close this mill and open a new one`,
  )
}
