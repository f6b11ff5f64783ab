/** Arithmetic on measured values. Pure. */

/** @param {readonly number[]} values */
export function median(values) {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = Math.floor(sorted.length / 2)
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
}

/**
 * The median of some rounds, and their range; undefined when none was measured.
 * @param {readonly (number | undefined)[]} values one a round; a round that failed has none
 */
export function summarise(values) {
  const measured = values.filter((value) => value !== undefined)
  if (measured.length === 0) return undefined
  return { median: median(measured), min: Math.min(...measured), max: Math.max(...measured), rounds: measured.length }
}

/**
 * The quotient of two contestants, taken round by round: what slowed down a whole round is in both and cancels.
 * @param {readonly (number | undefined)[]} above
 * @param {readonly (number | undefined)[]} below
 */
export function ratio(above, below) {
  return summarise(
    above.map((value, round) => {
      const other = below[round]
      return value === undefined || other === undefined || other === 0 ? undefined : value / other
    }),
  )
}

/**
 * The smallest value that `percent` of them do not exceed.
 * @param {readonly number[]} values
 * @param {number} percent
 */
export function percentile(values, percent) {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.max(0, Math.ceil((percent / 100) * sorted.length) - 1)]
}

/** A quotient in percent. */
export function percent(summary) {
  if (summary === undefined) return undefined
  const { median, min, max, rounds } = summary
  return { median: median * 100, min: min * 100, max: max * 100, rounds }
}
