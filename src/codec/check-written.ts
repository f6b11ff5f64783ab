import { show } from './show.js'

/*
 * Checks of the written form of built-in types. A text may come from anywhere, so each part is checked before it is used.
 * These functions throw a plain error; the reader adds the tag and the path.
 */

export function textIn(written: unknown, expected: string, pattern?: RegExp): string {
  const fits = typeof written === 'string' && (pattern === undefined || pattern.test(written))
  return fits ? written : unreadable(expected, written)
}

export function listIn(written: unknown): unknown[] {
  return Array.isArray(written) ? written : unreadable('a list', written)
}

export function pairIn(written: unknown): [unknown, unknown] {
  const isPair = Array.isArray(written) && written.length === 2
  return isPair ? [written[0], written[1]] : unreadable('pairs of a key and a value', written)
}

export function fieldsIn(written: unknown): Record<string, unknown> {
  const isRecord =
    typeof written === 'object' && written !== null && Object.getPrototypeOf(written) === Object.prototype
  return isRecord ? (written as Record<string, unknown>) : unreadable('an object', written)
}

export function unreadable(expected: string, written: unknown): never {
  throw new TypeError(`expected ${expected}, got ${show(written)}`)
}
