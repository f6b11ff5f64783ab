import { isOptionsObject } from '../../codec/options-object.js'
import { formatPath } from '../../codec/path.js'
import { didYouMean } from '../../codec/near-name.js'
import { show } from '../../codec/show.js'
import { EncryptionError } from '../../errors.js'
import type { Problem } from '../../errors.js'
import { decryptBytes, encryptBytes, keyedDigest } from '../../world/cipher.js'
import { checkFields } from '../definition/check-fields.js'
import type { Check } from '../definition/check-fields.js'
import { isName } from '../definition/check-values.js'
import type { Encoded } from '../rules/outcome.js'

/** The keys of a mill. Values of jobs with `encrypt: true` are encrypted with AES-256-GCM. */
export interface EncryptionOptions {
  /**
   * Keys by name: 32 bytes each, or text of 64 hex digits or of 32 bytes in base64. Every key that stored values still name must
   * be listed. The first key is also that of unique values.
   */
  readonly keys: { readonly [name: string]: Uint8Array | string }
  /** The name of the key that new values are encrypted with. */
  readonly current: string
}

/*
 * An encrypted value is text, whatever it was before:
 *
 *   {"$":"encrypted","key":"k2","to":"job","v":"<base64 of nonce, ciphertext and tag>"}
 *
 * `key` names the key, and `to` says what the value is bound to. Its context is the binding, the owner and the part of
 * the owner ("payload", "result"). The context is authenticated, and each context has an encryption key of its own,
 * derived from the named key: so a value that is copied to another job, or to another column of the same job, does not
 * decrypt, and no key encrypts so many values that random nonces could repeat.
 */

/** The owner of a value, as the store knows it. */
export interface Owner {
  readonly id: string
  readonly name: string
  readonly key?: string | null | undefined
  /** The text of its unique slot. */
  readonly slot?: string | undefined
}

/** What a value is bound to: a job, or what may move it from one job to another: its key, its unique slot, or only its name. */
export type Binding = 'job' | 'key' | 'slot' | 'name'

/** Encrypts and decrypts the values of jobs. */
export class Keyring {
  readonly #keys: ReadonlyMap<string, Uint8Array>
  readonly #current: string
  readonly #nonce: () => Uint8Array

  constructor({ keys, current }: EncryptionOptions, nonce: () => Uint8Array) {
    this.#keys = new Map(Object.entries(keys).map(([name, key]) => [name, bytesOf(key) ?? new Uint8Array()]))
    this.#current = current
    this.#nonce = nonce
  }

