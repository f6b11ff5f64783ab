/** Whether a value matches: objects by the fields of the expected one, everything else exactly. */
export function matches(value: unknown, asked: unknown): boolean {
  if (Object.is(value, asked)) return true
  if (typeof value !== 'object' || typeof asked !== 'object' || value === null || asked === null) return false
  if (asked instanceof Date) return value instanceof Date && value.getTime() === asked.getTime()
  if (asked instanceof URL) return value instanceof URL && value.href === asked.href
  if (Array.isArray(asked))
    return Array.isArray(value) && value.length === asked.length && asked.every((each, i) => matches(value[i], each))
  if (asked instanceof Map)
    return (
      value instanceof Map &&
      value.size === asked.size &&
      [...asked].every(([key, each]) => matches(value.get(key), each))
    )
  if (asked instanceof Set)
    return value instanceof Set && value.size === asked.size && [...asked].every((each) => value.has(each))
  return Object.entries(asked).every(
    ([key, each]) => Object.hasOwn(value, key) && matches((value as Record<string, unknown>)[key], each),
  )
}
