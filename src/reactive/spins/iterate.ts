import { Scope, formatAddress } from '../replay/address.js'
import { disposeSpin, dropCell } from './cancel.js'
import { disposeOwned } from '../graph/effect.js'
import { EffectTypeError, describe } from '../errors.js'
import { dropAfter } from '../graph/graph.js'
import type { Op } from './request.js'
import type { Run } from './run.js'
import { ComposedOp } from './scope.js'

/** The result of one turn of `iterate`: the state of the next turn, or the result of the loop. */
export type Turned<S, T> = { readonly next: S } | { readonly done: T }

/**
 * A loop that may run for ever without growing its log. Each turn is a scope of its own; when it ends, its log entries
 * are replaced by the turn's number and the next state. A change of something read in an earlier turn does nothing. A
 * change of something read in the current turn restarts that turn, with the messages it took.
 *
 * ```ts
 * import { iterate, spin, waitFor, type Mailbox } from 'millrace/reactive'
 *
 * const count = (box: Mailbox<'more' | 'stop'>) => spin(function* () {
 *   return yield* iterate(0, function* (n) {
 *     return (yield* waitFor(box)) === 'stop' ? { done: n } : { next: n + 1 }
 *   })
 * })
 * ```
 */
export function iterate<S, T>(init: S, turn: (state: S) => Op<Turned<S, T>>): Op<T> {
  if (typeof turn !== 'function') throw new TypeError(`iterate: expected a generator function, got ${describe(turn)}`)
  return new ComposedOp('iterate', (run) => loop(run, init, turn))
}

/** The only record that a loop keeps. */
interface Progress<S, T> {
  readonly turn: number
  readonly state: S
  readonly ended?: { readonly value: T }
}

function* loop<S, T>(run: Run, init: S, turn: (state: S) => Op<Turned<S, T>>): Op<T> {
  const { scope: outer, log } = run
  const entry = run.nextEntry('scope', 'iterate', undefined)
  if (!entry.isAnswered) log.settle(entry, false, { turn: 0, state: init } satisfies Progress<S, T>)
  const base = log.cursor
  const { addr } = entry
  run.enterLoop()
  try {
    for (;;) {
      const progress = entry.value as Progress<S, T>
      if (progress.ended !== undefined) return progress.ended.value
      run.scope = new Scope(formatAddress(addr, 'scope', 'turn', progress.turn))
      const outcome = yield* turn(progress.state)
      entry.value = advance(progress, outcome)
      forgetTurn(run, base)
    }
  } finally {
    run.scope = outer
    run.leaveLoop()
  }
}

function advance<S, T>(progress: Progress<S, T>, outcome: Turned<S, T>): Progress<S, T> {
  if (typeof outcome === 'object' && outcome !== null) {
    if ('next' in outcome) return { turn: progress.turn + 1, state: outcome.next }
    if ('done' in outcome) return { ...progress, ended: { value: outcome.done } }
  }
  throw new EffectTypeError(`iterate: a turn must return { next } or { done }, got ${describe(outcome)}`)
}

/** Drops everything of a finished turn: entries, registrations, children, effects. */
function forgetTurn(run: Run, base: number): void {
  const { node } = run
  run.log.cut(base)
  dropAfter(node, run.log.lastLinkBefore(base))
  const held = run.takeHoldings()
  for (const addr of held.used?.keys() ?? []) {
    const child = node.children?.get(addr)
    if (child !== undefined) disposeSpin(child)
    dropCell(node, addr)
  }
  disposeOwned(held)
}
