import { SingleFlight } from '../../../world/single-flight.js'
import type { Cancel } from '../../../world/timers.js'
import type { World } from '../../../world/world.js'

/**
 * Keeps the WAL short. Usually SQLite does: the commit that fills 1000 pages checkpoints, and the next one starts the WAL again.
 * Two kinds of readers prevent that:
 *
 * - Readers that overlap: everything is checkpointed, but the WAL is never started again. A truncating checkpoint helps: it
 *   blocks writers for a moment, until the last reader of the WAL ends.
 * - One reader that keeps its transaction open: no page after its snapshot can be checkpointed. SQLite tries again after every
 *   commit, and a truncating checkpoint only blocks writers (jobs started 100 ms late).
 *
 * So past WAL_MAX_BYTES a thread (checkpoint-thread.ts) makes a passive checkpoint, which blocks no writer. If it reached all but
 * the last few pages, the readers overlap, and the thread truncates. If not, a reader pins the WAL: automatic checkpoints are
 * turned off, and passive ones are tried at growing intervals. See docs/decisions/sqlite-checkpoints.md.
 */
export class Checkpoints {
  readonly #parts: CheckpointsParts
  #state: CheckpointState = UNPINNED
  #nextAt = -Infinity
  #walBytes = 0
  readonly #checkpoints = new SingleFlight(() => this.#checkpoint())
  #timer: Cancel | undefined
  #closed = false

  constructor(parts: CheckpointsParts) {
    this.#parts = parts
  }

  /** Called with every call of the store; costs one comparison unless the WAL is long. */
  noticed(walBytes: number): void {
    this.#walBytes = walBytes
    if (walBytes > WAL_MAX_BYTES && this.#timer === undefined) this.#checkpointIfDue()
  }

  close(): void {
    this.#closed = true
    this.#timer?.()
  }

  #checkpointIfDue(): void {
    if (!this.#closed && this.#parts.world.clock.monotonic() >= this.#nextAt) void this.#checkpoints.join()
  }

  async #checkpoint(): Promise<void> {
    const { clock, timers } = this.#parts.world
    const reached = await this.#catchUp()
    if (this.#closed) return
    const before = this.#state
    const { state, waitMs, warns } = judge(before, reached, clock.monotonic())
    this.#state = state
    if (warns) this.#parts.warn(pinnedWarning(this.#parts.path, this.#walBytes))
    const isPinned = state.pinnedSince !== null
    if (isPinned !== (before.pinnedSince !== null)) this.#parts.setAutomatic(!isPinned)
    // Only the truncating checkpoint waits for readers, and only when they are known to move on.
    if (reached !== undefined && !isPinned) await this.#parts.checkpoint('truncate')
    this.#nextAt = clock.monotonic() + waitMs
    this.#timer = isPinned ? timers.after(waitMs, () => this.#retryPinned(), { idle: true }) : undefined
  }

  #retryPinned(): void {
    this.#timer = undefined
    this.#nextAt = -Infinity // A timer may fire a fraction of a millisecond early.
    this.#checkpointIfDue()
  }

  /**
   * Makes passive checkpoints until one is quick, so that the truncating one has little left to copy while it blocks
   * writers.
   */
  async #catchUp(): Promise<Reached | undefined> {
    const { clock } = this.#parts.world
    for (let left = PASSIVE_MAX; ; left -= 1) {
      const start = clock.monotonic()
      const reached = await this.#parts.checkpoint('passive')
      if (reached === undefined || isBehind(reached) || left <= 1 || clock.monotonic() - start < QUICK_MS)
        return reached
    }
  }
}

export interface CheckpointsParts {
  readonly path: string
  readonly world: World
  /** Undefined: the checkpoint was not possible now, for example because another process is making one. */
  readonly checkpoint: (kind: 'passive' | 'truncate') => Promise<Reached | undefined>
  /** Whether the store's connection checkpoints after its own commits. */
  readonly setAutomatic: (on: boolean) => void
  readonly warn: (text: string) => void
}

/** In pages: the length of the WAL, and how much of it was copied into the file. */
export interface Reached {
  readonly log: number
  readonly checkpointed: number
}

export interface CheckpointState {
  /** When a reader was first seen to pin the WAL, on the monotonic clock; null while none does. */
  readonly pinnedSince: number | null
  readonly waitMs: number
  readonly warned: boolean
}

/** Above this length the thread takes over from the automatic checkpoint, which keeps the WAL at a quarter of it. */
export const WAL_MAX_BYTES = 16 * 1024 * 1024
/** How many pages short-lived readers may be behind at full speed; a reader that is further behind pins the WAL. */
const BEHIND_PAGES = 1_000
const CHECKPOINT_EVERY_MS = 500
const BACK_OFF_MAX_MS = 5_000
/** A reader is reported when it has pinned the WAL for this long. */
const WARN_AFTER_MS = 10_000
const PASSIVE_MAX = 5
const QUICK_MS = 100

export const UNPINNED: CheckpointState = { pinnedSince: null, waitMs: CHECKPOINT_EVERY_MS, warned: false }

/** Decides what to do after a passive checkpoint. Pure. */
export function judge(
  state: CheckpointState,
  reached: Reached | undefined,
  now: number,
): { readonly state: CheckpointState; readonly waitMs: number; readonly warns: boolean } {
  if (reached === undefined) return { state, waitMs: state.waitMs, warns: false }
  if (!isBehind(reached)) return { state: UNPINNED, waitMs: CHECKPOINT_EVERY_MS, warns: false }
  const pinnedSince = state.pinnedSince ?? now
  const warns = !state.warned && now - pinnedSince >= WARN_AFTER_MS
  const next = {
    pinnedSince,
    waitMs: Math.min(BACK_OFF_MAX_MS, state.waitMs * 2),
    warned: state.warned || warns,
  }
  return { state: next, waitMs: state.waitMs, warns }
}

function isBehind({ log, checkpointed }: Reached): boolean {
  return log - checkpointed > BEHIND_PAGES
}

function pinnedWarning(path: string, walBytes: number): string {
  return (
    `${path}-wal has grown to ${Math.round(walBytes / 1024 / 1024)} MB: a process keeps a read transaction open on ${path}, and the log ` +
    'cannot be shortened past it. Jobs go on, and the log grows until that transaction ends; then it shrinks by itself. Find the ' +
    `process (Linux: fuser -v ${path}-wal) and end its transaction: a shell, a database browser, a backup, a cursor left open`
  )
}
