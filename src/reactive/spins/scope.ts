import { ambientContext } from '../context/ambient.js'
import { Scope } from '../replay/address.js'
import { EffectOutsideSpinError, describe } from '../errors.js'
import type { EffectRequest, Op } from './request.js'
import { requireRun } from './request.js'
import type { Run } from './run.js'
import type { Body } from './spin.js'

/**
 * Gives everything inside a sub-address, so that the items of a list keep their addresses when others come and go.
 *
 * ```ts
 * import { scope, spin, step } from 'millrace/reactive'
 *
 * const loadAll = (ids: readonly string[], load: (id: string) => Promise<string>) => spin(function* () {
 *   const out: string[] = []
 *   for (const id of ids) out.push(yield* scope(id, function* () { return yield* step('load', () => load(id)) }))
 *   return out
 * })
 * ```
 */
export function scope<T>(key: string, body: Body<T>): Op<T> {
  if (typeof key !== 'string') throw new TypeError(`scope: key must be a string, got ${describe(key)}`)
  if (typeof body !== 'function') throw new TypeError(`scope: expected a generator function, got ${describe(body)}`)
  return new ComposedOp('scope', (run) => inScope(run, key, body))
}

function* inScope<T>(run: Run, key: string, body: Body<T>): Op<T> {
  const outer = run.scope
  run.scope = new Scope(outer.address('scope', key))
  try {
    return yield* body()
  } finally {
    run.scope = outer
  }
}

/** An effect composed of other effects: usable once, in the run that created it. */
export class ComposedOp<T> implements Op<T> {
  readonly #name: string
  readonly #run: Run | undefined = ambientContext()?.activeRun
  #open: ((run: Run) => Op<T>) | undefined

  constructor(name: string, open: (run: Run) => Op<T>) {
    this.#name = name
    this.#open = open
  }

  [Symbol.iterator](): Iterator<EffectRequest, T, unknown> {
    const open = this.#open
    if (open === undefined) throw new EffectOutsideSpinError(this.#name, 'was used a second time')
    const run = requireRun(this.#name)
    if (run !== this.#run) throw new EffectOutsideSpinError(this.#name, 'was created in another run or outside a body')
    this.#open = undefined
    return open(run)[Symbol.iterator]()
  }
}
