import type { Statements } from '../connection/driver.js'
import type { Queries } from '../queries/queries.js'

/** A lane is a (queue, job name) pair; the jobs of a lane have one order. */
export interface Lane {
  readonly lane: number
  readonly queue: string
  readonly name: string
}

/** Lanes in the order of their numbers. */
export class LaneList {
  readonly lanes: readonly Lane[]

  constructor(lanes: readonly Lane[]) {
    this.lanes = lanes
  }

  /** The first lane whose number is at least this. */
  from(number: number): Lane | undefined {
    let [low, high] = [0, this.lanes.length]
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.lanes[middle] as Lane).lane < number) low = middle + 1
      else high = middle
    }
    return this.lanes[low]
  }
}

/** The lanes by number and by name. Rows are only added, so the cache only needs to read new rows. */
export class Lanes {
  readonly #statements: Statements
  readonly #queries: Queries
  #byNumber = new Map<number, Lane>()
  #byName = new Map<string, Lane>()
  #last = 0
  #named: { readonly names: readonly string[] | undefined; readonly last: number; readonly list: LaneList } | undefined

  constructor(statements: Statements, queries: Queries) {
    this.#statements = statements
    this.#queries = queries
  }

  /** All lanes. */
  all(): Iterable<Lane> {
    this.#readNew()
    return this.#byNumber.values()
  }

  /**
   * The lanes of these names; undefined: of any. The list is cached while the same array is given and no lane is added.
   */
  named(names: readonly string[] | undefined): LaneList {
    this.#readNew()
    const kept = this.#named
    if (kept !== undefined && kept.names === names && kept.last === this.#last) return kept.list
    const known = names === undefined ? undefined : new Set(names)
    const lanes = [...this.#byNumber.values()].filter(({ name }) => known?.has(name) !== false)
    const list = new LaneList(lanes.toSorted((one, other) => one.lane - other.lane))
    this.#named = { names, last: this.#last, list }
    return list
  }

  get(number: number): Lane {
    if (!this.#byNumber.has(number)) this.#readNew()
    return this.#byNumber.get(number) as Lane
  }

  /** The lane of a queue and a name, added when it is new. Call it within a write. */
  need(queue: string, name: string): Lane {
    const known = this.#byName.get(joined(queue, name))
    if (known !== undefined) return known
    this.#statements.of(this.#queries.addLane).run(queue, name)
    this.#readNew()
    return this.#byName.get(joined(queue, name)) as Lane
  }

  /** A lane that was added in a rolled-back transaction does not exist: read again. */
  forget(): void {
    this.#byNumber = new Map()
    this.#byName = new Map()
    this.#named = undefined
    this.#last = 0
  }

  #readNew(): void {
    for (const row of this.#statements.of(this.#queries.newLanes).all(this.#last) as Lane[]) {
      this.#byNumber.set(row.lane, row)
      this.#byName.set(joined(row.queue, row.name), row)
      if (row.lane > this.#last) this.#last = row.lane
    }
  }
}

/** Names have no control characters, so a newline separates the two. */
function joined(queue: string, name: string): string {
  return `${queue}\n${name}`
}
