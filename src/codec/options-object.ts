/**
 * Whether a value can hold options. Of those only own fields are read: an object of a class that has none (a promise that was
 * not awaited, a Map, a Date) would pass for "no options".
 */
export function isOptionsObject(value: unknown): value is object {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  return isPlainObject(value) || Object.keys(value).length > 0
}

/** An object that was written as one, in whichever realm. */
export function isPlainObject(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === null || Object.getPrototypeOf(prototype) === null
}

/** The options that are given: one that is undefined counts as left out. */
export function givenOf<Options extends object>(options: Options): Partial<Options> {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as Partial<Options>
}
