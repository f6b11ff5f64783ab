import type { Entry } from './log.js'

/** Where a log keeps its entries. */
export interface LogStore {
  readonly length: number
  at(index: number): Entry | undefined
  read(addr: string): Entry | undefined
  append(entry: Entry): void
  /** Forgets every entry from `fromIndex` on; an append-only store throws. */
  truncate(fromIndex: number): void
}

/** Entries in an array, to be cut and re-grown. */
export class MemoryLogStore implements LogStore {
  readonly #entries: Entry[] = []

  get length(): number {
    return this.#entries.length
  }

  at(index: number): Entry | undefined {
    return this.#entries[index]
  }

  read(addr: string): Entry | undefined {
    return this.#entries.find((entry) => entry.addr === addr)
  }

  append(entry: Entry): void {
    this.#entries.push(entry)
  }

  truncate(fromIndex: number): void {
    if (fromIndex < this.#entries.length) this.#entries.length = fromIndex
  }
}

/** Entries that are only ever added; `write` is called with each before the body continues. */
export class AppendOnlyLogStore implements LogStore {
  readonly #entries: Entry[]
  readonly #byAddress: Map<string, Entry>
  readonly #write: (entry: Entry) => void

  constructor(recorded: readonly Entry[], write: (entry: Entry) => void) {
    this.#entries = [...recorded]
    this.#byAddress = new Map(recorded.map((entry) => [entry.addr, entry]))
    this.#write = write
  }

  get length(): number {
    return this.#entries.length
  }

  at(index: number): Entry | undefined {
    return this.#entries[index]
  }

  read(addr: string): Entry | undefined {
    return this.#byAddress.get(addr)
  }

  append(entry: Entry): void {
    this.#write(entry)
    this.#entries.push(entry)
    this.#byAddress.set(entry.addr, entry)
  }

  truncate(): void {
    throw new Error('an append-only log is never cut: a durable body sees its own history')
  }
}
