import {
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  fstatSync,
  lstatSync,
  openSync,
  readSync,
  statSync,
  writeSync,
} from 'node:fs'
import type { Stats } from 'node:fs'
import type { Clock } from '../../../world/clock.js'

export const SLOT_BYTES = 8
/** Room for more kinds of news than there are, so that an older process can read a newer one's file. */
const SLOTS_MAX = 8
export const FILE_BYTES = SLOT_BYTES * SLOTS_MAX
/** What is longer is not ours, whatever its name: it is left alone. */
const BYTES_MAX = 4_096
/** How long a file that was removed or put in another's place may stay unnoticed. */
const LOOK_AGAIN_MS = 1_000

/**
 * `<file>-wake`: a few bytes that say nothing by themselves; that they changed is the news. It may be missing, damaged,
 * unwritable or something else altogether: then there is no news here and everything is as without it.
 */
export class WakeFile {
  readonly path: string
  readonly #database: string
  readonly #clock: Clock
  readonly #parts: WakeFileParts
  #file: number | undefined
  #lookedAt = -Infinity

  constructor(database: string, clock: Clock, parts: WakeFileParts) {
    this.path = `${database}-wake`
    this.#database = database
    this.#clock = clock
    this.#parts = parts
  }

  get isOpen(): boolean {
    return this.#file !== undefined
  }

  /** Reads the slots into `slots`; false when there is no file to read. What the file does not have is zero. */
  read(slots: Buffer): boolean {
    const read = this.#attempt((file) => readSync(file, slots, 0, FILE_BYTES, 0))
    if (read === undefined) return false
    slots.fill(0, read)
    return true
  }

  /** Each slot by itself: one write over all of them would paint over what a neighbour wrote in between. */
  write(slot: number, bytes: Uint8Array): void {
    this.#attempt((file) => writeSync(file, bytes, 0, SLOT_BYTES, slot * SLOT_BYTES))
  }

  close(): void {
    if (this.#file !== undefined) closeSync(this.#file)
    this.#file = undefined
  }

  #attempt<T>(use: (file: number) => T): T | undefined {
    try {
      const file = this.#descriptor()
      return file === undefined ? undefined : use(file)
    } catch {
      return undefined // A full disk, a file that may not be written: other processes find out by polling.
    }
  }

  /** Looked at again once a second: it may have been removed, or its fault mended. */
  #descriptor(): number | undefined {
    const now = this.#clock.monotonic()
    if (now - this.#lookedAt < LOOK_AGAIN_MS) return this.#file
    this.#lookedAt = now
    const there = lstatSync(this.path, { throwIfNoEntry: false })
    if (this.#file !== undefined && there !== undefined && isSame(there, fstatSync(this.#file))) return this.#file
    this.close()
    if (there !== undefined && !isRegularFile(there)) return undefined
    this.#parts.verify()
    this.#file = open(this.path, statSync(this.#database))
    this.#parts.opened()
    return this.#file
  }
}

export interface WakeFileParts {
  /** Throws when the database is gone: then no wake file is made. */
  readonly verify: () => void
  /** Called whenever another file than before is in use: its watchers must watch that one. */
  readonly opened: () => void
}

/**
 * A file of its own, and short. A link, also a hard one, may lead to the database itself, and closing that would drop its
 * locks; a pipe or a device would block.
 */
function isRegularFile(stats: Stats): boolean {
  return stats.isFile() && stats.nlink === 1 && stats.size <= BYTES_MAX
}

function isSame(a: Stats, b: Stats): boolean {
  return a.dev === b.dev && a.ino === b.ino
}

/** Exactly those users who may write the database may write the wake file: it gets the database's owner and permissions. */
function open(path: string, database: Stats): number {
  const mode = database.mode & 0o666
  // Windows has neither flag, and none of what they guard against.
  const careful = (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0)
  const file = openSync(path, constants.O_RDWR | constants.O_CREAT | careful, mode)
  const stats = fstatSync(file)
  try {
    if (process.getuid?.() === 0 && stats.uid !== database.uid) fchownSync(file, database.uid, database.gid)
    if ((stats.mode & 0o777) !== mode && stats.uid === process.getuid?.()) fchmodSync(file, mode)
  } catch {
    // Not ours to change: it opened, and that is all it takes.
  }
  return file
}
