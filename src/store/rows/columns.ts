/* Column values as the drivers of both stores return them. */

/** An integer column: a number on SQLite; on PostgreSQL the caller's library may return a string or a BigInt. */
export type Numeric = number | string | bigint

/**
 * A bigint column as a number: PostgreSQL libraries return a string, a BigInt or a number. Every count and timestamp of
 * the store is a safe integer; any other value is a bug in Millrace and throws, because a rounded number would be wrong
 * silently.
 */
export function numberOf(value: unknown): number {
  const number = typeof value === 'string' && !/^-?\d+$/.test(value) ? NaN : Number(value ?? NaN)
  if (!Number.isSafeInteger(number)) throw new RangeError(`a column must be a safe integer, got ${String(value)}`)
  return number
}

export function numberOrNull(value: unknown): number | null {
  return value === null || value === undefined ? null : numberOf(value)
}

/** A boolean column: 0 or 1 on SQLite; on PostgreSQL the caller's library may return the server's text. */
export function booleanOf(value: unknown): boolean {
  return value === true || value === 1 || value === 't' || value === 'true'
}
