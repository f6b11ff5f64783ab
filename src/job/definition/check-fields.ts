import { didYouMean } from '../../codec/near-name.js'
import { isOptionsObject } from '../../codec/options-object.js'
import { formatPath, joinPath } from '../../codec/path.js'
import { show } from '../../codec/show.js'
import type { Problem } from '../../errors.js'
import type { ForeignOptionNames } from './foreign-option-names.js'

/**
 * A check of one value: undefined when it is valid, else a message with what was expected and what was passed. The check of an object
 * returns a problem for each wrong field, with paths relative to the object.
 */
export type Check = (value: unknown) => string | undefined | readonly Problem[]

/** The fields an object may have. */
export interface Fields {
  readonly fields: { readonly [name: string]: Check }
  /** Announced options, refused by name until they are built. */
  readonly notYet?: { readonly [name: string]: NotYet } | undefined
  /** Option names of other libraries, and what to use here instead. */
  readonly foreignNames?: ForeignOptionNames | undefined
  /** The object that was probably meant by a value of another type: `{ limit: 3 }` for 3. */
  readonly meant?: ((value: unknown) => string | undefined) | undefined
}

/** An option that is not built yet. */
export interface NotYet {
  /** What to use until it is built. */
  readonly instead: string
  /** Values that ask for the present behaviour and are accepted. */
  readonly accepted: readonly unknown[]
}

export function notYet(instead: string, ...accepted: readonly unknown[]): NotYet {
  return { instead, accepted }
}

/** Checks an options object and returns every problem: unknown names with a suggestion, wrong values, options not built yet. */
export function checkFields(value: unknown, path: string, shape: Fields): Problem[] {
  if (!isOptionsObject(value))
    return [{ path, message: `must be an object, got ${show(value)}${didMean(shape.meant?.(value))}` }]
  const problems: Problem[] = []
  for (const [name, given] of Object.entries(value)) {
    const wrong = fieldProblem(name, given, shape)
    if (wrong === undefined) continue
    const at = joinPath(path, formatPath([name]))
    const found = typeof wrong === 'string' ? [{ path: '', message: wrong }] : wrong
    for (const { path: below, message } of found) problems.push({ path: joinPath(at, below), message })
  }
  return problems
}

/** The end of a message that suggests another value: `; did you mean { limit: 3 }?` */
export function didMean(meant: string | undefined): string {
  return meant === undefined ? '' : `; did you mean ${meant}?`
}

function fieldProblem(name: string, given: unknown, shape: Fields): ReturnType<Check> {
  const check = own(shape.fields, name)
  if (check !== undefined) return given === undefined ? undefined : check(given)
  const later = own(shape.notYet, name)
  if (later === undefined) return `is not an option${adviceOn(name, shape)}`
  if (given === undefined || later.accepted.includes(given)) return undefined
  return `is not yet part of this version; until then: ${later.instead}`
}

/** An exact option name of another library is better advice than a near spelling. */
function adviceOn(name: string, { fields, notYet, foreignNames }: Fields): string {
  const advice = own(foreignNames, name)
  if (advice !== undefined) return `; ${advice}`
  return didYouMean(name, [...Object.keys(fields), ...Object.keys(notYet ?? {})])
}

function own<T>(names: { readonly [name: string]: T } | undefined, name: string): T | undefined {
  return names !== undefined && Object.hasOwn(names, name) ? names[name] : undefined
}
