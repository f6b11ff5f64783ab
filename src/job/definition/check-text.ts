import { show } from '../../codec/show.js'

/** How long names and keys may be, and what of a text a database or a terminal would bend. */
export const NAME_MAX = 200
export const KEY_MAX = 500

/** What is wrong with a text, or undefined. */
export function textProblem(value: unknown, max: number, what: string): string | undefined {
  if (typeof value !== 'string') return `must be ${what}, got ${show(value)}`
  if (value.length === 0 || value.length > max) return `must have 1 to ${max} characters, got ${value.length}`
  if (/[\u0000-\u001f\u007f-\u009f]/.test(value)) return `must not have control characters, got ${show(value)}`
  // Lone surrogates cannot be written as UTF-8: two different names would become one.
  if (!(value as string & { isWellFormed(): boolean }).isWellFormed())
    return `must be well-formed Unicode, got ${show(value)}`
  return undefined
}
