import { className, show } from './show.js'

/** How many entries of an object or array a preview shows. */
const ENTRIES_MAX = 20

/** A thrown value that is not an error, as text: its text, or its first entries, one level deep. */
export function previewOf(thrown: unknown): string {
  if (typeof thrown === 'string') return thrown
  if (typeof thrown !== 'object' || thrown === null) return show(thrown)
  try {
    return previewObject(thrown)
  } catch {
    // A proxy or a getter threw; only its class can be shown.
    return show(thrown)
  }
}

function previewObject(thrown: object): string {
  // Listing the keys of a huge buffer is too slow.
  if (ArrayBuffer.isView(thrown)) return show(thrown)
  if (Array.isArray(thrown)) return `[${listed(Array.from(thrown.slice(0, ENTRIES_MAX), show), thrown.length)}]`
  const keys = Object.keys(thrown)
  const fields = thrown as Readonly<Record<string, unknown>>
  const name = className(thrown)
  const head = name === 'Object' || name === 'object' ? '' : `${name} `
  if (keys.length === 0) return `${head}{}`
  const parts = keys.slice(0, ENTRIES_MAX).map((key) => `${show(key)}: ${show(fields[key])}`)
  return `${head}{ ${listed(parts, keys.length)} }`
}

function listed(parts: readonly string[], total: number): string {
  return [...parts, ...(total > parts.length ? [`… ${total - parts.length} more`] : [])].join(', ')
}
