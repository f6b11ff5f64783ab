const UNITS: readonly (readonly [ms: number, unit: string])[] = [
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'm'],
  [1_000, 's'],
]

/** A duration for people, by its two largest units: `3 h 12 m`. */
export function inWords(ms: number): string {
  const whole = Math.max(0, Math.round(ms))
  if (whole < 1_000) return `${whole} ms`
  const first = UNITS.findIndex(([unit]) => whole >= unit)
  const parts: string[] = []
  let left = whole
  for (const [unit, name] of UNITS.slice(first, first + 2)) {
    const count = Math.floor(left / unit)
    if (count > 0) parts.push(`${count} ${name}`)
    left -= count * unit
  }
  return parts.join(' ')
}

/** How many things a sentence names. */
const NAMED_MAX = 3

/** `a`, `a and b`, `a, b and c`, `a, b, c and 4 more`. */
export function listed(things: readonly string[]): string {
  const shown = things.slice(0, NAMED_MAX)
  const rest = things.length - shown.length
  const all = rest > 0 ? [...shown, `${rest} more`] : shown
  return all.length < 2 ? all.join('') : `${all.slice(0, -1).join(', ')} and ${all.at(-1)}`
}
