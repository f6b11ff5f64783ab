import { CodecError } from '../errors.js'
import { canonicalJson } from './canonical.js'
import { PARTS_MAX } from './limits.js'
import { checkCodecOptions, type CodecOptions } from './options.js'
import { codecError } from './path.js'
import { provePlain } from './plain.js'
import { readTags } from './read.js'
import { type Rules, rulesOf } from './rules.js'
import { reason, show } from './show.js'
import { writeText } from './write.js'

export type { CodecOptions } from './options.js'

/*
 * Tagged JSON. A JSON value is written as exactly that JSON, so a payload can be read and searched in the database. For any
 * other value, an object with the key "$" names the type:
 *
 *   { to: 'ada', at: new Date(0), $: 1 }   →   {"to":"ada","at":{"$":"Date","v":"1970-01-01T00:00:00.000Z"},"$$":1}
 *
 * A key of the user that is "$", "$$" and so on gets one more "$"; a key such as "$set" is not escaped. A text can name only
 * types of a closed list, so a hostile text cannot choose which code runs. A value that could not be read back unchanged is
 * refused with its path. These exceptions follow JSON: a hole in an array is read back as undefined, an object without a
 * prototype as an ordinary one, a Buffer as a Uint8Array, an object that is reached twice as two objects. Symbol keys,
 * properties that are not enumerable and named properties of arrays are not data and are not written.
 */

/** Converts values to text or bytes, and back. */
export interface Codec {
  /** Returns the value as text. Throws CodecError with the path of the part that cannot be written. */
  readonly encode: (value: unknown) => string | Uint8Array
  /** Returns the value of a text. Throws CodecError when the text is damaged or names a type this codec does not know. */
  readonly decode: (text: string | Uint8Array) => unknown
  /**
   * Returns a text that is the same for equal values, whatever the order of their keys. Unique jobs are compared by it.
   * Default: tagged JSON with sorted keys.
   */
  readonly canonical?: ((value: unknown) => string) | undefined
}

/**
 * A codec for payloads, results and snapshots; usable alone.
 *
 * ```ts
 * import { codec } from 'millrace'
 *
 * class Money {
 *   cents = 0
 * }
 * const shop = codec({
 *   types: {
 *     money: {
 *       is: (value: unknown): value is Money => value instanceof Money,
 *       write: (money) => money.cents,
 *       read: (cents) => Object.assign(new Money(), { cents: Number(cents) }),
 *     },
 *   },
 * })
 * shop.encode({ price: new Money() }) // {"price":{"$":"money","v":0}}
 * ```
 */
export function codec<Types extends object = Record<string, unknown>>(options?: CodecOptions<Types>): Codec {
  checkCodecOptions(options)
  const checked = (options ?? {}) as CodecOptions
  if (checked.encode !== undefined && checked.decode !== undefined) return replaced(checked.encode, checked.decode)
  const rules = rulesOf(checked)
  return {
    encode: (value) => encode(value, rules),
    decode: (text) => decode(text, rules),
    canonical: (value) => canonicalJson(encode(value, rules)),
  }
}

/** A codec of the user may write another text each time, since it may encrypt. Values are compared as tagged JSON then. */
export function canonicalText(own: Codec, value: unknown): string {
  return own.canonical === undefined ? canonicalJson(encode(value, PLAIN_RULES)) : own.canonical(value)
}

const PLAIN_RULES = rulesOf({})

/** The codec used where none is given. */
export const defaultCodec: Codec = codec()

function encode(value: unknown, rules: Rules): string {
  return encodePlain(value, rules) ?? writeText(value, rules)
}

/** The fast path for JSON values; returns undefined when the value is not certainly one. */
function encodePlain(value: unknown, rules: Rules): string | undefined {
  try {
    return provePlain(value, rules.custom, 0, PARTS_MAX) < 0 ? undefined : JSON.stringify(value)
  } catch {
    // A proxy, or is() of a type, threw. The writer gets the same error and knows the path.
    return undefined
  }
}

function decode(text: string | Uint8Array, rules: Rules): unknown {
  const json = typeof text === 'string' ? text : textOf(text)
  let parsed: unknown
  try {
    parsed = JSON.parse(json)
  } catch (error) {
    throw codecError('', `is not JSON text: ${reason(error)}`, { cause: error })
  }
  return hasMark(json) ? readTags(parsed, rules) : parsed
}

/**
 * Whether a text may contain a tag or an escaped key. `$` alone is searched first: that search is the fastest, and most
 * texts have none. JSON can also spell `$` as an escape, though this codec never writes that.
 */
function hasMark(json: string): boolean {
  return (json.includes('$') && json.includes('"$')) || json.includes('\\u0024')
}

function textOf(bytes: unknown): string {
  if (!(bytes instanceof Uint8Array)) throw codecError('', `must be text or bytes to decode, got ${show(bytes)}`)
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (error) {
    throw codecError('', `is not UTF-8 text: ${reason(error)}`, { cause: error })
  }
}

/** Wraps encode and decode of the user: checks that encode returns text or bytes, and turns their errors into CodecError. */
function replaced(encode: NonNullable<CodecOptions['encode']>, decode: NonNullable<CodecOptions['decode']>): Codec {
  return {
    encode: (value) => {
      const text = attempt('could not be written by the given encode', () => encode(value))
      if (typeof text === 'string' || text instanceof Uint8Array) return text
      throw codecError('', `became ${show(text)} in the given encode; it must return a string or a Uint8Array`)
    },
    decode: (text) => attempt('could not be read by the given decode', () => decode(text)),
  }
}

function attempt<T>(problem: string, call: () => T): T {
  try {
    return call()
  } catch (error) {
    if (error instanceof CodecError) throw error
    throw codecError('', `${problem}: ${reason(error)}`, { cause: error })
  }
}
