import { MillraceError, StoreError, StoreGoneError } from '../../../errors.js'
import { reason } from '../../../codec/show.js'

/** The SQLSTATE of an error of the server, or the system's code of a connection that failed. */
export function codeOf(error: unknown): string | undefined {
  const code = (Object(error) as { code?: unknown }).code
  return typeof code === 'string' ? code : undefined
}

/** The same code of a translated error. */
export function causeCode(error: unknown): string | undefined {
  return codeOf((Object(error) as { cause?: unknown }).cause)
}

/** Deadlock, serialization failure: nothing was written, and a retry may succeed. */
const TRANSIENT = new Set(['40P01', '40001'])

export function isTransient(error: unknown): boolean {
  return TRANSIENT.has(codeOf(error) ?? '') || isPartitionAdded(error)
}

/**
 * The partition of a day was added while a row of that day was on its way into the default partition: written again,
 * it gets into the new one. The server names the function that refused it, in any language; a partition that cannot be
 * added, because the default one has rows of its day, is refused by another function.
 */
function isPartitionAdded(error: unknown): boolean {
  const { routine } = Object(error) as { readonly routine?: unknown }
  return codeOf(error) === '23514' && routine === 'ExecPartitionCheckEmitError'
}

/** The connection is unusable: it was lost, or its server no longer accepts writes (a failover). */
export function isLost(error: unknown): boolean {
  const code = codeOf(error)
  return code === '25006' || isUnreachable(code, reason(error))
}

/**
 * No connection is available: the server has no slot left (for all, the role or the database), the pooler accepts no
 * more clients or has no free session, or the app's pool has no client. Nothing was sent. It passes when other
 * connections close.
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
 * A statement or a COMMIT was sent and its reply was lost: the write may or may not have happened. A caller that need
 * not know the outcome handles it as an unreachable store. `receipt` names the row that shows whether the transaction
 * committed (receipts.ts); `index` is the position of one call in a write that several calls share.
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

  withReceipt(receipt: string | undefined): ReplyLostError {
    return new ReplyLostError(this.message, this.cause, receipt, this.index)
  }

  at(index: number): ReplyLostError {
    return new ReplyLostError(this.message, this.cause, this.receipt, index)
  }
}

/**
 * The error of a statement that commits: a ReplyLostError if the statement may have reached the server and the server
 * has not answered. An error that the server itself sent means that nothing was written. A pooler that has lost the
 * server sends an error of its own (SQLSTATE class 08, or any FATAL), which does not say what happened to the
 * statement.
 */
export function lostReply(error: unknown, name: string, isDirect: boolean): unknown {
  const translated = translate(error, name)
  if (
    !(translated instanceof StoreError) ||
    translated.code !== 'E_STORE_UNREACHABLE' ||
    translated instanceof ReplyLostError
  )
    return translated
  const { severity } = Object(error) as { severity?: unknown }
  const isPooler = codeOf(error)?.startsWith('08') === true || (!isDirect && severity === 'FATAL')
  const isAnswered = severity !== undefined && !isPooler
  const isUnsent = /not queryable/.test(reason(error))
  return isAnswered || isUnsent ? translated : new ReplyLostError(translated.message, error)
}

/**
 * Translates an error of the server or of the network to one of Millrace's. Errors of Millrace are returned as they
 * are.
 */
export function translate(error: unknown, name: string): unknown {
  if (error instanceof MillraceError) return error
  const code = codeOf(error)
  const message = reason(error)
  if (code === '25006')
    return new StoreError(
      'E_STORE_READ_ONLY',
      `${name} takes no writes: it is a replica, or was made read-only; connect to the primary`,
      { cause: error },
    )
  if (code === '42501')
    return new StoreError(
      'E_STORE_RIGHTS',
      `${name} refused it: ${message}; as a role that owns the schema, grant the role usage on the schema, select, insert, update and delete on its tables and usage on its sequences`,
      { cause: error },
    )
  if (code === '55P03')
    return new StoreError(
      'E_STORE_LOCKED',
      `${name}: another transaction holds what this call needs and keeps its lock; nothing was written; end it, and keep such transactions short`,
      { cause: error },
    )
  if (code === '53100')
    return new StoreError('E_STORE_FULL', `${name}: its disk is full; nothing was written`, { cause: error })
  if (code === '28P01' || code === '28000' || /password must be a (non-empty )?string/.test(message))
    return new StoreError(
      'E_STORE_LOGIN',
      `${name} refused the login: ${message}; check user and password of the URL, and pg_hba.conf of the server`,
      { cause: error },
    )
  if (code === '3D000')
    return new StoreError('E_STORE_MISSING', `${name}: ${message}; create it, or correct the URL`, { cause: error })
  if (GONE.has(code ?? ''))
    return new StoreGoneError(
      `${name}: ${message}: its schema or a table of it was dropped or renamed while this mill was using it; nothing of this call was ` +
        'written. Restore them, or run `millrace migrate` for empty ones: work resumes by itself',
      { cause: error },
    )
  if (isUnreachable(code, message))
    return new StoreError(
      'E_STORE_UNREACHABLE',
      `${name} cannot be reached: ${message === '' ? code : message}; ${connectionAdvice(code, message)}`,
      { cause: error },
    )
  if (code === undefined) return error
  return new StoreError('E_STORE', `${name}: ${message} (${code})${adviceFor(code, message)}`, { cause: error })
}

/** The schema, a table or a function of Millrace does not exist. */
const GONE = new Set(['3F000', '42P01', '42883'])

/** What the caller should check when no connection can be made. */
function connectionAdvice(code: string | undefined, message: string): string {
  if (code === '53300')
    return 'it takes no more connections: close some, raise max_connections, or put a pooler in front of it (three a process are needed)'
  if (/not support SSL/i.test(message))
    return 'take sslmode or ssl out of the URL or the pool’s settings, or turn on ssl at the server'
  if (/query read timeout/i.test(message)) return 'raise query_timeout of the pool, or leave it out'
  return 'check that it runs, and host and port of the URL'
}

function adviceFor(code: string, message: string): string {
  const isSetting = code === '57014' && message.includes('statement timeout')
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
  '25P03', // The same within a transaction: this process was suspended.
  '53300',
])

function isUnreachable(code: string | undefined, message: string): boolean {
  return (
    NETWORK.has(code ?? '') ||
    code?.startsWith('08') === true ||
    /connection (terminated|ended|error)|not queryable|not support SSL|^timeout expired|timeout exceeded when trying to connect|^query read timeout/i.test(
      message,
    )
  )
}
