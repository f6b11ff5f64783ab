import type { Clock } from '../../../world/clock.js'
import { afterIdle } from '../../../world/timers.js'
import type { Cancel, Timers } from '../../../world/timers.js'
import type { ReconnectingFileWatch } from './reconnecting-file-watch.js'

/**
 * The waits before each check after the -wal was touched. The commit is visible only after its flush, later than the touch, so
 * checks continue until one finds a commit, or for longer than most flushes take. Further touches in that time are ignored, so a
 * busy file costs a few checks. The watch stays open: to stop and start it each time cost a tenth of the throughput.
 */
const BURST_MS = [0, 1, 2, 4, 8, 16, 32, 64, 128]
/** The committing process claims first, and may take the jobs it made ready: other processes check a little later. */
const OTHERS_LAST_MS = 2
/** The shortest time between two reports, however many commits there are: most commits are reported in other ways. */
const REPORT_EVERY_MS = 50

export interface ForeignCommitsParts {
  readonly clock: Clock
  readonly timers: Timers
  /** The connection's `data_version`: it changes with every commit of another connection. */
  readonly version: () => number
  /** Another connection committed. */
  readonly report: () => void
}

/** Finds commits of other connections by reading `data_version`, for a short while after a touch of the -wal. */
export class ForeignCommits {
  readonly #parts: ForeignCommitsParts
  readonly #wal: ReconnectingFileWatch
  #listening = false
  #version: number | undefined
  #step = 0
  #touchedAgain = false
  #timer: Cancel | undefined
  #reporting: Cancel | undefined
  #reportedAt = -Infinity

  constructor(parts: ForeignCommitsParts, watchWal: (touched: () => void) => ReconnectingFileWatch) {
    this.#parts = parts
    this.#wal = watchWal(() => this.#touched())
  }

  /** Takes the current version as known, and reports later commits. */
  listen(): void {
    this.#listening = true
    this.#version = this.#parts.version()
    this.#wal.start()
  }

  stopListening(): void {
    this.#listening = false
    this.#wal.stop()
    this.#reporting?.()
    this.#reporting = undefined
  }

  close(): void {
    this.stopListening()
    this.#timer?.()
    this.#timer = undefined
  }

  #touched(): void {
    // Checks are in progress: the commit of this touch may be visible only after the last of them.
    if (this.#timer !== undefined) return void (this.#touchedAgain = true)
    this.#step = 0
    this.#checkIn(BURST_MS[0])
  }

  #checkIn(ms: number | undefined): void {
    this.#timer?.()
    this.#timer = ms === undefined ? undefined : afterIdle(this.#parts.timers, ms, () => this.#nextLook())
    if (ms !== undefined || !this.#touchedAgain) return
    this.#touchedAgain = false
    this.#touched()
  }

  /** After a check that found a commit, check once more: the touch may have come from two commits. */
  #nextLook(): void {
    const found = this.#check()
    this.#step = found ? BURST_MS.length : this.#step + 1
    this.#checkIn(found ? REPORT_EVERY_MS : BURST_MS[this.#step])
  }

  #check(): boolean {
    const version = this.#parts.version()
    if (version === this.#version) return false
    this.#version = version
    if (this.#listening) this.#reportSoon()
    return true
  }

  #reportSoon(): void {
    const { clock, timers, report } = this.#parts
    const waitMs = Math.max(OTHERS_LAST_MS, this.#reportedAt + REPORT_EVERY_MS - clock.monotonic())
    this.#reporting ??= afterIdle(timers, waitMs, () => {
      this.#reporting = undefined
      this.#reportedAt = clock.monotonic()
      report()
    })
  }
}
