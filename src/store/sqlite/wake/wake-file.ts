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
/** Room for more kinds of hints than exist now, so that an older process can read the file of a newer one. */
const SLOTS_MAX = 8
export const FILE_BYTES = SLOT_BYTES * SLOTS_MAX
/** A longer file is not a wake file, whatever its name, and is left alone. */
const BYTES_MAX = 4_096
/** How long a removed or replaced file may stay unnoticed. */
const RETRY_MS = 1_000

/**
 * `<file>-wake`: a few bytes without a meaning of their own; a change of them is the hint. The file may be missing,
 * damaged, unwritable or another kind of file: then it gives no hints, and listeners poll.
 */
export class WakeFile {
  readonly path: string
  readonly #database: string
  readonly #clock: Clock
  readonly #parts: WakeFileParts
  #file: number | undefined
  #triedAt = -Infinity

  constructor(database: string, clock: Clock, parts: WakeFileParts) {
    this.path = `${database}-wake`
    this.#database = database
    this.#clock = clock
    this.#parts = parts
  }

  get isOpen(): boolean {
    return this.#file !== undefined
  }

  /** Reads the slots into `slots`; false when there is no file to read. Slots beyond the end of the file are zero. */
  read(slots: Buffer): boolean {
    const read = this.#attempt((file) => readSync(file, slots, 0, FILE_BYTES, 0))
    if (read === undefined) return false
    slots.fill(0, read)
    return true
  }

  /** Writes one slot at a time: one write of all slots would overwrite what another process wrote in between. */
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
      return undefined // A full disk, or a file without write permission: other processes poll.
    }
  }

  /** Checked again once a second: the file may have been removed, or an earlier error may be resolved. */
  #descriptor(): number | undefined {
    const now = this.#clock.monotonic()
    if (now - this.#triedAt < RETRY_MS) return this.#file
    this.#triedAt = now
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
  /** Throws when the database was deleted or replaced: then no wake file is created. */
  readonly verify: () => void
  /** Called whenever another file than before is in use: its watchers must watch that one. */
  readonly opened: () => void
}

/**
 * A regular, short file with one name. A link, also a hard link, may lead to the database itself, and closing that
 * would drop its locks; a pipe or a device would block.
 */
function isRegularFile(stats: Stats): boolean {
  return stats.isFile() && stats.nlink === 1 && stats.size <= BYTES_MAX
}

function isSame(a: Stats, b: Stats): boolean {
  return a.dev === b.dev && a.ino === b.ino
}

/**
 * Exactly the users who may write the database may write the wake file: it gets the database's owner and permissions.
 */
function open(path: string, database: Stats): number {
  const mode = database.mode & 0o666
  // Windows has neither flag, and none of the files they guard against.
  const careful = (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0)
  const file = openSync(path, constants.O_RDWR | constants.O_CREAT | careful, mode)
  const stats = fstatSync(file)
  try {
    if (process.getuid?.() === 0 && stats.uid !== database.uid) fchownSync(file, database.uid, database.gid)
    if ((stats.mode & 0o777) !== mode && stats.uid === process.getuid?.()) fchmodSync(file, mode)
  } catch {
    // This user may not change it. It is open, and that is enough.
  }
  return file
}
