import { createHash } from 'node:crypto'

/** A fixed-length digest of a text. It is not secret, and the same text has the same digest everywhere. */
export function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
