import { mergeHints, EMPTY_HINT } from '../../hint.js'
import type { Hint } from '../../store.js'
import { GroupMoves } from '../../group-moves.js'
import type { SharedStatement } from '../../verbs/statements.js'
import type { Value, VerbSession } from '../../verbs/verb.js'
import type { Executor } from './executor.js'
import type { JobSession } from '../verbs/job-session.js'
import type { Lanes } from '../verbs/lanes.js'
import type { Queries } from '../queries/queries.js'
import type { Runner } from './runner.js'

/** As a notification: nothing was heard for a while, so anything may have happened. */
export const MISSED = 'nobody ready due settled asked'

/** In a notification: the sender waits for a connection, so close those that are idle. */
export const CROWDED = 'crowded'

export function isCrowded(news: string, self: string): boolean {
  const [from, ...words] = news.split(' ')
  return from !== self && words.includes(CROWDED)
}

export interface SessionParts {
  readonly db: Executor
  readonly queries: Queries
  readonly lanes: Lanes
  /** The database's clock as a test sets it; undefined: its own. */
  readonly now: (() => number) | undefined
  /** Who we are, so that we know our own notifications. */
  readonly from: string
}

/** How a verb gets a session. */
export interface VerbParts {
  readonly lanes: Lanes
  /** Statements that each commit by themselves. */
  readonly plain: <T>(work: (session: JobSession) => Promise<T>) => Promise<T>
  /** All or nothing; what others have locked is waited for as long as that. */
  readonly transact: <T>(work: (session: JobSession) => Promise<T>, patienceMs?: number) => Promise<T>
  /** The same for commands of callers, who get an OutcomeUnknownError when the reply is lost. */
  readonly kept: Pick<Runner, 'command' | 'known' | 'transactKept'>
}

/** One verb at work: where its statements run, and what its commit will have changed. */
export class Session implements VerbSession {
  readonly queries: Queries
  readonly lanes: Lanes
  /** Members of groups that this verb moves; `countMoves` writes it down. */
  readonly groupMoves = new GroupMoves()
  readonly #parts: SessionParts
  /** The lanes were read after a statement in here had looked at their table. */
  isAgain = false
  /** Of a statement that commits by itself for a caller (receipts.ts). */
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

  /** What a statement of one JSON text is given: with the verb's own moment or the test's clock, and who tells. */
  given(values: Readonly<Record<string, unknown>>, now: number | undefined = this.#parts.now?.()): string {
    return JSON.stringify({ ...values, now, from: this.#parts.from })
  }

  /** The test's clock for a statement that falls back to the database's own. */
  get nowText(): string | null {
    const now = this.#parts.now?.()
    return now === undefined ? null : String(now)
  }

  async now(): Promise<number> {
    const now = this.#parts.now?.()
    if (now !== undefined) return now
    const [row] = await this.query<{ now: unknown }>(this.queries.now)
    return Number(row?.now)
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

  /** What was noted, or undefined when nothing was. */
  get hint(): Hint | undefined {
    return this.#hint === EMPTY_HINT ? undefined : this.#hint
  }

  /** The notification for other processes. */
  news(hint: Hint): string {
    return newsOf(this.#parts.from, hint)
  }
}

export function newsOf(from: string, hint: Hint): string {
  const words = [
    from,
    hint.ready ? 'ready' : '',
    hint.dueInMs === null ? '' : 'due',
    hint.settled ? 'settled' : '',
    hint.requested ? 'asked' : '',
  ]
  return words.filter((word) => word !== '').join(' ')
}

/** Two pieces of news from the same sender as one. */
export function merged(before: string, news: string): string {
  return [...new Set([...before.split(' '), ...news.split(' ')])].join(' ')
}

/** What a notification means; undefined when it is our own. When a job is due, the listener has to look. */
export function hintOf(news: string, self: string): Hint | undefined {
  const [from, ...words] = news.split(' ')
  if (from === self) return undefined
  return {
    ready: words.includes('ready'),
    dueInMs: words.includes('due') ? 0 : null,
    settled: words.includes('settled'),
    requested: words.includes('asked'),
  }
}

/** A list of numbers as PostgreSQL writes an array. */
export function arrayOf(numbers: readonly (number | null)[]): string {
  return `{${numbers.map((number) => (number === null ? 'null' : number)).join(',')}}`
}

export function textOf(value: number | null): string | null {
  return value === null ? null : String(value)
}

/** A length of time that may be for ever. */
export function finite(ms: number): number | null {
  return Number.isFinite(ms) ? ms : null
}

/** PostgreSQL's texts hold no NUL and no half of a pair. Errors and logs are JSON and have neither. */
export function clean(text: string | null): string | null {
  return text === null ? null : text.replaceAll(UNWRITABLE, '\ufffd')
}

const UNWRITABLE = /\u0000|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g

function toText(value: Value): string | null {
  return value === null ? null : String(value)
}
