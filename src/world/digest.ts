import { createHash } from 'node:crypto'

/** A fixed-length name for a text of any length. It is no secret, and the same text has the same one everywhere. */
export function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
