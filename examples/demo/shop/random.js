/** Numbers in [0, 1) that depend on the seed only: the same shop at every start. */
export function randomOf(seed) {
  let state = seed >>> 0
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const pick = (list) => list[Math.floor(next() * list.length)]
  const between = (low, high) => Math.round(low + next() * (high - low))
  return { next, pick, between }
}

export const SEED = 42
export const TENANTS = ['nordic', 'baltic', 'alpine', 'iberia', 'benelux', 'balkan']
export const COUNTRIES = ['SE', 'DE', 'FR', 'DK', 'FI', 'NL', 'ES', 'IT']
