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
 *   our commit ──► tell: new random bytes in the slot of each kind of changed ──► others' watch ──► a hint of those kinds
 *   any commit ──► its write to the -wal ──► others' watch ──► data_version moved ──► a hint of every kind
 *
 * The wake file is exact and quick, and only we write it. The -wal is written by every process, so it also finds commits without a hint,
 * such as a commit of another program; while much is committed it is asked only now and then. All of this may be
 * lost or be about nothing: the poll is under it.
 */

type Kind = keyof Hint

/** Which slot tells of which part of a hint. Numbers are never used again: processes of two versions may share a file. */
const SLOTS: { readonly [kind in Kind]: number } = { ready: 0, dueInMs: 1, settled: 2, requested: 3 }
const KINDS = Object.keys(SLOTS) as Kind[]

/** What to tell of another's commit: each kind as if it were so now. When a job is due, the listener has to look. */
export const ALL_KINDS_HINT: Hint = { ready: true, dueInMs: 0, settled: true, requested: true }

/** Between two reads of the wake file: what others commit faster is one hint. */
const READ_EVERY_MS = 1
/** Between two writes of it: each wakes every process that listens. */
const PUBLISH_EVERY_MS = 5
/** What became ready is for our own worker first: if all of it is taken by then, the others need not come for it. */
const OWN_FIRST_MS = 2

export interface WakeParts {
  /** The database's path. */
  readonly path: string
  /** Throws when another file is at the path: then no wake file is made there. */
  readonly verify: () => void
  readonly world: World
  readonly watch: Watch
  readonly version: () => number
  /** A worker of this process may take what is ready. */
  readonly hasLocalWorker: () => boolean
  /** There is something to take. */
  readonly isReady: () => boolean
  /** Another process, or another connection of this one, committed something. */
  readonly onHint: (hint: Hint) => void
  /** A sentence for people: it cannot watch. */
  readonly note: (sentence: string) => void
}

export class Wake {
  readonly #parts: WakeParts
  readonly #file: WakeFile
  readonly #fileWatch: ReconnectingFileWatch
  readonly #commits: ForeignCommits
  /** The slots as we last saw or wrote them, while there is a listener. */
  #seen: Buffer | undefined
  /** As they are read: at full speed that is hundreds of times a second, and each need not be a new piece of memory. */
  readonly #slots = Buffer.alloc(FILE_BYTES)
  #reading: Cancel | undefined
  #readAt = -Infinity
  /** Hints that were not passed on yet. */
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

  /** There is a listener: report what is committed from now on. */
  listen(): void {
    if (this.#seen !== undefined || this.#closed) return
    this.#seen = Buffer.alloc(FILE_BYTES)
    this.#file.read(this.#seen)
    this.#watchFile()
    this.#commits.listen()
  }

  /** There is no listener any more. */
  stopListening(): void {
    this.#seen = undefined
    this.#fileWatch.stop()
    this.#commits.stopListening()
    this.#reading?.()
    this.#reading = undefined
  }

  /** We committed this: the others hear of it. */
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
    this.#readSlots() // A neighbour's changed must not be painted over.
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

  /** Only a file that is what it should be is watched: its name may lead anywhere. */
  #watchFile(): void {
    if (this.#seen !== undefined && this.#file.isOpen) this.#fileWatch.start()
  }

  /** Touches of one turn, and of one millisecond, are one read. */
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

  /** Reads the slots and passes on what others changed. */
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
      `${this.#parts.path}: what other processes commit cannot be watched here (${why}); ` +
        'it is looked for once a second, and at every `poll`',
    )
  }
}

function slotOf(slots: Buffer, kind: Kind): Buffer {
  return slots.subarray(SLOTS[kind] * SLOT_BYTES, (SLOTS[kind] + 1) * SLOT_BYTES)
}

/**
 * Elsewhere a watch opens what it watches, and only SQLite may open a database's files: closing one of them can drop the
 * locks of the whole process. There, a commit on a user's connection is told by the process that made it.
 */
const WATCHES_WITHOUT_OPENING = process.platform === 'linux' || process.platform === 'win32'
