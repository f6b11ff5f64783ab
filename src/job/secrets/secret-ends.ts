import type { ErrorRecord } from '../../codec/error-text.js'
import type { State } from '../rules/states.js'

/** Codes of errors that say which key is missing or does not fit: they hold no secret, and an operator must read them. */
const READABLE_CODES: readonly unknown[] = ['E_ENCRYPTION_KEY', 'E_DECRYPTION']

export function isReadableError(error: ErrorRecord | undefined): boolean {
  return READABLE_CODES.includes(error?.code)
}

/**
 * Whether the reason of an end may repeat what the job was given or returned: it says why a result is not kept, or in what a payload
 * does not fit. Other reasons are the engine's own. A job that is parked without an error is parked for its crashes.
 */
export function isSecretReason(end: {
  readonly to: State
  readonly error: string | null
  readonly reason: string | null
}): boolean {
  const { to, error, reason } = end
  if (reason === null) return false
  if (to === 'done') return true
  return to === 'parked' && error !== null && !isReadableError(JSON.parse(error) as ErrorRecord)
}
