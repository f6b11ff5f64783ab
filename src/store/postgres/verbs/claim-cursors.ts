import type { World } from '../../../world/world.js'

/** After so long a claim begins at the very head again, whatever it was told. */
const SWEEP_MS = 1_000

/**
 * Where in its lanes the next claim begins: behind the last one that was full. Jobs can come to stand before that (a
 * priority, one that was given back), so it is forgotten when something like that is heard of, and every second.
 */
export class Starts {
  readonly #world: World
  #lasts = new Map<number, number>()
  #since = 0

  constructor(world: World) {
    this.#world = world
  }

  /** As JSON; an empty list when the next claim is to begin at the head. */
  take(): string {
    if (this.#lasts.size === 0 || this.#world.clock.monotonic() - this.#since > SWEEP_MS) {
      this.forget()
      return '[]'
    }
    return JSON.stringify([...this.#lasts].map(([lane, sort]) => ({ lane, sort })))
  }

  /** How far a full claim got in its lanes; undefined when it was not full. */
  claimed(lasts: readonly { readonly lane: number; readonly last: number }[] | undefined): void {
    if (lasts === undefined) return this.forget()
    if (this.#lasts.size === 0) this.#since = this.#world.clock.monotonic()
    for (const { lane, last } of lasts) this.#lasts.set(lane, last)
  }

  forget(): void {
    if (this.#lasts.size > 0) this.#lasts = new Map()
  }
}

/** What the next claim knows from the last. */
export class Before {
  readonly starts: Starts
  areLarge = false
  /** There are many lanes that its worker may take from. They are only ever added. */
  hasManyLanes = false
  #names: { readonly list: readonly string[]; readonly set: ReadonlySet<string> } | undefined

  constructor(world: World) {
    this.starts = new Starts(world)
  }

  /** A worker gives the same list with every claim until another job is registered: its set is made once. */
  setOf(list: readonly string[]): ReadonlySet<string> {
    if (this.#names?.list !== list) this.#names = { list, set: new Set(list) }
    return this.#names.set
  }
}