  /** Encrypts a value of this owner, with the current key. */
  seal(value: Encoded, owner: Owner, part: string, binding: Binding = 'job'): string {
    const context = contextOf(binding, owner, part)
    const key = keyedDigest(this.#keys.get(this.#current) as Uint8Array, `value ${context}`)
    const v = encryptBytes(key, this.#nonce(), context, withForm(value)).toString('base64')
    return `${SEALED}${JSON.stringify(this.#current)},"to":"${binding}","v":"${v}"}`
  }

  /** The value that was sealed; a value that is not sealed as it is. Throws EncryptionError if it cannot be decrypted. */
  open(stored: Encoded, owner: Owner, part: string): Encoded {
    if (!isSealed(stored)) return stored
    const { key: name, to, v } = envelopeOf(stored)
    const master = this.#keys.get(name)
    if (master === undefined) throw new EncryptionError('E_ENCRYPTION_KEY', missingKey(name, [...this.#keys.keys()]))
    const context = contextOf(to, owner, part)
    const plain = decryptBytes(keyedDigest(master, `value ${context}`), context, Buffer.from(v, 'base64'))
    if (plain === undefined) throw new EncryptionError('E_DECRYPTION', NOT_AUTHENTIC(name))
    return fromForm(plain)
  }

  /** Why this sealed value cannot be read here. */
  refusal(stored: string): EncryptionError {
    const { key } = envelopeOf(stored)
    return this.#keys.has(key)
      ? new EncryptionError('E_DECRYPTION', NOT_AUTHENTIC(key))
      : new EncryptionError('E_ENCRYPTION_KEY', missingKey(key, [...this.#keys.keys()]))
  }

  /** A unique value, unreadable and equal for equal values. By the first key, so that a new `current` does not change it. */
  uniqueText(jobName: string, text: string): string {
    const [[name, key]] = [...this.#keys] as unknown as [[string, Uint8Array]]
    return `hmac ${name} ${keyedDigest(key, JSON.stringify(['unique', jobName, text])).toString('hex')}`
  }
}

/** A sealed value begins so. No codec writes it: a tag of tagged JSON has the key "v" next. */
const SEALED = '{"$":"encrypted","key":'

export function isSealed(stored: Encoded | null): stored is string {
  return typeof stored === 'string' && stored.startsWith(SEALED)
}

/** The name of the key of a sealed value. */
export function keyOf(sealed: string): string {
  return envelopeOf(sealed).key
}

interface Envelope {
  readonly key: string
  readonly to: Binding
  readonly v: string
}

function envelopeOf(sealed: string): Envelope {
  try {
    const { key, to, v } = JSON.parse(sealed) as { readonly [name in keyof Envelope]?: unknown }
    if (typeof key === 'string' && typeof v === 'string' && BINDINGS.has(to)) return { key, to: to as Binding, v }
  } catch {
    // Cut or changed: the same refusal as for one that is valid JSON and has other fields.
  }
  throw new EncryptionError(
    'E_DECRYPTION',
    'it is marked as encrypted, and is damaged: it is not the text that was written',
  )
}

const BINDINGS: ReadonlySet<unknown> = new Set(['job', 'key', 'slot', 'name'])

function contextOf(binding: Binding, { id, name, key, slot }: Owner, part: string): string {
  const owner = { job: id, key, slot, name: '' }[binding]
  return JSON.stringify(['millrace', binding, binding === 'job' ? '' : name, owner ?? '', part])
}

function missingKey(name: string, known: readonly string[]): string {
  return `it is encrypted with key ${JSON.stringify(name)}, which is not among the encryption keys of this mill (${known.join(', ')})`
}

const NOT_AUTHENTIC = (name: string): string =>
  `it does not decrypt with key ${JSON.stringify(name)}: its text was changed or copied from elsewhere, or the key has another value`

/** The first byte says what the value was: text, bytes, or text that UTF-8 cannot hold. */
const [TEXT, BYTES, WIDE_TEXT] = [0, 1, 2]

function withForm(value: Encoded): Buffer {
  if (typeof value !== 'string') return Buffer.concat([Buffer.of(BYTES), value])
  const isText = !/\p{Surrogate}/u.test(value)
  return Buffer.concat([Buffer.of(isText ? TEXT : WIDE_TEXT), Buffer.from(value, isText ? 'utf8' : 'utf16le')])
}

function fromForm(plain: Buffer): Encoded {
  const rest = plain.subarray(1)
  if (plain[0] === BYTES) return new Uint8Array(rest)
  return rest.toString(plain[0] === TEXT ? 'utf8' : 'utf16le')
}

const KEY_BYTES = 32

/** The bytes of a key; undefined when it does not have 32. */
function bytesOf(key: unknown): Uint8Array | undefined {
  const bytes = typeof key === 'string' ? bytesOfText(key) : key instanceof Uint8Array ? key : undefined
  return bytes?.byteLength === KEY_BYTES ? new Uint8Array(bytes) : undefined
}

function bytesOfText(text: string): Uint8Array | undefined {
  if (/^[0-9a-f]{64}$/i.test(text)) return Buffer.from(text, 'hex')
  return /^[\w+/-]{43}=?$/.test(text) ? Buffer.from(text, 'base64') : undefined
}

export const isEncryption: Check = (value) => {
  const problems = checkFields(value, '', { fields: { keys: isKeys, current: isName } })
  if (problems.length > 0) return problems
  const { keys, current } = value as { readonly keys?: object; readonly current?: string }
  if (keys === undefined) return [{ path: 'keys', message: 'is missing: { k1: <32 bytes> }' }]
  if (current === undefined) return [{ path: 'current', message: `is missing: the name of one of the keys` }]
  if (Object.hasOwn(keys, current)) return undefined
  const names = Object.keys(keys)
  const message = `must name one of the keys (${names.join(', ')}), got ${show(current)}${didYouMean(current, names)}`
  return [{ path: 'current', message }]
}

/** A message never repeats a key, not even a wrong one. */
const isKeys: Check = (value) => {
  if (!isOptionsObject(value)) return 'must be an object of keys by name'
  const entries = Object.entries(value)
  if (entries.length === 0) return 'must have a key: { k1: <32 bytes> }'
  return entries.flatMap(([name, key]): Problem[] => {
    const path = formatPath([name])
    const wrong = isName(name)
    if (typeof wrong === 'string') return [{ path, message: `is no name of a key: it ${wrong}` }]
    return bytesOf(key) === undefined ? [{ path, message: keyProblem(key) }] : []
  })
}

function keyProblem(key: unknown): string {
  const got =
    typeof key === 'string'
      ? `text of ${key.length} characters`
      : key instanceof Uint8Array
        ? `${key.byteLength} bytes`
        : key === undefined
          ? 'undefined (is its environment variable set?)'
          : `a value of type ${typeof key}`
  return `must be 32 bytes, as a Uint8Array, 64 hex digits or base64, got ${got}; make one with: openssl rand -base64 32`
}
