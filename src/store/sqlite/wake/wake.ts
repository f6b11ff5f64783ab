import { afterIdle } from '../../../world/timers.js'
import type { Cancel } from '../../../world/timers.js'
import type { Watch } from '../../../world/watch.js'
import type { World } from '../../../world/world.js'
import type { Hint } from '../../store.js'
import { ForeignCommits } from './foreign-commits.js'
import { ReconnectingFileWatch } from './reconnecting-file-watch.js'
import { EMPTY_HINT } from '../../hint.js'
import { FILE_BYTES, SLOT_BYTES, WakeFile } from './wake-file.js'

/**
 * How processes that share a file wake each other.
 *
 *   our commit ──► publish: new random bytes in the slot of each kind ──► others' watch ──► a hint of those kinds
 *   any commit ──► its write to the -wal ──► others' watch ──► data_version changed ──► a hint of every kind
 *
 * The wake file is exact and fast, and only Millrace writes it. Every commit writes the -wal, so its watch also finds
 * commits without a hint, such as those of another program; under load it is checked only now and then. A hint can be
 * lost or can be false, so listeners also poll.
 */

type Kind = keyof Hint

/** The slot of each part of a hint. Numbers are never reused: processes of two versions may share a file. */
const SLOTS: { readonly [kind in Kind]: number } = { ready: 0, dueInMs: 1, settled: 2, requested: 3 }
const KINDS = Object.keys(SLOTS) as Kind[]

/**
 * The hint for a commit of unknown content: each kind as if it applied now. The listener has to read when a job is due.
 */
export const ALL_KINDS_HINT: Hint = { ready: true, dueInMs: 0, settled: true, requested: true }

/** The shortest time between two reads of the wake file: commits in between become one hint. */
const READ_EVERY_MS = 1
/** The shortest time between two writes of the wake file: each wakes every listening process. */
const PUBLISH_EVERY_MS = 5
/** A head start for the local worker: if it takes all ready jobs in this time, other processes need no hint. */
const OWN_FIRST_MS = 2

export interface WakeParts {
  /** The database's path. */
  readonly path: string
  /** Throws when another file is at the path: then no wake file is created there. */
  readonly verify: () => void
  readonly world: World
  readonly watch: Watch
  readonly version: () => number
  /** A worker of this process may claim the ready jobs. */
  readonly hasLocalWorker: () => boolean
  /** A job is ready. */
  readonly isReady: () => boolean
  /** Another process, or another connection of this process, committed. */
  readonly onHint: (hint: Hint) => void
  /** Writes a warning to the log: the file cannot be watched. */
  readonly note: (sentence: string) => void
}

export class Wake {
  readonly #parts: WakeParts
  readonly #file: WakeFile
  readonly #fileWatch: ReconnectingFileWatch
  readonly #commits: ForeignCommits
  /** The slots as last read or written, while there is a listener. */
  #seen: Buffer | undefined
  /** A buffer for reading, reused: at full speed there are hundreds of reads a second. */
  readonly #slots = Buffer.alloc(FILE_BYTES)
  #reading: Cancel | undefined
  #readAt = -Infinity
  /** Kinds that are not written to the wake file yet. */
  readonly #pendingKinds = new Set<Kind>()
  #publishing: Cancel | undefined
  #publishedAt = -Infinity
  #noted = false
  #closed = false

