import { describe, expect, test } from 'vitest'
import { makeIds } from '../../world/ids.js'
import { isSealed, Keyring, keyOf } from './keyring.js'

const bytes = (fill: number): Uint8Array => new Uint8Array(32).fill(fill)
const words = (): (() => number) => {
  let word = 0
  return () => (word += 1)
}
const keyring = (keys: Record<string, Uint8Array | string> = { k1: bytes(1) }, current = 'k1'): Keyring => {
  const ids = makeIds(words())
  return new Keyring({ keys, current }, () => ids.nonce())
}
const owner = { id: 'job-1', name: 'charge', key: 'order-1', slot: 'hmac k1 00' }
const outcome = (call: () => unknown): unknown => {
  try {
    return call()
  } catch (error) {
    return (error as { readonly code?: unknown }).code
  }
}

describe('a keyring', () => {
  test.each([['text'], [''], ['\u0000 and \ud800 alone'], ['😀 ö'], [new Uint8Array([0, 1, 255])], [new Uint8Array()]])(
    'opens what it sealed, as it was: %o',
    (value) => {
      const keys = keyring()
      const sealed = keys.seal(value, owner, 'payload')
      expect(isSealed(sealed)).toBe(true)
      expect(keyOf(sealed)).toBe('k1')
      expect(keys.open(sealed, owner, 'payload')).toEqual(value)
    },
  )

  test('leaves a value that is not sealed as it is', () => {
    expect(keyring().open('{"$":"Date","v":"x"}', owner, 'payload')).toBe('{"$":"Date","v":"x"}')
  })

  test('opens a value only for the owner and the part that it was sealed for', () => {
    const keys = keyring()
    const sealed = keys.seal('secret', owner, 'payload')
    expect(outcome(() => keys.open(sealed, { ...owner, id: 'job-2' }, 'payload'))).toBe('E_DECRYPTION')
    expect(outcome(() => keys.open(sealed, owner, 'result'))).toBe('E_DECRYPTION')
    // What a job is bound to by its id does not depend on its key or its slot.
    expect(keys.open(sealed, { id: owner.id, name: 'charge' }, 'payload')).toBe('secret')
  })

  test.each([
    ['key', { key: 'order-2' }],
    ['slot', { slot: 'hmac k1 01' }],
    ['name', { name: 'refund' }],
  ] as const)('binds a value to the %s where that is asked for', (binding, other) => {
    const keys = keyring()
    const sealed = keys.seal('secret', owner, 'payload', binding)
    expect(keys.open(sealed, { ...owner, id: 'job-2' }, 'payload')).toBe('secret')
    expect(outcome(() => keys.open(sealed, { ...owner, ...other }, 'payload'))).toBe('E_DECRYPTION')
    expect(outcome(() => keys.open(sealed.replace(`"to":"${binding}"`, '"to":"job"'), owner, 'payload'))).toBe(
      'E_DECRYPTION',
    )
  })

  test('refuses every changed character of a sealed text', () => {
    const keys = keyring()
    const sealed = keys.seal('secret', owner, 'payload')
    const from = sealed.indexOf('"v":"') + 5
    for (let at = from; at < sealed.length - 2; at += 1) {
      const changed = `${sealed.slice(0, at)}${sealed[at] === 'A' ? 'B' : 'A'}${sealed.slice(at + 1)}`
      const opened = outcome(() => keys.open(changed, owner, 'payload'))
      // The last character of base64 may have bits that no byte uses.
      expect(['E_DECRYPTION', at >= sealed.length - 4 ? 'secret' : 'E_DECRYPTION']).toContain(opened)
    }
    for (const cut of [from, from + 10, sealed.length - 3])
      expect(outcome(() => keys.open(sealed.slice(0, cut), owner, 'payload'))).toBe('E_DECRYPTION')
  })

  test('seals with the current key, and reads those of every key it has', () => {
    const old = keyring().seal('secret', owner, 'payload')
    const both = keyring({ k1: bytes(1), k2: bytes(2) }, 'k2')
    expect(both.open(old, owner, 'payload')).toBe('secret')
    expect(keyOf(both.seal('secret', owner, 'payload'))).toBe('k2')
    expect(outcome(() => keyring({ k2: bytes(2) }, 'k2').open(old, owner, 'payload'))).toBe('E_ENCRYPTION_KEY')
    expect(outcome(() => keyring({ k1: bytes(3) }).open(old, owner, 'payload'))).toBe('E_DECRYPTION')
  })

  test('draws a nonce for each value from the ids it was given: one seed seals the same way each time', () => {
    const [one, other] = [keyring(), keyring()]
    const twice = [one.seal('secret', owner, 'payload'), one.seal('secret', owner, 'payload')]
    expect(twice[0]).not.toBe(twice[1])
    expect([other.seal('secret', owner, 'payload'), other.seal('secret', owner, 'payload')]).toEqual(twice)
  })

  test('gives equal unique values of one job the same text, by its first key', () => {
    const text = keyring().uniqueText('charge', 'card:1')
    expect(text).toMatch(/^hmac k1 [0-9a-f]{64}$/)
    expect(keyring({ k1: bytes(1), k2: bytes(2) }, 'k2').uniqueText('charge', 'card:1')).toBe(text)
    expect(keyring().uniqueText('charge', 'card:2')).not.toBe(text)
    expect(keyring().uniqueText('refund', 'card:1')).not.toBe(text)
  })
})
