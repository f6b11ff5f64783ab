import type { AddressKind, Scope } from './address.js'
import { formatAddress } from './address.js'
import { LogLimitError } from '../errors.js'
import type { StoredEntry } from '../snapshot/stored.js'
import type { Link } from '../graph/graph.js'
import { GraphNode } from '../graph/graph.js'

/**
 * The replay log: which effects a body requested, and their answers.
 *
 * A generator cannot be resumed twice from the same point. A body that must go back therefore starts again from its top,
 * and the log answers its effects until the recorded entries are used up; the next effect is performed live. Entries are
 * matched by position. When a dependency changed, the log is cut at the first entry that depends on it: entries before
 * the cut answer as before, effects after it are performed again. A body that requests another effect than the log has at
 * that position has branched on something that is not in the log: the log is cut there and the divergence is reported.
 */
export class Entry {
  readonly kind: AddressKind
  readonly key: string
  readonly path: string
  readonly n: number
  /** The cell or spin of the effect, as its handle names it; another one at this position is a divergence. */
  target: unknown
  isAnswered = false
  isError = false
  value: unknown = undefined
  /** The link to what the effect read; its stamp makes the entry re-checkable. One-shot entries have none. */
  link: Link | undefined = undefined
  /** For a message: its order in its mailbox, in case the message is returned. */
  order = 0

  constructor(kind: AddressKind, key: string, path: string, n: number, target: unknown) {
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

/** An entry of a restored log. Its target is an address until the replay of the body names the cell or spin. */
export class UnboundEntry extends Entry {
  /** The stamp of what was read, if the entry depends on it. */
  readonly stamp: number | undefined

  constructor(stored: StoredEntry) {
    super(stored.kind, stored.key, stored.path, stored.n, stored.target)
    this.isAnswered = true
    this.isError = stored.isError === true
    this.value = stored.value
    this.order = stored.order ?? 0
    this.stamp = stored.stamp
  }

  /** Whether the cell or spin is the stored one; if so, it is the target from now on. */
  bind(target: unknown): boolean {
    const isSame = typeof target === 'object' && target !== null && 'addr' in target && target.addr === this.target
    if (isSame) this.target = target
    return isSame
  }
}

export interface LogPolicy {
  /** How many entries are kept; beyond it the one-shot entries at the end are dropped. */
  readonly limit: number
  /** Called once, when the body at `path` requested another effect than `recorded` and the log was cut. */
  readonly diverged?: (path: string, recorded: Entry) => void
  /** Called once, when the one-shot entries at the end of the log of the body at `path` were dropped. */
  readonly overflowed?: (path: string) => void
}

export class ReplayLog {
  #entries: Entry[] = []
  readonly #policy: LogPolicy
  /** The position of the next entry. */
  #cursor = 0
  /** After an overflow: from this position on the log cannot answer, so the body may not observe anything new. */
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

  /** The position where the next entry is replayed or appended. */
  get cursor(): number {
    return this.#cursor
  }

  /** True when every recorded entry was replayed: the next effect is performed live. */
  get isCaughtUp(): boolean {
    return this.#cursor >= this.#entries.length || this.#cursor === this.#hole
  }

  /** Takes over the entries of another log. `linkOf` returns the link that takes the place of one of the other log. */
  copyFrom(other: ReplayLog, linkOf: (link: Link) => Link | undefined): void {
    this.cut(0)
    for (const { kind, key, path, n, target, isError, value, link, order } of other.#entries) {
      const entry = new Entry(kind, key, path, n, target)
      entry.isAnswered = true
      entry.isError = isError
      entry.value = value
      entry.link = link && linkOf(link)
      entry.order = order
      this.#entries.push(entry)
    }
  }

  /** Starts a new pass from the top. */
  rewind(): void {
    this.#cursor = 0
  }

  /** Returns the recorded entry of an effect, or a new one whose answer the caller gives to `settle` later. */
  nextEntry(scope: Scope, kind: AddressKind, key: string, target: unknown): Entry {
    const n = scope.next(kind, key)
    const { path } = scope
    const recorded = this.isCaughtUp ? undefined : this.#entries[this.#cursor]
    if (recorded === undefined) {
      // A change of the target would restart the body at the hole: steps there would run, and messages be taken, twice.
      if (this.#hole !== undefined && target instanceof GraphNode) {
        throw new LogLimitError(path, this.#policy.limit)
      }
      return new Entry(kind, key, path, n, target)
    }
    if (recorded.kind === kind && recorded.key === key && recorded.n === n && recorded.path === path) {
      if (recorded.target === target || (recorded instanceof UnboundEntry && recorded.bind(target))) {
        this.#cursor++
        return recorded
      }
    }
    this.#diverge(path, recorded)
    return new Entry(kind, key, path, n, target)
  }

  /** Fills the log of a restored spin. */
  load(entries: readonly StoredEntry[]): void {
    this.cut(0)
    for (const entry of entries) this.#entries.push(new UnboundEntry(entry))
  }

  /** Gives the entry that was just replayed its link. */
  relink(entry: Entry, link: Link): void {
    entry.link = link
    this.#reads?.set(link.dep, this.#cursor - 1)
  }

  /** Records the answer of an effect that was performed live. */
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

  /** The entry of an earlier read of the same cell in this pass: a second read adds no entry. */
  recall(dep: GraphNode): Entry | undefined {
    const length = Math.min(this.#cursor, this.#entries.length)
    if (length > READS_SCAN_MAX) return this.#recallIndexed(dep)
    for (let index = length - 1; index >= 0; index--) {
      const entry = this.#entries[index] as Entry
      if (entry.link?.dep === dep) return entry
    }
    return undefined
  }

  /** The link of the last entry before `end` that has one: recording of reads continues after it when the log is cut. */
  lastLinkBefore(end: number): Link | undefined {
    for (let index = Math.min(end, this.#entries.length) - 1; index >= 0; index--) {
      const link = this.#entries[index]?.link
      if (link !== undefined) return link
    }
    return undefined
  }

  /** Drops every entry from `from` on. */
  cut(from: number): void {
    if (from < this.#entries.length) this.#entries.length = from
    if (this.#cursor > from) this.#cursor = from
    if (this.#hole !== undefined && from <= this.#hole) this.#hole = undefined
    this.#reads = undefined
  }

  /** Called when a run has ended: V8 gives a list that grows room for sixteen more entries. */
  trim(): void {
    if (this.#entries.length <= TRIMMED_MAX) this.#entries = this.#entries.slice()
  }

  #diverge(path: string, recorded: Entry): void {
    this.cut(this.#cursor)
    if (!this.#isDivergenceReported) this.#policy.diverged?.(path, recorded)
    this.#isDivergenceReported = true
  }

  /** Makes room for a one-shot entry; returns false when the log has a hole, and the entry is not kept. */
  #hasRoom(path: string): boolean {
    if (this.#hole !== undefined) return false
    if (this.#entries.length < this.#policy.limit) return true
    let keep = this.#entries.length
    while (keep > 0 && this.#entries[keep - 1]?.link === undefined) keep--
    if (keep === this.#entries.length) return true // The last entry must stay re-checkable, so no entry can be dropped.
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

/** A longer log is not copied: the room that it wastes is small in comparison. */
const TRIMMED_MAX = 8

/** Up to this many entries a scan is cheaper than an index. */
const READS_SCAN_MAX = 16
