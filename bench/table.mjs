/** How figures are shown to people. Pure. */

/** `123,456`, `12.3`, `0.45`, `6`: as many digits as are significant. */
export function showNumber(value) {
  const size = Math.abs(value)
  const digits = size >= 100 || Number.isInteger(value) ? 0 : size >= 10 ? 1 : 2
  return value.toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits })
}

/**
 * `median (min–max)`, or a dash.
 * @param {{ median: number, min: number, max: number, rounds: number } | undefined} summary
 */
export function showSummary(summary) {
  if (summary === undefined) return '–'
  if (summary.rounds === 1) return showNumber(summary.median)
  return `${showNumber(summary.median)} (${showNumber(summary.min)}–${showNumber(summary.max)})`
}

/**
 * A table with aligned columns: the first to the left, the others to the right.
 * @param {readonly string[]} heads
 * @param {readonly (readonly string[])[]} rows
 */
export function formatTable(heads, rows) {
  const widths = heads.map((head, column) => Math.max(head.length, ...rows.map((row) => row[column].length)))
  const line = (cells) =>
    cells
      .map((cell, column) => (column === 0 ? cell.padEnd(widths[column]) : cell.padStart(widths[column])))
      .join('  ')
      .trimEnd()
  return [line(heads), line(widths.map((width) => '─'.repeat(width))), ...rows.map(line)].join('\n')
}
