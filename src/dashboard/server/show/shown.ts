import { defaultCodec } from '../../../codec/codec.js'
import { REDACTED } from '../../../job/secrets/redact.js'
import type { Entry, Shown, ShownTag, ShownValue } from '../../protocol/shown.js'

/** Values are nested no deeper than the codec allows; what is deeper is not shown. */
const DEPTH_MAX = 100

/** A value of the app as JSON that loses nothing, up to a number of bytes. */
export function toShown(value: unknown, bytesMax: number): Pick<ShownValue, 'value' | 'bytes' | 'isCut'> {
  const budget = { left: bytesMax, isCut: false }
  const shown = shownOf(value, budget, 0)
  const bytes = sizeOf(value)
  return { value: shown, bytes: budget.isCut ? Math.max(bytes, bytesMax) : bytes, isCut: budget.isCut }
}

interface Budget {
  left: number
  isCut: boolean
}

function shownOf(value: unknown, budget: Budget, depth: number): Shown {
  if (typeof value === 'string') return shownString(value, budget)
  budget.left -= 8
  if (value === null || typeof value === 'boolean') return value
  if (typeof value === 'number') return shownNumber(value)
  if (typeof value === 'bigint') return tag('BigInt', String(value))
  if (value === undefined) return tag('undefined', 'undefined')
  if (typeof value !== 'object') return tag(typeof value, typeof value === 'symbol' ? String(value) : '')
  if (depth > DEPTH_MAX) return cutTag(budget)
  return shownObject(value, budget, depth)
}

function shownString(text: string, budget: Budget): Shown {
  if (text === REDACTED) return tag('redacted', '')
  if (text.length <= budget.left) {
    budget.left -= text.length + 2
    return text
  }
  const part = text.slice(0, Math.max(0, budget.left))
  budget.left = 0
  budget.isCut = true
  return tag('cut', part)
}

function shownNumber(value: number): Shown {
  if (Object.is(value, -0)) return tag('number', '-0')
  return Number.isFinite(value) ? value : tag('number', String(value))
}

function shownObject(value: object, budget: Budget, depth: number): Shown {
  if (Array.isArray(value))
    return { is: 'list', ...within(value, budget, (each) => shownOf(each, budget, depth + 1), 'items') }
  if (value instanceof Set)
    return { is: 'list', of: 'Set', ...within([...value], budget, (each) => shownOf(each, budget, depth + 1), 'items') }
  if (value instanceof Map) {
    const pair = ([key, one]: readonly [unknown, unknown]): readonly [Shown, Shown] => [
      shownOf(key, budget, depth + 1),
      shownOf(one, budget, depth + 1),
    ]
    return { ...tag('Map', `${value.size}`), ...within([...value], budget, pair, 'entries') }
  }
  const tagged = taggedText(value)
  if (tagged !== undefined) return shownTagged(tagged, budget)
  const entry = ([name, one]: [string, unknown]): Entry => [name, shownOf(one, budget, depth + 1)]
  return { is: 'object', ...within(Object.entries(value), budget, entry, 'entries') }
}

function shownTagged({ name, text }: { readonly name: string; readonly text: string }, budget: Budget): Shown {
  const shown = shownString(text, budget)
  return typeof shown === 'string' ? tag(name, shown) : shown
}

/** As many as fit, and how many more there are. */
function within<From, To, Name extends string>(
  all: readonly From[],
  budget: Budget,
  make: (each: From) => To,
  name: Name,
): Record<Name, To[]> & { readonly more?: number } {
  const made: To[] = []
  for (const each of all) {
    if (budget.left <= 0) break
    made.push(make(each))
  }
  if (made.length < all.length) budget.isCut = true
  const list = { [name]: made } as Record<Name, To[]>
  return made.length === all.length ? list : { ...list, more: all.length - made.length }
}

/** Dates, URLs, buffers, Temporal, errors: as the codec writes them. A type of the app's own is shown by its class. */
function taggedText(value: object): { readonly name: string; readonly text: string } | undefined {
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype === Object.prototype || prototype === null) return undefined
  try {
    const written = JSON.parse(String(defaultCodec.encode(value))) as { readonly $?: unknown; readonly v?: unknown }
    if (typeof written.$ !== 'string') return undefined
    return { name: written.$, text: typeof written.v === 'string' ? written.v : JSON.stringify(written.v ?? null) }
  } catch {
    // A class of the app that its own codec writes: its fields are not ours to read.
    const name = (prototype as { readonly constructor?: { readonly name?: unknown } } | null)?.constructor?.name
    return { name: typeof name === 'string' && name !== '' ? name : 'object', text: '' }
  }
}

function sizeOf(value: unknown): number {
  try {
    return Buffer.byteLength(String(defaultCodec.encode(value)))
  } catch {
    // A type of the app's own codec: its size is not known here.
    return 0
  }
}

function tag(name: string, text: string): ShownTag {
  return { is: 'tag', tag: name, text }
}

function cutTag(budget: Budget): ShownTag {
  budget.isCut = true
  return tag('cut', '…')
}

/** A shown value as indented text. */
export function shownText(value: Shown, indent = ''): string {
  if (value === null || typeof value !== 'object') return JSON.stringify(value)
  const deeper = `${indent}  `
  const block = (open: string, lines: readonly string[], close: string, more = 0): string => {
    const all = more > 0 ? [...lines, `${deeper}… ${more} more`] : lines
    return all.length === 0 ? open + close : `${open}\n${all.join(',\n')}\n${indent}${close}`
  }
  switch (value.is) {
    case 'object':
      return block(
        '{',
        value.entries.map(([name, one]) => `${deeper}${JSON.stringify(name)}: ${shownText(one, deeper)}`),
        '}',
        value.more,
      )
    case 'list':
      return (
        (value.of ?? '') +
        block(
          '[',
          value.items.map((one) => deeper + shownText(one, deeper)),
          ']',
          value.more,
        )
      )
    case 'tag':
      return tagText(value, deeper, block)
    default:
      return value satisfies never
  }
}

function tagText(
  { tag: name, text, entries, more }: ShownTag,
  deeper: string,
  block: (open: string, lines: readonly string[], close: string, more?: number) => string,
): string {
  if (name === 'redacted') return REDACTED
  if (name === 'cut') return `${JSON.stringify(text).slice(0, -1)}…`
  if (name === 'number' || name === 'undefined' || name === 'BigInt') return text
  if (entries === undefined) return `‹${name}› ${text}`
  return (
    name +
    block(
      '{',
      entries.map(([key, one]) => `${deeper}${shownText(key, deeper)} => ${shownText(one, deeper)}`),
      '}',
      more,
    )
  )
}
