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
 * Tagged JSON. A value that JSON can say is written as that JSON and nothing else, so a payload can be read and
 * searched in the database. Where JSON has no word, an object with the key "$" names the type:
 *
 *   { to: 'ada', at: new Date(0), $: 1 }   →   {"to":"ada","at":{"$":"Date","v":"1970-01-01T00:00:00.000Z"},"$$":1}
 *
 * A key of the user's that is "$", "$$" and so on gets one "$" more; a key such as "$set" is no mark and stays. Text can
 * only name types from a closed list, so no text, however hostile, chooses what code runs. What would not come back is
 * refused with its path, with these exceptions, which follow JSON: a hole in an array comes back as undefined, an
 * object without a prototype as an ordinary one, a Buffer as a Uint8Array, an object reached twice as two objects; and
 * symbol keys, properties that are not enumerable and named properties of arrays are not data and are not written.
 */

/** Turns values into text, or bytes, and back. */
export interface Codec {
  /** The value as text. Throws CodecError with the path of the part that cannot be written. */
  readonly encode: (value: unknown) => string | Uint8Array
  /** The value again. Throws CodecError when the text is damaged or names a type this codec does not know. */
  readonly decode: (text: string | Uint8Array) => unknown
  /**
   * The value as text that is the same for equal values, whatever the order of their keys: what jobs are compared by when they
   * are to be unique. Default: tagged JSON with its keys in order.
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

/** A codec of a stranger's need not write the same twice (it may encrypt): then values are compared as tagged JSON. */
export function canonicalText(own: Codec, value: unknown): string {
  return own.canonical === undefined ? canonicalJson(encode(value, PLAIN_RULES)) : own.canonical(value)
}

const PLAIN_RULES = rulesOf({})

/** The codec used where none is given. */
export const defaultCodec: Codec = codec()

function encode(value: unknown, rules: Rules): string {
  return encodePlain(value, rules) ?? writeText(value, rules)
}

/** The quick way, for values that are JSON already; undefined when this one is not, or not certainly. */
function encodePlain(value: unknown, rules: Rules): string | undefined {
  try {
    return provePlain(value, rules.custom, 0, PARTS_MAX) < 0 ? undefined : JSON.stringify(value)
  } catch {
    // A proxy, or a type's is(), threw: the writer meets the same and knows where it happened.
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
 * Whether a text may hold a tag or an escaped key. The lone `$` is looked for first, because that search is the
 * quickest there is and most texts have none. JSON can also spell the mark as an escape, though we never do.
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

/** A stranger's codec behind our promises: it returns text or bytes, and what it throws is a CodecError. */
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

function attempt<T>(saying: string, call: () => T): T {
  try {
    return call()
  } catch (error) {
    if (error instanceof CodecError) throw error
    throw codecError('', `${saying}: ${reason(error)}`, { cause: error })
  }
}
