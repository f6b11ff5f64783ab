import { isError, readError, writeError } from './error-shape.js'
import { fieldsIn, listIn, pairIn, textIn, unreadable } from './check-written.js'

/** How values of one type are recognised, written as simpler values, and read back. */
export interface CodecType<T = unknown> {
  /** Whether a value is of this type. It is called for every object, function, symbol and bigint, so it should be fast. */
  readonly is: ((value: unknown) => value is T) | ((value: unknown) => boolean)
  /** Returns the value in a form that the codec can write, other registered types included. */
  write(value: T): unknown
  /** Returns the value from what `write` returned. It should refuse anything that `write` cannot have written. */
  read(written: unknown): T
}

/** A type with the name that marks it in the text: `{"$":"Date","v":"2026-01-01T00:00:00.000Z"}`. */
export interface Tag extends CodecType {
  readonly name: string
}

/** A type as a tag. `write` gets only values that `is` accepted, so the type parameter can be dropped here. */
export function tagOf<T>(name: string, type: CodecType<T>): Tag {
  return {
    name,
    is: (value) => type.is(value),
    write: (value) => type.write(value as T),
    read: (written) => type.read(written),
  }
}

/** The types every codec knows, each under the name of its class. `undefined` as a written form means "no `v`". */
export const basicTags: readonly Tag[] = [
  tagOf<Date>('Date', {
    is: (value) => brand(() => Date.prototype.getTime.call(value)),
    write: (date) => (Number.isNaN(date.getTime()) ? null : date.toISOString()),
    read: readDate,
  }),
  tagOf<bigint>('BigInt', {
    is: (value) => typeof value === 'bigint',
    write: String,
    read: (text) => BigInt(textIn(text, 'a whole number in digits', /^-?\d+$/u)),
  }),
  tagOf<ReadonlyMap<unknown, unknown>>('Map', {
    is: (value) => brand(() => Map.prototype.has.call(value, undefined)),
    write: (map) => [...map],
    read: (pairs) => new Map(listIn(pairs).map(pairIn)),
  }),
  tagOf<ReadonlySet<unknown>>('Set', {
    is: (value) => brand(() => Set.prototype.has.call(value, undefined)),
    write: (set) => [...set],
    read: (values) => new Set(listIn(values)),
  }),
  tagOf<URL>('URL', {
    is: (value) => value instanceof URL,
    write: (url) => url.href,
    read: (href) => new URL(textIn(href, 'an address')),
  }),
  tagOf<Uint8Array>('Uint8Array', {
    is: (value) => typedArrayName(value) === 'Uint8Array',
    write: (bytes) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64'),
    read: readBytes,
  }),
  tagOf<Error>('Error', { is: isError, write: writeError, read: readError }),
  constant('undefined', undefined),
  constant('NaN', Number.NaN),
  constant('Infinity', Number.POSITIVE_INFINITY),
  constant('-Infinity', Number.NEGATIVE_INFINITY),
  constant('-0', -0),
]

/** Off by default: a hostile pattern can block its reader's thread for years. */
export const regExpTag: Tag = tagOf<RegExp>('RegExp', {
  is: (value) => Object.prototype.toString.call(value) === '[object RegExp]',
  write: (pattern) => ({ source: pattern.source, flags: pattern.flags }),
  read: (written) => {
    const { source, flags } = fieldsIn(written)
    return new RegExp(textIn(source, 'a pattern'), textIn(flags, 'flags'))
  },
})

function constant(name: string, value: unknown): Tag {
  return tagOf(name, {
    is: (other) => Object.is(other, value),
    write: () => undefined,
    read: (written) => (written === undefined ? value : unreadable('nothing beside the tag', written)),
  })
}

/** A method of a built-in class throws on other values. Unlike `instanceof`, this works across realms. */
function brand(call: () => unknown): boolean {
  try {
    call()
    return true
  } catch {
    // The value is of another class.
    return false
  }
}

function typedArrayName(value: unknown): unknown {
  const prototype: object = Object.getPrototypeOf(Uint8Array.prototype)
  return Object.getOwnPropertyDescriptor(prototype, Symbol.toStringTag)?.get?.call(value)
}

function readDate(written: unknown): Date {
  if (written === null) return new Date(Number.NaN)
  const date = new Date(textIn(written, 'ISO text or null'))
  const isSame = !Number.isNaN(date.getTime()) && date.toISOString() === written
  return isSame ? date : unreadable('a date as Date.prototype.toISOString writes it', written)
}

function readBytes(written: unknown): Uint8Array {
  const text = textIn(written, 'base64 text')
  const bytes = Buffer.from(text, 'base64')
  // Buffer skips characters that are not base64; writing the bytes again shows whether any was skipped.
  if (bytes.toString('base64') !== text) return unreadable('base64 text', written)
  // A copy: a small Buffer is a window on a shared pool.
  return new Uint8Array(bytes)
}
