import { MillraceError, StoreError, StoreGoneError } from '../../../errors.js'
import { reason } from '../../../codec/show.js'

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

/**
 * No connection is to be had for now: the server has no slot left (for all, the role or the database), the pooler takes no more
 * clients or has no session to give, or the app's pool has no client. Nothing was sent. It passes when others close theirs.
 */
export function isFull(error: unknown): boolean {
  return (
    codeOf(error) === '53300' ||
    /no more connections allowed|too many (clients|connections)|connection slots are reserved|query_wait_timeout|timeout exceeded when trying to connect|due to connection timeout|^timeout expired/i.test(
      reason(error),
    )
  )
}

/**
 * A statement or a COMMIT was sent and its reply did not come: the write may or may not have happened. For those to whom that
 * makes no difference it is a store that cannot be reached. `receipt` names the row that tells (receipts.ts); `index` is the
 * place of one call in a write that several share.
 */
export class ReplyLostError extends StoreError {
  readonly receipt: string | undefined
  readonly index: number
  constructor(message: string, cause: unknown, receipt?: string, index = 0) {
    super('E_STORE_UNREACHABLE', message, { cause })
    this.name = 'StoreError'
    this.receipt = receipt
    this.index = index
  }

  under(receipt: string | undefined): ReplyLostError {
    return new ReplyLostError(this.message, this.cause, receipt, this.index)
  }

  at(index: number): ReplyLostError {
    return new ReplyLostError(this.message, this.cause, this.receipt, index)
  }
}

/**
 * The error of a statement that was to commit: a ReplyLostError if the statement may have reached the server and the server has
 * not answered. An error that the server sent says that nothing was written. A pooler speaks for itself where the server is
 * gone (SQLSTATE class 08, or any FATAL), and does not know what became of the statement.
 */
export function lostReply(error: unknown, name: string, isDirect: boolean): unknown {
  const told = translate(error, name)
  if (!(told instanceof StoreError) || told.code !== 'E_STORE_UNREACHABLE' || told instanceof ReplyLostError)
    return told
  const { severity } = Object(error) as { severity?: unknown }
  const isPooler = codeOf(error)?.startsWith('08') === true || (!isDirect && severity === 'FATAL')
  const isAnswered = severity !== undefined && !isPooler
  const isUnsent = /not queryable/.test(reason(error))
  return isAnswered || isUnsent ? told : new ReplyLostError(told.message, error)
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
      `${name} refused it: ${told}; as a role that owns the schema, grant the role usage on the schema, select, insert, update and delete on its tables and usage on its sequences`,
      { cause: error },
    )
  if (code === '55P03')
    return new StoreError(
      'E_STORE_LOCKED',
      `${name}: another transaction holds what this call needs and does not let go of it; nothing was written; end it, and keep such transactions short`,
      { cause: error },
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
  if (GONE.has(code ?? ''))
    return new StoreGoneError(
      `${name}: ${told}: its schema or a table of it was dropped or renamed while this mill was using it; nothing of this call was ` +
        'written. Restore them, or run `millrace migrate` for empty ones: work resumes by itself',
      { cause: error },
    )
  if (isUnreachable(code, told))
    return new StoreError(
      'E_STORE_UNREACHABLE',
      `${name} cannot be reached: ${told === '' ? code : told}; ${wayThere(code, told)}`,
      { cause: error },
    )
  if (code === undefined) return error
  return new StoreError('E_STORE', `${name}: ${told} (${code})${adviceFor(code, told)}`, { cause: error })
}

/** The schema, a table or a function of ours does not exist. */
const GONE = new Set(['3F000', '42P01', '42883'])

/** What to look at when no connection comes about. */
function wayThere(code: string | undefined, told: string): string {
  if (code === '53300')
    return 'it takes no more connections: close some, raise max_connections, or let a pooler stand between (three a process are needed)'
  if (/not support SSL/i.test(told))
    return 'take sslmode or ssl out of the URL or the pool’s settings, or turn on ssl at the server'
  if (/query read timeout/i.test(told)) return 'raise query_timeout of the pool, or leave it out'
  return 'check that it runs, and host and port of the URL'
}

function adviceFor(code: string, told: string): string {
  const isSetting = code === '57014' && told.includes('statement timeout')
  return isSetting ? '; statement_timeout is too short: raise it to 10 s or more for this role, or leave it out' : ''
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
    /connection (terminated|ended|error)|not queryable|not support SSL|^timeout expired|timeout exceeded when trying to connect|^query read timeout/i.test(
      told,
    )
  )
}
