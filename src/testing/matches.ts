/** Whether a value matches: objects by the fields of the expected one, everything else exactly. */
export function matches(value: unknown, expected: unknown): boolean {
  if (Object.is(value, expected)) return true
  if (typeof value !== 'object' || typeof expected !== 'object' || value === null || expected === null) return false
  if (expected instanceof Date) return value instanceof Date && value.getTime() === expected.getTime()
  if (expected instanceof URL) return value instanceof URL && value.href === expected.href
  if (Array.isArray(expected))
    return (
      Array.isArray(value) && value.length === expected.length && expected.every((each, i) => matches(value[i], each))
    )
  if (expected instanceof Map)
    return (
      value instanceof Map &&
      value.size === expected.size &&
      [...expected].every(([key, each]) => matches(value.get(key), each))
    )
  if (expected instanceof Set)
    return value instanceof Set && value.size === expected.size && [...expected].every((each) => value.has(each))
  return Object.entries(expected).every(
    ([key, each]) => Object.hasOwn(value, key) && matches((value as Record<string, unknown>)[key], each),
  )
}
