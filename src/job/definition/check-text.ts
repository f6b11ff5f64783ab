import { show } from '../../codec/show.js'

/** The longest name and the longest key, in characters. */
export const NAME_MAX = 200
export const KEY_MAX = 500

/** The problem of a text, or undefined. Control characters and lone surrogates are refused: not every database and terminal keeps them. */
export function textProblem(value: unknown, max: number, what: string): string | undefined {
  if (typeof value !== 'string') return `must be ${what}, got ${show(value)}`
  if (value.length === 0 || value.length > max) return `must have 1 to ${max} characters, got ${value.length}`
  if (CONTROL.test(value)) return `must not have control characters, got ${show(value)}${hintOf(value.trim())}`
  // Lone surrogates cannot be written as UTF-8: two different names would become one.
  if (!(value as string & { isWellFormed(): boolean }).isWellFormed())
    return `must be well-formed Unicode, got ${show(value)}`
  return undefined
}

const CONTROL = /[\u0000-\u001f\u007f-\u009f]/

/** A line that was read from a file or a terminal often ends with its newline. */
function hintOf(trimmed: string): string {
  return trimmed === '' || CONTROL.test(trimmed) ? '' : `; did you mean ${show(trimmed)}?`
}
