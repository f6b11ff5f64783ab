import type { StoreFinding } from '../../info.js'
import type { Cancel } from '../../../world/timers.js'
import type { World } from '../../../world/world.js'
import { CheckpointThread } from './checkpoint-thread.js'
import { Checkpoints, WAL_MAX_BYTES } from './checkpoints.js'
import type { Reached } from './checkpoints.js'
import type { OpenedFile } from '../connection/open.js'
import type { Session } from '../connection/session.js'

/** After this long without a write the WAL is checkpointed and truncated. */
const IDLE_MS = 2_000
/** SQLite's own default, in pages. */
const AUTOMATIC_PAGES = 1_000

/** How many times its bound a log must have to be reported. */
const WAL_LARGE = 4

/** The write-ahead log of a store: truncated when the store is idle, and kept short while it is busy. */
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
    const { passiveCheckpoint: passive, truncateCheckpoint: truncate } = session.queries
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

  /** Called with the size of the -wal, at each call of the store. */
  noticed(walBytes: number): void {
    this.#walBytes = walBytes
    this.#checkpoints.noticed(walBytes)
  }

  /** A log that has outgrown its bound by far: a reader pins it. */
  findings(): readonly StoreFinding[] {
    if (this.#walBytes <= WAL_LARGE * WAL_MAX_BYTES) return []
    return [
      {
        kind: 'wal',
        text: `The write-ahead log of ${this.#file.path} has ${Math.round(this.#walBytes / 1024 / 1024)} MB.`,
        since: undefined,
        effect: 'Reads become slower, and the disk fills up.',
        mend: 'Close the connection that keeps a read transaction open: a shell, a backup, another program.',
      },
    ]
  }

  committed(durable: boolean): void {
    // A worker reads at every poll: that does not make the store busy.
    if (durable) this.#committedAt = this.#world.clock.monotonic()
    this.#idle ??= this.#world.timers.after(IDLE_MS, () => this.#truncateWhenIdle(), { idle: true })
  }

  /** Starts no more checkpoints. */
  stop(): void {
    this.#idle?.()
    this.#checkpoints.close()
  }

  async close(): Promise<void> {
    this.stop()
    await this.#thread?.close()
    // Checkpoint explicitly: not every library does it at close, and a copy of the file must be complete.
    this.#truncateWal()
  }

  /** After a while without writes, checkpoints the WAL and truncates it. */
  #truncateWhenIdle(): void {
    const quietMs = this.#world.clock.monotonic() - this.#committedAt
    if (quietMs < IDLE_MS) {
      this.#idle = this.#world.timers.after(IDLE_MS - quietMs, () => this.#truncateWhenIdle(), { idle: true })
      return
    }
    this.#idle = undefined
    // The thread checkpoints a long WAL: copying it here would block the event loop.
    if (this.#thread === undefined || this.#walBytes <= WAL_MAX_BYTES) this.#truncateWal()
    else this.#checkpoints.noticed(this.#walBytes)
  }

  #truncateWal(): void {
    try {
      this.#file.identity?.verify()
      this.#session.statement(this.#session.queries.truncateCheckpoint).get()
    } catch {
      // Busy, full or deleted: the next idle check, or the automatic checkpoint, does it.
    }
  }

  /** For a library that cannot be loaded in a thread. It never waits for readers: that would block the event loop. */
  async #checkpointHere(kind: 'passive' | 'truncate'): Promise<Reached | undefined> {
    const { passiveCheckpoint, truncateCheckpoint } = this.#session.queries
    try {
      const sql = kind === 'passive' ? passiveCheckpoint : truncateCheckpoint
      const reached = this.#session.statement(sql).get() as Reached
      return reached.log < 0 ? undefined : reached
    } catch {
      return undefined // Busy, for example because another process is checkpointing.
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
