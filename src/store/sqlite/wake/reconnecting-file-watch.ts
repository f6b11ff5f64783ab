import type { Cancel, Timers } from '../../../world/timers.js'
import type { Watch } from '../../../world/watch.js'

/** The wait before a file that is missing, or could not be watched, is tried again. */
const TRY_AGAIN_MS = 1_000

export interface FileWatchParts {
  readonly timers: Timers
  /** Undefined: the file must not be watched, and counts as touched once a second. */
  readonly watch: Watch | undefined
  readonly touched: () => void
  /** The file cannot be watched, for a reason that does not go away by itself. */
  readonly failed: (error: unknown) => void
}

/**
 * Keeps a file watched while it is removed and created again. While it cannot be watched, it counts as touched once a
 * second.
 */
export class ReconnectingFileWatch {
  readonly #path: string
  readonly #parts: FileWatchParts
  #unwatch: Cancel | undefined
  #again: Cancel | undefined

  constructor(path: string, parts: FileWatchParts) {
    this.#path = path
    this.#parts = parts
  }

  start(): void {
    this.stop()
    const { watch, touched, failed } = this.#parts
    if (watch === undefined) return this.#tryLater()
    try {
      this.#unwatch = watch(this.#path, touched, () => this.#tryLater())
    } catch (error) {
      if ((error as { code?: unknown }).code !== 'ENOENT') failed(error)
      this.#tryLater()
    }
  }

  stop(): void {
    this.#unwatch?.()
    this.#unwatch = undefined
    this.#again?.()
    this.#again = undefined
  }

  #tryLater(): void {
    this.stop()
    const again = (): void => {
      this.start()
      this.#parts.touched()
    }
    this.#again = this.#parts.timers.after(TRY_AGAIN_MS, again, { idle: true })
  }
}
