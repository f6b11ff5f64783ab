import { isThenable, ignoreRejection } from './schema.js'

/** A longer text between braces is no placeholder. */
const FIELD_PATH_MAX = 100
const PLACEHOLDER = new RegExp(String.raw`\{([\w$.]{1,${FIELD_PATH_MAX}})\}`, 'g')

/** Fills `{field}` and `{field.inner}` placeholders from the payload; a placeholder without a printable value stays as it is. */
export function fillTitle(title: string | ((payload: unknown) => string), payload: unknown): string {
  if (typeof title === 'function') return titleCalled(title, payload)
  return title.replace(PLACEHOLDER, (placeholder, path: string) => {
    const value = path.split('.').reduce<unknown>(ownField, payload)
    const printable =
      typeof value === 'string' || typeof value === 'number' || typeof value === 'bigint' || typeof value === 'boolean'
    return printable ? String(value) : placeholder
  })
}

function titleCalled(title: (payload: unknown) => string, payload: unknown): string {
  const text: unknown = title(payload)
  if (!isThenable(text)) return String(text)
  ignoreRejection(text)
  throw new TypeError('it returned a promise; title() must be synchronous')
}

/** An own field of a value. Inherited properties are no data. */
export function ownField(from: unknown, name: string): unknown {
  return typeof from === 'object' && from !== null && Object.hasOwn(from, name)
    ? (from as Record<string, unknown>)[name]
    : undefined
}
