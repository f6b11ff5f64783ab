/* Columns as the drivers of both stores give them. */

/** A column of whole numbers: a number on SQLite; on PostgreSQL the caller's library may give a text or a BigInt. */
export type Numeric = number | string | bigint

/**
 * A bigint column as a number: some PostgreSQL libraries give it as a text, some as a BigInt, some as a number. All that the
 * store counts and stamps is a safe integer; anything else is a bug of ours, and throws instead of giving a wrong number.
 */
export function numberOf(value: unknown): number {
  const number = typeof value === 'string' && !/^-?\d+$/.test(value) ? NaN : Number(value ?? NaN)
  if (!Number.isSafeInteger(number)) throw new RangeError(`a column must be a safe integer, got ${String(value)}`)
  return number
}

export function numberOrNull(value: unknown): number | null {
  return value === null || value === undefined ? null : numberOf(value)
}

/** A boolean column: 0 or 1 on SQLite; on PostgreSQL the caller's library may leave it as the server's text. */
export function booleanOf(value: unknown): boolean {
  return value === true || value === 1 || value === 't' || value === 'true'
}
