import { mergeHints, EMPTY_HINT } from '../../hint.js'
import type { Hint } from '../../store.js'
import { GroupMoves } from '../../rows/group-moves.js'
import type { SharedStatement } from '../../verbs/statements.js'
import type { Value, VerbSession } from '../../verbs/verb.js'
import type { SqlExecutor } from './sql-executor.js'
import type { JobSession } from '../verbs/job-session.js'
import type { Lanes } from '../verbs/lanes.js'
import type { Queries } from '../queries/queries.js'
import type { Runner } from './runner.js'

/** A notification that stands for those that were missed: anything may have changed. */
export const HINTS_MISSED = 'unknown ready due settled requested'

/** In a notification: the sender waits for a connection, so the receiver closes its idle ones. */
export const CONNECTION_NEEDED = 'connection-needed'

export function isConnectionNeeded(payload: string, self: string): boolean {
  const [from, ...words] = payload.split(' ')
  return from !== self && words.includes(CONNECTION_NEEDED)
}

export interface SessionParts {
  readonly db: SqlExecutor
  readonly queries: Queries
  readonly lanes: Lanes
  /** The clock of the database as a test sets it. Undefined: the server's own clock. */
  readonly now: (() => number) | undefined
  /** The sender of notifications, so that a process can ignore its own. */
  readonly from: string
}

/** How a verb gets a session. */
export interface VerbParts {
  readonly lanes: Lanes
  /** Statements that each commit by themselves. */
  readonly plain: <T>(work: (session: JobSession) => Promise<T>) => Promise<T>
  /** One transaction, all or nothing; on a lock conflict it is retried for `patienceMs`. */
  readonly transact: <T>(work: (session: JobSession) => Promise<T>, patienceMs?: number) => Promise<T>
  /** The same for commands of callers, which get an OutcomeUnknownError when the reply is lost. */
  readonly withReceipts: Pick<Runner, 'command' | 'withKnownOutcome' | 'transactWithReceipt'>
}

/** The state of one verb: where its statements run, and the hint for its commit. */
export class Session implements VerbSession {
  readonly queries: Queries
  readonly lanes: Lanes
  /** Members of groups whose state this verb changes; `countMoves` writes them. */
  readonly groupMoves = new GroupMoves()
  readonly #parts: SessionParts
  /** The lanes were read again after a statement of this session had read their table. */
  isAgain = false
  /** The receipt of a statement that commits by itself for a caller (receipts.ts). */
  receipt: string | undefined
  #hint: Hint = EMPTY_HINT

  constructor(parts: SessionParts) {
    this.#parts = parts
    this.queries = parts.queries
    this.lanes = parts.lanes
  }

  query<R extends object = Record<string, unknown>>(text: string, ...values: readonly (string | null)[]): Promise<R[]> {
    return this.#parts.db.query<R>(text, values)
  }

  /** The row of a statement that always returns one. */
  async one<R extends object>(text: string, ...values: readonly (string | null)[]): Promise<R> {
    const [row] = await this.query<R>(text, ...values)
    if (row === undefined) throw new Error(`a statement that returns one row returned none: ${text}`)
    return row
  }

  /**
   * The JSON parameter of a statement: its values, the verb's own time or the test's clock, and the sender of
   * notifications.
   */
  given(values: Readonly<Record<string, unknown>>, now: number | undefined = this.#parts.now?.()): string {
    return JSON.stringify({ ...values, now, from: this.#parts.from })
  }

  /** The test's clock, for a statement that falls back to the server's. */
  get nowText(): string | null {
    const now = this.#parts.now?.()
    return now === undefined ? null : String(now)
  }

  async now(): Promise<number> {
    const now = this.#parts.now?.()
    if (now !== undefined) return now
    return Number((await this.one<{ now: unknown }>(this.queries.now)).now)
  }

  /** A statement of a shared verb (store/verbs/). */
  rows<Row extends object>(statement: SharedStatement, ...values: readonly Value[]): Promise<Row[]> {
    return this.query<Row>(this.queries[statement], ...values.map(toText))
  }

  run(statement: SharedStatement, ...values: readonly Value[]): Promise<unknown> {
    return this.rows(statement, ...values)
  }

  get givenNow(): number | null {
    return this.#parts.now?.() ?? null
  }

  list(numbers: readonly number[]): string {
    return arrayOf(numbers)
  }

  storable(text: string | null): string | null {
    return clean(text)
  }

  note(hint: Partial<Hint>): void {
    this.#hint = mergeHints(this.#hint, hint)
  }

  /** The mergePayloads hint, or undefined if none was noted. */
  get hint(): Hint | undefined {
    return this.#hint === EMPTY_HINT ? undefined : this.#hint
  }

  /** The notification for other processes. */
  payload(hint: Hint): string {
    return hintPayload(this.#parts.from, hint)
  }
}

export function hintPayload(from: string, hint: Hint): string {
  const words = [
    from,
    hint.ready ? 'ready' : '',
    hint.dueInMs === null ? '' : 'due',
    hint.settled ? 'settled' : '',
    hint.requested ? 'requested' : '',
  ]
  return words.filter((word) => word !== '').join(' ')
}

/** Merges two payloads of the same sender. */
export function mergePayloads(before: string, payload: string): string {
  return [...new Set([...before.split(' '), ...payload.split(' ')])].join(' ')
}

/**
 * The hint that a notification carries; undefined for one of this process. For a job that is due later the payload has
 * no time, so the receiver has to read it.
 */
export function hintOf(payload: string, self: string): Hint | undefined {
  const [from, ...words] = payload.split(' ')
  if (from === self) return undefined
  return {
    ready: words.includes('ready'),
    dueInMs: words.includes('due') ? 0 : null,
    settled: words.includes('settled'),
    requested: words.includes('requested'),
  }
}

/** A list of numbers as a PostgreSQL array literal. */
export function arrayOf(numbers: readonly (number | null)[]): string {
  return `{${numbers.map((number) => (number === null ? 'null' : number)).join(',')}}`
}

export function textOf(value: number | null): string | null {
  return value === null ? null : String(value)
}

/** A duration; null for an unlimited one. */
export function finite(ms: number): number | null {
  return Number.isFinite(ms) ? ms : null
}

/** PostgreSQL's texts hold no NUL and no lone surrogate. Errors and logs are JSON, where both are escaped. */
export function clean(text: string | null): string | null {
  return text === null ? null : text.replaceAll(UNWRITABLE, '\ufffd')
}

const UNWRITABLE = /\u0000|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g

function toText(value: Value): string | null {
  return value === null ? null : String(value)
}
