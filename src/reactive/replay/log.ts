import type { Kind, Scope } from './address.js'
import { formatAddress } from './address.js'
import { LogLimitError } from '../errors.js'
import type { Link } from '../graph/graph.js'
import { GraphNode } from '../graph/graph.js'

/**
 * The replay log: what a body asked for, and what it was answered.
 *
 * A generator cannot be resumed twice from the same point, so a body that must go back starts again from its top and
 * is answered from here until it has caught up; then the next ask goes live. Two policies share this code:
 *
 * - *Cut and re-grow*, in memory, for spins. Entries are met by position. When a dependency changed, the log is cut at
 *   the first entry that depends on it; what stood before answers as before, what stood after is asked anew. A body
 *   that asks for something else than the log holds at that place has branched on something it should not have: the
 *   log is cut there and the fact reported.
 * - *Append-only*, for durable workflows. Entries are met by address, because branches that ran side by side may ask
 *   in another order the next time. Nothing is ever cut; an entry nobody asks for while something new is asked is
 *   non-determinism, and that parks the workflow.
 */
export class Entry {
  readonly kind: Kind
  readonly key: string
  readonly path: string
  readonly n: number
  /** What it was asked of, a cell or a spin; another one at this place is a divergence. */
  readonly target: unknown
  isAnswered = false
  isError = false
  value: unknown = undefined
  /** What makes it re-checkable: the link to what it read. One-shot entries have none. */
  link: Link | undefined = undefined
  /** For a message: its place in the order of its mailbox, should it have to go back. */
  order = 0

  constructor(kind: Kind, key: string, path: string, n: number, target: unknown) {
    this.kind = kind
    this.key = key
    this.path = path
    this.n = n
    this.target = target
  }

  get addr(): string {
    return formatAddress(this.path, this.kind, this.key, this.n)
  }
}

export interface LogPolicy {
  /** How many entries are kept at most: past it a cutting log drops its one-shot tail, an appending one refuses. */
  readonly limit: number
  /** The body at `path` asked for something else than stands here; the log was cut. Reported once. */
  readonly diverged?: (path: string, recorded: Entry) => void
  /** The one-shot tail of the body at `path` was dropped. Reported once. */
  readonly overflowed?: (path: string) => void
}

export class ReplayLog {
  readonly #entries: Entry[] = []
  readonly #policy: LogPolicy
  /** By position: the next entry to be met. */
  #cursor = 0
  /** After an overflow: from here on the log cannot answer, so nothing that would need it may be observed. */
  #hole: number | undefined
  #isOverflowReported = false
  #isDivergenceReported = false
  #reads: Map<GraphNode, number> | undefined

  constructor(policy: LogPolicy) {
    this.#policy = policy
  }

  get length(): number {
    return this.#entries.length
  }

  at(index: number): Entry | undefined {
    return this.#entries[index]
  }

  /** Where the next entry will be met or added. */
  get cursor(): number {
    return this.#cursor
  }

  /** True when everything recorded has been met: the next ask goes live. */
  get isCaughtUp(): boolean {
    return this.#cursor >= this.#entries.length || this.#cursor === this.#hole
  }

  /** Starts a new pass from the top. */
  rewind(): void {
    this.#cursor = 0
  }

  /** Asks for an answer: the recorded entry, or a fresh one that goes live and is given to `settle` later. */
  ask(scope: Scope, kind: Kind, key: string, target: unknown): Entry {
    const n = scope.next(kind, key)
    const { path } = scope
    const recorded = this.isCaughtUp ? undefined : this.#entries[this.#cursor]
    if (recorded === undefined) {
      // A change of it would start the body over from the hole, and what was done and taken in there a second time.
      if (this.#hole !== undefined && target instanceof GraphNode) {
        throw new LogLimitError(path, this.#policy.limit)
      }
      return new Entry(kind, key, path, n, target)
    }
    if (recorded.kind === kind && recorded.key === key && recorded.n === n && recorded.path === path) {
      if (recorded.target === target) {
        this.#cursor++
        return recorded
      }
    }
    this.#diverge(path, recorded)
    return new Entry(kind, key, path, n, target)
  }

  /** Records the answer of an entry that went live. */
  settle(entry: Entry, isError: boolean, value: unknown, link?: Link): void {
    entry.isAnswered = true
    entry.isError = isError
    entry.value = value
    entry.link = link
    if (link === undefined && !this.#hasRoom(entry.path)) return
    if (link !== undefined) this.#reads?.set(link.dep, this.#entries.length)
    this.#entries.push(entry)
    this.#cursor = this.#entries.length
  }

  /** The entry of an earlier read of the same cell in this pass: a second read adds nothing. */
  recall(dep: GraphNode): Entry | undefined {
    const length = Math.min(this.#cursor, this.#entries.length)
    if (length > READS_SCAN_MAX) return this.#recallIndexed(dep)
    for (let index = length - 1; index >= 0; index--) {
      const entry = this.#entries[index] as Entry
      if (entry.link?.dep === dep) return entry
    }
    return undefined
  }

  /** The link of the last entry before `end` that has one: where the reading goes on after a cut. */
  lastLinkBefore(end: number): Link | undefined {
    for (let index = Math.min(end, this.#entries.length) - 1; index >= 0; index--) {
      const link = this.#entries[index]?.link
      if (link !== undefined) return link
    }
    return undefined
  }

  /** Forgets every entry from `from` on. */
  cut(from: number): void {
    if (from < this.#entries.length) this.#entries.length = from
    if (this.#cursor > from) this.#cursor = from
    if (this.#hole !== undefined && from <= this.#hole) this.#hole = undefined
    this.#reads = undefined
  }

  #diverge(path: string, recorded: Entry): void {
    this.cut(this.#cursor)
    if (!this.#isDivergenceReported) this.#policy.diverged?.(path, recorded)
    this.#isDivergenceReported = true
  }

  /** Makes room for a one-shot entry; false when the log has a hole, and keeps nothing more. */
  #hasRoom(path: string): boolean {
    if (this.#hole !== undefined) return false
    if (this.#entries.length < this.#policy.limit) return true
    let keep = this.#entries.length
    while (keep > 0 && this.#entries[keep - 1]?.link === undefined) keep--
    if (keep === this.#entries.length) return true // Nothing but what must be re-checked: none of it can go.
    this.cut(keep)
    this.#hole = keep
    this.#cursor = keep
    if (!this.#isOverflowReported) this.#policy.overflowed?.(path)
    this.#isOverflowReported = true
    return false
  }

  #recallIndexed(dep: GraphNode): Entry | undefined {
    const index = (this.#reads ?? this.#indexReads()).get(dep)
    return index !== undefined && index < this.#cursor ? this.#entries[index] : undefined
  }

  #indexReads(): Map<GraphNode, number> {
    const reads = new Map<GraphNode, number>()
    for (let index = 0; index < this.#entries.length; index++) {
      const dep = this.#entries[index]?.link?.dep
      if (dep !== undefined) reads.set(dep, index)
    }
    this.#reads = reads
    return reads
  }
}

/** Up to this many entries a scan is cheaper than an index. */
const READS_SCAN_MAX = 16
