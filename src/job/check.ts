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

/** Values of a not-yet option that change nothing and so may be given. */
export type NotYet = readonly unknown[]

/** Checks an options object as a set: unknown names with the near spelling, wrong values, parts not yet built. */
export function checkFields(value: unknown, path: string, shape: Fields): Problem[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
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
      else
        for (const p of wrong ?? []) problems.push({ path: p.path === '' ? at : `${at}.${p.path}`, message: p.message })
    } else if (notYet !== undefined) {
      if (given !== undefined && !notYet.includes(given))
        problems.push({ path: at, message: 'is not yet part of this version' })
    } else problems.push({ path: at, message: `is not an option${nearSpelling(name, known)}` })
  }
  return problems
}

/** `; did you mean "retry"?` when a known name is near, else the list of names when it is short. */
export function nearSpelling(given: string, known: readonly string[]): string {
  let best: string | undefined
  let bestDistance = Math.max(2, Math.floor(given.length / 3)) + 1
  for (const name of known) {
    const distance = editDistance(given.slice(0, 64).toLowerCase(), name.toLowerCase())
    if (distance < bestDistance) {
      best = name
      bestDistance = distance
    }
  }
  if (best !== undefined) return `; did you mean ${JSON.stringify(best)}?`
  return known.length > 0 && known.length <= 8 ? `; there are ${known.map((n) => JSON.stringify(n)).join(', ')}` : ''
}

/** Shows a value in an error: short, quoted, never throwing. */
export function show(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value.length > 60 ? `${value.slice(0, 60)}…` : value)
  if (typeof value === 'bigint') return `${value}n`
  if (typeof value === 'function') return 'a function'
  if (typeof value === 'symbol') return 'a symbol'
  if (Array.isArray(value)) return `an array of ${value.length}`
  if (value instanceof Date)
    return Number.isNaN(value.getTime()) ? 'an invalid Date' : `the Date ${value.toISOString()}`
  if (typeof value === 'object' && value !== null) return 'an object'
  return String(value)
}

/** Restricted Damerau–Levenshtein: a swap of neighbours, the commonest slip, counts as one. */
function editDistance(a: string, b: string): number {
  const rows: number[][] = [Array.from({ length: b.length + 1 }, (_, j) => j)]
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i]
    for (let j = 1; j <= b.length; j += 1) {
      const cost = a[i - 1] === b[j - 1] ? 0 : 1
      let best = Math.min(at(rows, i - 1, j) + 1, (row[j - 1] as number) + 1, at(rows, i - 1, j - 1) + cost)
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        best = Math.min(best, at(rows, i - 2, j - 2) + 1)
      row.push(best)
    }
    rows.push(row)
  }
  return at(rows, a.length, b.length)
}

const at = (rows: number[][], i: number, j: number): number => rows[i]?.[j] as number
