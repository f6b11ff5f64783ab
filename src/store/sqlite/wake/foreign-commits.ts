import type { Clock } from '../../../world/clock.js'
import { afterIdle } from '../../../world/timers.js'
import type { Cancel, Timers } from '../../../world/timers.js'
import type { ReconnectingFileWatch } from './reconnecting-file-watch.js'

/**
 * Waits before each look, after the WAL was touched. The touch comes with the write and the commit is seen only after its
 * flush, so one look is not enough: they go on until they find something, or for longer than most flushes take. Meanwhile
 * further touches count for nothing, since one commit makes many: a busy file, and our own full speed above all, costs a few
 * looks and no more. The watch itself stays: to end and begin it each time costs a tenth of the speed, in garbage.
 */
const BURST_MS = [0, 1, 2, 4, 8, 16, 32, 64, 128]
/** The process that committed claims first, and may have taken what it committed: others look a little later. */
const OTHERS_LAST_MS = 2
/** Between two reports, however many commit: most commits are reported in other ways. */
const REPORT_EVERY_MS = 50

export interface ForeignCommitsParts {
  readonly clock: Clock
  readonly timers: Timers
  /** The connection's `data_version`: it moves with every commit but the connection's own. */
  readonly version: () => number
  /** Another connection committed. */
  readonly report: () => void
}

/** Finds commits of other connections by looking at `data_version`, for a short while after something says to look. */
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

  /** What was committed up to now is known; what comes from now on is of interest. */
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
    // Looks are under way: what this one tells of may be seen only after the last of them.
    if (this.#timer !== undefined) return void (this.#touchedAgain = true)
    this.#step = 0
    this.#lookIn(BURST_MS[0])
  }

  #lookIn(ms: number | undefined): void {
    this.#timer?.()
    this.#timer = ms === undefined ? undefined : afterIdle(this.#parts.timers, ms, () => this.#nextLook())
    if (ms !== undefined || !this.#touchedAgain) return
    this.#touchedAgain = false
    this.#touched()
  }

  /** One that found something is followed by one more: another's touch may have been part of the one we felt. */
  #nextLook(): void {
    const found = this.#look()
    this.#step = found ? BURST_MS.length : this.#step + 1
    this.#lookIn(found ? REPORT_EVERY_MS : BURST_MS[this.#step])
  }

  #look(): boolean {
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
