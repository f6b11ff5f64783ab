import { createCipheriv, createDecipheriv, createHash, createHmac, timingSafeEqual } from 'node:crypto'

/** AES-256-GCM. The caller brings the nonce, so that a simulation encrypts the same way each time. */

const NONCE_BYTES = 12
const TAG_BYTES = 16

/** Returns nonce, ciphertext and tag as one. Only the same key and `context` decrypt it. */
export function encryptBytes(key: Uint8Array, nonce: Uint8Array, context: string, plain: Uint8Array): Buffer {
  const cipher = createCipheriv('aes-256-gcm', key, nonce)
  cipher.setAAD(Buffer.from(context))
  return Buffer.concat([nonce, cipher.update(plain), cipher.final(), cipher.getAuthTag()])
}

/** Undefined: another key or context, or a byte was changed. */
export function decryptBytes(key: Uint8Array, context: string, sealed: Uint8Array): Buffer | undefined {
  if (sealed.byteLength < NONCE_BYTES + TAG_BYTES) return undefined
  try {
    const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(0, NONCE_BYTES))
    decipher.setAAD(Buffer.from(context))
    decipher.setAuthTag(sealed.subarray(-TAG_BYTES))
    return Buffer.concat([decipher.update(sealed.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()])
  } catch {
    // OpenSSL says no more than that the tag does not fit.
    return undefined
  }
}

/** HMAC-SHA256: the same text has the same digest, and only a holder of the key can compute it. */
export function keyedDigest(key: Uint8Array, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest()
}

/** Whether two texts are the same, in a time that does not depend on how much of them is. */
export function isSameSecret(one: string, other: string): boolean {
  return timingSafeEqual(createHash('sha256').update(one).digest(), createHash('sha256').update(other).digest())
}
