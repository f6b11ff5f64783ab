import { didYouMean } from '../codec/near-name.js'
import { joinPath } from '../codec/path.js'
import { show } from '../codec/show.js'
import type { Problem } from '../errors.js'

/**
 * A check of one value: undefined when it is right, else what was expected and what came. An object's check gives a
 * problem for each of its fields, with paths below its own.
 */
export type Check = (value: unknown) => string | undefined | readonly Problem[]

/** The fields an object may have. `notYet` fields are known and promised, and refused by name until they are built. */
export interface Fields {
  readonly fields: { readonly [name: string]: Check }
  readonly notYet?: { readonly [name: string]: NotYet } | undefined
}

/** Values of a not-yet option that change nothing and so may be given; EMPTY stands for any empty object or array. */
export type NotYet = readonly unknown[]
export const EMPTY = Symbol('empty')

/** Checks an options object as a set: unknown names with the near spelling, wrong values, parts not yet built. */
export function checkFields(value: unknown, path: string, shape: Fields): Problem[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value) || isNoOptions(value))
    return [{ path, message: `must be an object, got ${show(value)}` }]
  const problems: Problem[] = []
  const known = [...Object.keys(shape.fields), ...Object.keys(shape.notYet ?? {})]
  for (const [name, given] of Object.entries(value)) {
    const at = path === '' ? name : `${path}.${name}`
    const check = Object.hasOwn(shape.fields, name) ? shape.fields[name] : undefined
    const notYet = Object.hasOwn(shape.notYet ?? {}, name) ? shape.notYet?.[name] : undefined
    if (check !== undefined) {
      const wrong = given === undefined ? undefined : check(given)
      if (typeof wrong === 'string') problems.push({ path: at, message: wrong })
      else for (const p of wrong ?? []) problems.push({ path: joinPath(at, p.path), message: p.message })
    } else if (notYet !== undefined) {
      if (given !== undefined && !notYet.includes(given) && !(notYet.includes(EMPTY) && isEmpty(given)))
        problems.push({ path: at, message: 'is not yet part of this version' })
    } else problems.push({ path: at, message: `is not an option${didYouMean(name, known)}` })
  }
  return problems
}

/** Nothing was asked for: `hooks: {}`, `redact: []`. */
function isEmpty(given: unknown): boolean {
  return typeof given === 'object' && given !== null && Object.keys(given).length === 0
}

/** A forgotten await, or a value that has no fields of its own and would pass for "no options". */
function isNoOptions(value: object): boolean {
  return value instanceof Promise || value instanceof Date || value instanceof Map || value instanceof Set
}

/** Of a verb that takes none: one that is given would be ignored. An index, as `ids.map(mill.cancel)` passes it, asks for nothing. */
export function noOptions(given: unknown, why: string): Problem[] {
  if (typeof given !== 'object' || given === null) return []
  return [{ path: 'options', message: `are not taken: ${why}, got ${show(given)}` }]
}
