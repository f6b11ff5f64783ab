import type { Cancel } from '../../../world/timers.js'
import type { World } from '../../../world/world.js'
import { CheckpointThread } from './checkpoint-thread.js'
import { Checkpoints, WAL_MAX_BYTES } from './checkpoints.js'
import type { Reached } from './checkpoints.js'
import type { OpenedFile } from '../connection/open.js'
import type { Session } from '../connection/session.js'

/** Nothing was written for so long: the WAL is folded back into the file. */
const IDLE_MS = 2_000
/** SQLite's own default, in pages. */
const AUTOMATIC_PAGES = 1_000

/** The write-ahead log of a store: folded back when the store is idle, and kept short while it is not. */
export class Wal {
  readonly #file: OpenedFile
  readonly #session: Session
  readonly #world: World
  readonly #thread: CheckpointThread | undefined
  readonly #checkpoints: Checkpoints
  #idle: Cancel | undefined
  #committedAt = 0
  #walBytes = 0

  constructor(file: OpenedFile, session: Session, world: World, warn: (text: string) => void) {
    this.#file = file
    this.#session = session
    this.#world = world
    const { library, path, identity } = file
    const { passiveCheckpoint: passive, foldBack: truncate } = session.queries
    if (identity !== undefined && library.module !== undefined)
      this.#thread = new CheckpointThread({ library, path, identity, passive, truncate })
    this.#checkpoints = new Checkpoints({
      path,
      world,
      warn,
      checkpoint: (kind) => this.#thread?.checkpoint(kind) ?? this.#checkpointHere(kind),
      setAutomatic: (on) => this.#setAutomatic(on),
    })
  }

  /** The size of the -wal was seen, at a call of the store. */
  noticed(walBytes: number): void {
    this.#walBytes = walBytes
    this.#checkpoints.noticed(walBytes)
  }

  committed(durable: boolean): void {
    // A worker looks for work at every poll: that is no reason to call it busy.
    if (durable) this.#committedAt = this.#world.clock.monotonic()
    this.#idle ??= this.#world.timers.after(IDLE_MS, () => this.#foldWhenIdle(), { idle: true })
  }

  /** Begins no more checkpoints. */
  rest(): void {
    this.#idle?.()
    this.#checkpoints.close()
  }

  async close(): Promise<void> {
    this.rest()
    await this.#thread?.close()
    // Folded back by hand: not every library does it when it closes, and a copy of the file must have everything.
    this.#foldBack()
  }

  /** When nothing has been written for a while, the WAL goes back into the file and is cut to nothing. */
  #foldWhenIdle(): void {
    const quietMs = this.#world.clock.monotonic() - this.#committedAt
    if (quietMs < IDLE_MS) {
      this.#idle = this.#world.timers.after(IDLE_MS - quietMs, () => this.#foldWhenIdle(), { idle: true })
      return
    }
    this.#idle = undefined
    // A long one is the thread's: to copy it here would block the event loop.
    if (this.#thread === undefined || this.#walBytes <= WAL_MAX_BYTES) this.#foldBack()
    else this.#checkpoints.noticed(this.#walBytes)
  }

  #foldBack(): void {
    try {
      this.#file.identity?.verify()
      this.#session.statement(this.#session.queries.foldBack).get()
    } catch {
      // Busy, full or gone: the next quiet moment, or the automatic checkpoint, does it.
    }
  }

  /** Where a library cannot be had in a thread. Nothing here waits for readers: that would block the event loop. */
  async #checkpointHere(kind: 'passive' | 'truncate'): Promise<Reached | undefined> {
    const { passiveCheckpoint, foldBack } = this.#session.queries
    try {
      const sql = kind === 'passive' ? passiveCheckpoint : foldBack
      const reached = this.#session.statement(sql).get() as Reached
      return reached.log < 0 ? undefined : reached
    } catch {
      return undefined // Busy, for example because another process is at it.
    }
  }

  #setAutomatic(on: boolean): void {
    try {
      this.#session.statements.database.exec(`pragma wal_autocheckpoint = ${on ? AUTOMATIC_PAGES : 0}`)
    } catch {
      // The connection is closed or failing: then it does not commit either.
    }
  }
}
