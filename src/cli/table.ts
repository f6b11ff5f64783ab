/** A table for people: a heading and aligned columns, of which the last one is as wide as it needs. */
export function tableOf(columns: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = [columns.map((column) => column.toUpperCase()), ...rows.map((row) => row.map(toLine))]
  const widths = columns.map((_, at) => Math.max(...all.map((row) => row[at]?.length ?? 0)))
  const lineOf = (row: readonly string[]): string =>
    row
      .map((cell, at) => cell.padEnd(widths[at] ?? 0))
      .join('  ')
      .trimEnd()
  return all.map(lineOf).join('\n')
}

/** Names and messages may come from the store: no control character reaches the terminal. */
function toLine(cell: string): string {
  return cell.replaceAll(/[\p{Cc}\u2028\u2029]+/gu, ' ')
}
