/** Seeded numbers (mulberry32): the same seed draws the same delays, victims and faults. The processes' own timing is not seeded. */
export function seededRandom(seed) {
  let state = seed >>> 0
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
  return {
    next,
    /** A whole number from `least` to `most`, both included. */
    between: (least, most) => least + Math.floor(next() * (most - least + 1)),
    pick: (list) => list[Math.floor(next() * list.length)],
    /** The seed of a child: its draws do not depend on how many its siblings made. */
    fork: () => Math.floor(next() * 4_294_967_296),
  }
}
