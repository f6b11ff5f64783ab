import { QUARANTINE_MS, quarantineMs } from '../../job/rules/quarantine.js'
import type { Claim, Claimed, ClaimedJob, Store } from '../../store/store.js'
import type { Cancel } from '../../world/timers.js'
import type { World } from '../../world/world.js'
import { afterHoldingBack, firstTurns, nextTurn } from './turns.js'
import type { Turn, Turns } from './turns.js'

/** Which claim saw them: that of jobs without limits, or that of jobs under limits. */
type ClaimKind = 'plain' | 'limited'

export interface QuarantineParts {
  readonly world: World
  readonly store: Store
  /** The length of the first quarantine; each further crash in a row doubles it. Default: a minute. */
  readonly quarantineMs: number | undefined
  readonly events: { storeFailed(what: string, error: unknown): void }
}

/** The wait after a write that failed. */
const STORE_RETRY_MS = 500

/** The quarantines of one worker, one after the other, and the time that other work gets between them. */
export class Quarantine {
  readonly #parts: QuarantineParts
  /** A quarantine is over, or other work had its share of time: the worker may claim. */
  readonly #wake: () => void
  /** The shortest streak of the suspects that the last claim of each kind saw waiting; none when it saw none. */
  readonly #streaks = new Map<ClaimKind, number>()
  readonly #firstMs: number
  #turns: Turns
  #current: Current | undefined
  #timer: Cancel | undefined

  constructor(parts: QuarantineParts, wake: () => void) {
    this.#parts = parts
    this.#wake = wake
    this.#firstMs = parts.quarantineMs ?? QUARANTINE_MS
    this.#turns = firstTurns(parts.world.clock.monotonic(), this.#firstMs)
  }

  /** Suspects run here, and nothing may begin beside them. */
  get isOn(): boolean {
    return this.#current !== undefined
  }

  /** Suspects wait. */
  get isAwaited(): boolean {
    return this.#streaks.size > 0
  }

  get isDraining(): boolean {
    return this.#turns.drainSince !== null
  }

  /** Whose turn it is. When that changes with time alone, a timer wakes the worker. */
  takeTurn(): Turn {
    const [turns, turn] = nextTurn(
      this.#turns,
      this.#shortestStreak(),
      this.#parts.world.clock.monotonic(),
      this.#firstMs,
    )
    if (this.isOn) return turn
    this.#turns = turns
    if (turn.leftMs !== null) this.#after(turn.leftMs, this.#wake)
    return turn
  }

  /** Notes what a claim returned: which suspects wait, and which begin now. */
  observeClaim(kind: ClaimKind, { suspectStreak, isQuarantine, jobs }: Claimed, fence: number, worker: string): void {
    if (suspectStreak === null) this.#streaks.delete(kind)
    else this.#streaks.set(kind, suspectStreak)
    if (isQuarantine) this.#begin(fence, jobs, worker)
  }

  #shortestStreak(): number | null {
    return this.#streaks.size === 0 ? null : Math.min(...this.#streaks.values())
  }

  #begin(fence: number, jobs: readonly ClaimedJob[], worker: string): void {
    const now = this.#parts.world.clock.monotonic()
    const current = { fence, worker, since: this.#turns.drainSince ?? now, refs: new Set(jobs.map((job) => job.ref)) }
    this.#current = current
    const streak = Math.max(...jobs.map((job) => job.streak))
    this.#after(quarantineMs(streak, this.#firstMs), () => void this.#outlived(current))
  }

  /** A job is no longer in flight: its end is written, or its claim is lost. */
  remove({ fence, ref }: Claim): void {
    const current = this.#current
    if (current?.fence !== fence) return
    current.refs.delete(ref)
    if (current.refs.size === 0) this.#end(current)
  }

  /** Every claim of this worker is lost. */
  dropClaims(): void {
    if (this.#current !== undefined) this.#end(this.#current)
  }

  stop(): void {
    this.#timer?.()
  }

  /**
   * The suspects outlived their quarantine. That is written before other jobs begin beside them, since a crash after that must
   * not be charged to them. While it cannot be written the quarantine goes on.
   */
  async #outlived(current: Current): Promise<void> {
    try {
      await this.#parts.store.leases.endQuarantine(current.worker, current.fence)
      this.#end(current)
    } catch (error) {
      this.#parts.events.storeFailed('end a quarantine', error)
      if (this.#current === current) this.#after(STORE_RETRY_MS, () => void this.#outlived(current))
    }
  }

  #end(current: Current): void {
    if (this.#current !== current) return
    this.#current = undefined
    this.#timer?.()
    this.#turns = afterHoldingBack(this.#turns, current.since, this.#parts.world.clock.monotonic())
    this.#wake()
  }

  #after(ms: number, run: () => void): void {
    this.#timer?.()
    this.#timer = this.#parts.world.timers.after(ms, run)
  }
}

interface Current {
  readonly fence: number
  readonly worker: string
  /** Since when nothing of other work has begun. */
  readonly since: number
  /** The suspects that are still in flight. */
  readonly refs: Set<number>
}