  constructor(parts: WakeParts) {
    this.#parts = parts
    const { watch, path, version, verify } = parts
    const { clock, timers } = parts.world
    const failed = (error: unknown): void => this.#note(error)
    this.#file = new WakeFile(path, clock, { verify, opened: () => this.#watchFile() })
    this.#fileWatch = new ReconnectingFileWatch(this.#file.path, {
      timers,
      watch,
      failed,
      touched: () => this.#readSoon(),
    })
    const walWatch = WATCHES_WITHOUT_OPENING ? watch : undefined
    this.#commits = new ForeignCommits(
      {
        clock,
        timers,
        version,
        report: () => this.#parts.onHint(ALL_KINDS_HINT),
      },
      (touched) => new ReconnectingFileWatch(`${path}-wal`, { timers, watch: walWatch, failed, touched }),
    )
  }

  /** There is a listener: report commits from now on. */
  listen(): void {
    if (this.#seen !== undefined || this.#closed) return
    this.#seen = Buffer.alloc(FILE_BYTES)
    this.#file.read(this.#seen)
    this.#watchFile()
    this.#commits.listen()
  }

  /** The last listener was removed. */
  stopListening(): void {
    this.#seen = undefined
    this.#fileWatch.stop()
    this.#commits.stopListening()
    this.#reading?.()
    this.#reading = undefined
  }

  /** Publishes the hint of a local commit to other processes. */
  publish(hint: Hint): void {
    for (const kind of KINDS) if (hint[kind] !== EMPTY_HINT[kind]) this.#pendingKinds.add(kind)
    if (this.#pendingKinds.size === 0 || this.#publishing !== undefined || this.#closed) return
    const { clock, timers } = this.#parts.world
    const ownFirstMs = hint.ready && this.#parts.hasLocalWorker() ? OWN_FIRST_MS : 0
    const waitMs = Math.max(ownFirstMs, this.#publishedAt + PUBLISH_EVERY_MS - clock.monotonic())
    if (waitMs <= 0) this.#publishNow()
    else this.#publishing = afterIdle(timers, waitMs, () => this.#publishNow())
  }

  close(): void {
    if (this.#closed) return
    this.#publishNow()
    this.#closed = true
    this.stopListening()
    this.#commits.close()
    this.#file.close()
  }

  #publishNow(): void {
    this.#publishing?.()
    this.#publishing = undefined
    this.#publishedAt = this.#parts.world.clock.monotonic()
    this.#readSlots() // Read first: writing would overwrite hints of other processes.
    if (this.#pendingKinds.has('ready') && this.#parts.hasLocalWorker() && !this.#parts.isReady())
      this.#pendingKinds.delete('ready')
    for (const kind of this.#pendingKinds) this.#write(SLOTS[kind])
    this.#pendingKinds.clear()
  }

  #write(slot: number): void {
    const bytes = Buffer.alloc(SLOT_BYTES)
    bytes.writeDoubleLE(this.#parts.world.ids.fence()) // A number that no other process draws.
    this.#file.write(slot, bytes)
    this.#seen?.set(bytes, slot * SLOT_BYTES)
  }

  /** Watches the file only after its check: the name may lead to anything. */
  #watchFile(): void {
    if (this.#seen !== undefined && this.#file.isOpen) this.#fileWatch.start()
  }

  /** Touches of one turn, and of one millisecond, cause one read. */
  #readSoon(): void {
    if (this.#reading !== undefined || this.#seen === undefined) return
    const { clock, timers } = this.#parts.world
    const read = (): void => {
      this.#reading = undefined
      this.#readAt = clock.monotonic()
      this.#readSlots()
    }
    this.#reading = afterIdle(timers, this.#readAt + READ_EVERY_MS - clock.monotonic(), read)
  }

  /** Reads the slots and reports those that other processes changed. */
  #readSlots(): void {
    if (this.#seen === undefined) return
    const [before, slots] = [this.#seen, this.#slots]
    if (!this.#file.read(slots) || slots.equals(before)) return
    const changed = KINDS.filter((kind) => !slotOf(slots, kind).equals(slotOf(before, kind)))
    before.set(slots)
    this.#parts.onHint({ ...EMPTY_HINT, ...Object.fromEntries(changed.map((kind) => [kind, ALL_KINDS_HINT[kind]])) })
  }

  #note(error: unknown): void {
    if (this.#noted) return
    this.#noted = true
    const why = error instanceof Error ? error.message : String(error)
    this.#parts.note(
      `${this.#parts.path}: commits of other processes cannot be watched (${why}); ` +
        'the store checks for them once a second, and at every `poll`',
    )
  }
}

function slotOf(slots: Buffer, kind: Kind): Buffer {
  return slots.subarray(SLOTS[kind] * SLOT_BYTES, (SLOTS[kind] + 1) * SLOT_BYTES)
}

/**
 * On other systems a watch opens the file it watches, and only SQLite may open a database's files: closing one of them can
 * drop the locks of the whole process. There, the process that owns a user's connection publishes the hint of its commits.
 */
const WATCHES_WITHOUT_OPENING = process.platform === 'linux' || process.platform === 'win32'
