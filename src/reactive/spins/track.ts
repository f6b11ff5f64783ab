import { ComputedNode } from '../graph/computed.js'
import type { Computed } from '../graph/computed.js'
import { requireIn } from '../graph/cell.js'
import { EffectTypeError, describe } from '../errors.js'
import { recordRead, refresh } from '../graph/graph.js'
import { UnboundEntry } from '../replay/log.js'
import { relink } from '../snapshot/relink.js'
import type { Op } from './request.js'
import { Request, replay } from './request.js'
import type { Run } from './run.js'
import { success } from '../result.js'
import { SignalNode } from '../graph/signal.js'
import type { Signal } from '../graph/signal.js'
import { SpinCell } from './spin.js'
import type { Spin } from './spin.js'

/** The state of a cell when it was read: its value, the value before its last change, and whether it ever changed. */
export interface Interval<T> {
  readonly new: T
  readonly old: T | undefined
  /** True while the cell has its first value. */
  readonly first: boolean
}

/** What a body can read. */
export type Readable<T> = Signal<T> | Computed<T>

/** A signal, a computed or a spin. */
export type Source<T> = Readable<T> | Spin<T>

/**
 * Reads a signal or computed in a body and records a dependency: when it changes, the body runs again from here.
 *
 * ```ts
 * import { spin, track, type Signal } from 'millrace/reactive'
 *
 * const delta = (s: Signal<number>) => spin(function* () {
 *   const { new: now, old = 0 } = yield* track(s)
 *   return now - old
 * })
 * ```
 */
export function track<T>(cell: Readable<T>): Op<Interval<T>> {
  return new TrackRequest<Interval<T>>('track', cell, false)
}

/** Like `track(cell)`, but returns the value only. */
export function read<T>(cell: Readable<T>): Op<T> {
  return new TrackRequest<T>('read', cell, true)
}

class TrackRequest<T> extends Request<T> {
  readonly #cell: unknown
  readonly #isValueOnly: boolean

  constructor(name: string, cell: unknown, isValueOnly: boolean) {
    super(name)
    this.#cell = cell
    this.#isValueOnly = isValueOnly
  }

  protected override perform(run: Run): unknown {
    const home = this.#nodeFor(run)
    const node = run.context.nodeFor(home)
    const known = run.log.recall(node)
    const interval = known === undefined ? this.#replayOrRead(run, home, node) : replay(known)
    return this.#isValueOnly ? (interval as Interval<unknown>).new : interval
  }

  #replayOrRead(run: Run, home: SignalNode | ComputedNode, node: SignalNode | ComputedNode): unknown {
    const entry = run.nextEntry('track', '', home)
    if (entry.isAnswered) {
      if (entry instanceof UnboundEntry) relink(run, entry, node)
      return replay(entry)
    }
    if (node instanceof ComputedNode) refresh(node)
    const link = recordRead(run.node, node)
    const result = node instanceof ComputedNode ? node.result : success(node.value)
    const changes = node instanceof ComputedNode ? node.version : node.changes
    if (result.ok) run.log.settle(entry, false, { new: result.value, old: node.old, first: changes === 0 }, link)
    else run.log.settle(entry, true, result.error, link)
    return replay(entry)
  }

  #nodeFor(run: Run): SignalNode | ComputedNode {
    const cell = this.#cell
    if (cell instanceof SpinCell) throw new EffectTypeError(`${this.name} takes a signal; use waitFor for spins`)
    if (!(cell instanceof SignalNode || cell instanceof ComputedNode)) {
      throw new EffectTypeError(`${this.name} takes a signal or computed, got ${describe(cell)}`)
    }
    if (cell.home !== run.context) requireIn(cell, run.context, this.name)
    return cell
  }
}
