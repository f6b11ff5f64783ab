import { MillraceError, StoreError } from '../../errors.js'
import { reason } from '../../codec/show.js'

/** The server's code of an error (SQLSTATE), or the system's of a connection that failed. */
export function codeOf(error: unknown): string | undefined {
  const code = (Object(error) as { code?: unknown }).code
  return typeof code === 'string' ? code : undefined
}

/** The same of an error that was put into our words. */
export function causeCode(error: unknown): string | undefined {
  return codeOf((Object(error) as { cause?: unknown }).cause)
}

/** Deadlock, serialization failure: nothing was written, and another try may go through. */
const TRANSIENT = new Set(['40P01', '40001'])

export function isTransient(error: unknown): boolean {
  return TRANSIENT.has(codeOf(error) ?? '')
}

/** The connection is of no more use: it is gone, or leads to a server that takes no writes any more (a failover). */
export function isLost(error: unknown): boolean {
  const code = codeOf(error)
  return code === '25006' || isUnreachable(code, reason(error))
}

/** An error of the server or of the way there, in our words. Those that are ours already pass. */
export function translate(error: unknown, name: string): unknown {
  if (error instanceof MillraceError) return error
  const code = codeOf(error)
  const told = reason(error)
  if (code === '25006')
    return new StoreError(
      'E_STORE_READ_ONLY',
      `${name} takes no writes: it is a replica, or was made read-only; connect to the primary`,
      { cause: error },
    )
  if (code === '42501')
    return new StoreError(
      'E_STORE_RIGHTS',
      `${name} refused it: ${told}; grant the role usage on the schema, select, insert, update and delete on its tables and usage on its sequences`,
      { cause: error },
    )
  if (code === '55P03')
    return new StoreError(
      'E_STORE_LOCKED',
      `${name}: another transaction holds what this one needs; it is tried again`,
      {
        cause: error,
      },
    )
  if (code === '53100')
    return new StoreError('E_STORE_FULL', `${name}: its disk is full; nothing was written`, { cause: error })
  if (code === '28P01' || code === '28000' || /password must be a (non-empty )?string/.test(told))
    return new StoreError(
      'E_STORE_LOGIN',
      `${name} refused the login: ${told}; check user and password of the URL, and pg_hba.conf of the server`,
      { cause: error },
    )
  if (code === '3D000')
    return new StoreError('E_STORE_MISSING', `${name}: ${told}; create it, or correct the URL`, { cause: error })
  if (isUnreachable(code, told))
    return new StoreError(
      'E_STORE_UNREACHABLE',
      `${name} cannot be reached: ${told === '' ? code : told}; check that it runs, and host and port of the URL`,
      { cause: error },
    )
  return code === undefined ? error : new StoreError('E_STORE', `${name}: ${told} (${code})`, { cause: error })
}

const NETWORK = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ENOTFOUND',
  'ETIMEDOUT',
  'EPIPE',
  'EHOSTUNREACH',
  'EHOSTDOWN',
  'ENETUNREACH',
  'ENETDOWN',
  'ECONNABORTED',
  'EAI_AGAIN',
  '57P01',
  '57P02',
  '57P03',
  '57P05', // Idle for longer than the server allows.
  '25P03', // The same within a transaction: we were suspended.
  '53300',
])

function isUnreachable(code: string | undefined, told: string): boolean {
  return (
    NETWORK.has(code ?? '') ||
    code?.startsWith('08') === true ||
    /connection (terminated|ended|error)|not queryable|not support SSL|^timeout expired|timeout exceeded when trying to connect/i.test(
      told,
    )
  )
}
