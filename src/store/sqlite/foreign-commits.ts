import type { Clock } from '../../world/clock.js'
import { afterIdle } from '../../world/timers.js'
import type { Cancel, Timers } from '../../world/timers.js'
import type { KeptWatch } from './kept-watch.js'

/**
 * Waits before each look, after the WAL was touched. The touch comes with the write and the commit is seen only after its
 * flush, so one look is not enough: they go on until they find something, or for longer than most flushes take. Meanwhile
 * the WAL is not watched, since one commit touches it many times: a busy file, and our own full speed above all, costs a few
 * looks and no more.
 */
const BURST_MS = [0, 1, 2, 4, 8, 16, 32]
/** Whoever committed is told first, and may have taken what it committed: everybody else looks a little later. */
const OTHERS_LAST_MS = 2
/** Between two reports, however many commit: most commits are told of in other ways. */
const REPORT_EVERY_MS = 50
/** A caller's transaction is waited for so long; past that the WAL's watchers and the poll find its commit. */
const EXPECT_MS = 60_000
/** The same for a connection that cannot say whether it is in a transaction. */
const EXPECT_BLINDLY_MS = 1_000
/** Between looks while one is waited for. */
const EXPECT_STEP_MS = 32

export interface ForeignCommitsParts {
  readonly clock: Clock
  readonly timers: Timers
  /** The connection's `data_version`: it moves with every commit but the connection's own. */
  readonly version: () => number
  /** Somebody committed; `expected` when it may be a commit that was waited for. */
  readonly report: (expected: boolean) => void
}

/** Finds commits of other connections by looking at `data_version`, for a short while after something says to look. */
export class ForeignCommits {
  readonly #parts: ForeignCommitsParts
  readonly #wal: KeptWatch
  readonly #expected = new Map<object, number>()
  #listening = false
  #version: number | undefined
  #step = 0
  #timer: Cancel | undefined
  #reporting: Cancel | undefined
  #reportedAt = -Infinity

  constructor(parts: ForeignCommitsParts, watchWal: (touched: () => void) => KeptWatch) {
    this.#parts = parts
    this.#wal = watchWal(() => this.#touched())
  }

  /** What was committed up to now is known; what comes from now on is of interest. */
  listen(): void {
    this.#listening = true
    this.#version = this.#read()
    this.#wal.start()
  }

  rest(): void {
    this.#listening = false
    this.#wal.stop()
    this.#reporting?.()
    this.#reporting = undefined
  }

  /** Looks until this connection, another one in this process, has ended its transaction. */
  expect(connection: object): void {
    if (!this.#listening && this.#expected.size === 0) this.#version = this.#read()
    const forMs = inTransaction(connection) === undefined ? EXPECT_BLINDLY_MS : EXPECT_MS
    this.#expected.set(connection, this.#parts.clock.monotonic() + forMs)
    this.#touched()
  }

  close(): void {
    this.rest()
    this.#timer?.()
    this.#timer = undefined
    this.#expected.clear()
  }

  #touched(): void {
    this.#wal.stop()
    this.#step = 0
    this.#lookIn(BURST_MS[0])
  }

  #lookIn(ms: number | undefined): void {
    this.#timer?.()
    this.#timer = ms === undefined ? undefined : afterIdle(this.#parts.timers, ms, () => this.#nextLook())
    if (ms === undefined) this.#endBurst()
  }

  /** One that found something is followed by one more: another's touch may have been part of the one we felt. */
  #nextLook(): void {
    const found = this.#look()
    this.#step = found ? BURST_MS.length : this.#step + 1
    if (this.#expected.size > 0) this.#lookIn(BURST_MS[this.#step] ?? EXPECT_STEP_MS)
    else this.#lookIn(found ? REPORT_EVERY_MS : BURST_MS[this.#step])
  }

  /** Watches again, and looks once more: what came in between touched nothing that was watched. */
  #endBurst(): void {
    if (!this.#listening) return
    this.#wal.start()
    this.#look()
  }

  #look(): boolean {
    const version = this.#read()
    const ended = this.#endExpected()
    if (version === undefined || version === this.#version) return false
    this.#version = version
    if (ended) this.#parts.report(true)
    else if (this.#listening) this.#reportSoon()
    return true
  }

  #reportSoon(): void {
    const { clock, timers, report } = this.#parts
    const waitMs = Math.max(OTHERS_LAST_MS, this.#reportedAt + REPORT_EVERY_MS - clock.monotonic())
    this.#reporting ??= afterIdle(timers, waitMs, () => {
      this.#reporting = undefined
      this.#reportedAt = clock.monotonic()
      report(false)
    })
  }

  /** True when one that was waited for is over, or cannot say. */
  #endExpected(): boolean {
    let ended = false
    const now = this.#parts.clock.monotonic()
    for (const [connection, until] of this.#expected) {
      const open = inTransaction(connection)
      if (open !== true) ended = true
      if (open === false || now > until) this.#expected.delete(connection)
    }
    return ended
  }

  #read(): number | undefined {
    try {
      return this.#parts.version()
    } catch {
      return undefined // Busy with recovery, or failing: the next look says.
    }
  }
}

/** node:sqlite and @photostructure/sqlite say it in one word, better-sqlite3 and libsql in another, older ones not at all. */
function inTransaction(connection: object): boolean | undefined {
  const { isTransaction, inTransaction } = connection as { isTransaction?: unknown; inTransaction?: unknown }
  const said = isTransaction ?? inTransaction
  return typeof said === 'boolean' ? said : undefined
}
