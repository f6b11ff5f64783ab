/**
 * The distribution of durations in a bounded number of bins, so that two distributions can be merged by adding counts.
 * Durations are whole milliseconds. Up to EXACT_MAX each has a bin of its own; above, each bin is 4 % wider than the one
 * before it and stands for its middle, so that no percentile is wrong by more than 2 %. Count, sum, least and greatest
 * are kept exactly.
 */
export class Sketch {
  count = 0
  sum = 0
  min = Infinity
  max = 0
  /** Counts by bin, as long as the highest bin that is used. */
  readonly #bins: number[] = []

  add(ms: number): void {
    // A clock that was set back makes a negative duration.
    const value = Math.min(DURATION_MAX, Math.max(0, Math.round(ms)))
    this.count += 1
    this.sum += value
    if (value < this.min) this.min = value
    if (value > this.max) this.max = value
    this.#addToBin(binOf(value), 1)
  }

  /** Adds a distribution as `write` wrote it; null adds nothing. */
  addWritten(written: string | null): void {
    if (written === null) return
    const reader = new NumberReader(written)
    this.count += reader.next()
    this.sum += reader.next()
    this.min = Math.min(this.min, reader.next())
    this.max = Math.max(this.max, reader.next())
    while (!reader.isAtEnd) this.#addToBin(reader.next(), reader.next())
  }

  /** `count,sum,min,max,bin,count,bin,count…`; null when it is empty. */
  write(): string | null {
    if (this.count === 0) return null
    const numbers = [this.count, this.sum, this.min, this.max]
    for (const [bin, count] of this.#bins.entries()) if (count > 0) numbers.push(bin, count)
    return numbers.join(',')
  }

  /** The durations below which these parts of all durations are, each in [0, 1]; 0 when it is empty. */
  quantiles(parts: readonly number[]): number[] {
    const ranks = parts.map((part) => Math.max(1, Math.ceil(part * this.count)))
    const found = parts.map(() => 0)
    let [seen, left] = [0, this.count === 0 ? 0 : ranks.length]
    // Once for all parts, and without an iterator: a series has a thousand distributions.
    for (let bin = 0; left > 0 && bin < this.#bins.length; bin += 1) {
      const before = seen
      seen += this.#bins[bin] as number
      for (let n = 0; n < ranks.length; n += 1) {
        const rank = ranks[n] as number
        if (rank <= before || rank > seen) continue
        // The middle of a bin may be outside of what was seen.
        found[n] = Math.min(this.max, Math.max(this.min, middleOf(bin)))
        left -= 1
      }
    }
    return found
  }

  #addToBin(bin: number, count: number): void {
    // No holes: an array with holes is slow to walk.
    while (this.#bins.length <= bin) this.#bins.push(0)
    this.#bins[bin] = (this.#bins[bin] as number) + count
  }
}

/** Durations up to this one are exact. */
const EXACT_MAX = 50
const WIDTH = 1.04
/** A century. It bounds the number of bins; longer durations count as one. */
export const DURATION_MAX = 100 * 366 * 86_400_000

function binOf(ms: number): number {
  return ms <= EXACT_MAX ? ms : EXACT_MAX + Math.ceil(Math.log(ms / EXACT_MAX) / Math.log(WIDTH))
}

function middleOf(bin: number): number {
  if (bin <= EXACT_MAX) return bin
  const top = EXACT_MAX * WIDTH ** (bin - EXACT_MAX)
  return (2 * top) / (1 + WIDTH)
}

/** The highest bin that a duration can have. */
export const BIN_MAX = binOf(DURATION_MAX)

const COMMA = 44
const ZERO = 48

/** Reads numbers separated by commas: several times as fast as `split`, and a month of statistics has many of them. */
class NumberReader {
  readonly #text: string
  #at = 0

  constructor(text: string) {
    this.#text = text
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#text.length
  }

  next(): number {
    let number = 0
    for (; this.#at < this.#text.length; this.#at += 1) {
      const code = this.#text.charCodeAt(this.#at)
      if (code === COMMA) break
      number = number * 10 + (code - ZERO)
    }
    this.#at += 1
    return number
  }
}
