/** Seeded randomness: the same seed gives the same numbers, on every machine. */
export interface Random {
  /** A number in [0, 1). */
  next(): number
  /** A whole 32-bit word. */
  word(): number
  /** A whole number from `low` to `high`, both included. */
  int(low: number, high: number): number
  chance(probability: number): boolean
  pick<T>(from: readonly T[]): T
  /** Another stream, of its own: drawing from it does not move this one. */
  fork(name: string): Random
}

/** splitmix32: small, well mixed, and a fork is one hash away. */
export function seeded(seed: number): Random {
  let state = seed >>> 0
  const word = (): number => {
    state = (state + 0x9e3779b9) >>> 0
    let mixed = state ^ (state >>> 16)
    mixed = Math.imul(mixed, 0x21f0aaad)
    mixed ^= mixed >>> 15
    mixed = Math.imul(mixed, 0x735a2d97)
    return (mixed ^ (mixed >>> 15)) >>> 0
  }
  const next = (): number => word() / 0x1_0000_0000
  const int = (low: number, high: number): number => low + Math.floor(next() * (high - low + 1))
  return {
    next,
    word,
    int,
    chance: (probability) => next() < probability,
    pick: (from) => from[int(0, from.length - 1)] as (typeof from)[number],
    fork: (name) => seeded(hash(name, seed)),
  }
}

function hash(name: string, seed: number): number {
  let value = seed ^ 0x811c9dc5
  for (let i = 0; i < name.length; i += 1) value = Math.imul(value ^ name.charCodeAt(i), 0x01000193)
  return value >>> 0
}
