/** Fills `{field}` and `{field.inner}` places from the payload; a place with nothing behind it stays as it is. */
export function fillTitle(title: string | ((payload: unknown) => string), payload: unknown): string {
  if (typeof title === 'function') return String(title(payload))
  return title.replace(/\{([\w$.]{1,100})\}/g, (place, path: string) => {
    const value = path.split('.').reduce<unknown>(ownField, payload)
    const printable =
      typeof value === 'string' || typeof value === 'number' || typeof value === 'bigint' || typeof value === 'boolean'
    return printable ? String(value) : place
  })
}

/** A part of a value by its own name: what it inherits is no data. */
export function ownField(from: unknown, name: string): unknown {
  return typeof from === 'object' && from !== null && Object.hasOwn(from, name)
    ? (from as Record<string, unknown>)[name]
    : undefined
}
