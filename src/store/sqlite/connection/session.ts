import { mergeHints, EMPTY_HINT } from '../../hint.js'
import type { Hint } from '../../store.js'
import { GroupMoves } from '../../group-moves.js'
import type { SharedStatement } from '../../verbs/statements.js'
import type { Value, VerbSession } from '../../verbs/verb.js'
import type { RowStatement, SqliteStatement, SqliteValue, Statements } from './driver.js'
import { Lanes } from '../verbs/lanes.js'
import type { Queries } from '../queries/queries.js'

/** One connection with what the verbs share: statements, lanes, and what the next commit will have changed. */
export class Session {
  readonly statements: Statements
  readonly queries: Queries
  readonly lanes: Lanes
  /** How far the sweep of the unique slots has come; a new session begins at the start. */
  sweptTo: readonly [name: string, key: string] = ['', '']
  groupsSweptTo = ''
  /** Members of groups that this transaction moves; `countMoves` writes it down. */
  readonly groupMoves = new GroupMoves()
  /** Commands of this process that may take a held job from its worker, counted. */
  takings = 0
  /** Whether this transaction has checked that the clock was not set back (`clock-steps.ts`). */
  isInOrder = false
  #hint: Hint = EMPTY_HINT

  constructor(statements: Statements, queries: Queries) {
    this.statements = statements
    this.queries = queries
    this.lanes = new Lanes(this.statements, queries)
  }

  statement(sql: string): SqliteStatement {
    return this.statements.of(sql)
  }
  rows(sql: string): RowStatement {
    return this.statements.rowsOf(sql)
  }

  /** Notes what this transaction changes, for those who wait. */
  note(hint: Partial<Hint>): void {
    this.#hint = mergeHints(this.#hint, hint)
  }

  /** The transaction was rolled back: what it added and noted never was. */
  forget(): void {
    this.lanes.forget()
    this.groupMoves.take()
    this.#hint = EMPTY_HINT
  }

  /** Gives what was noted since the last call, or undefined when nothing was. */
  takeHint(): Hint | undefined {
    const hint = this.#hint
    this.#hint = EMPTY_HINT
    return hint === EMPTY_HINT ? undefined : hint
  }
}

/** The current transaction at its moment, as shared verbs see it. */
export class SessionAt implements VerbSession {
  readonly session: Session
  readonly givenNow: number

  constructor(session: Session, now: number) {
    this.session = session
    this.givenNow = now
  }

  get groupMoves(): GroupMoves {
    return this.session.groupMoves
  }

  now(): number {
    return this.givenNow
  }

  rows<Row extends object>(statement: SharedStatement, ...values: readonly Value[]): Row[] {
    return this.session.statement(this.session.queries[statement]).all(...values.map(toSqlite)) as Row[]
  }

  run(statement: SharedStatement, ...values: readonly Value[]): void {
    this.session.statement(this.session.queries[statement]).run(...values.map(toSqlite))
  }

  list(numbers: readonly number[]): string {
    return JSON.stringify(numbers)
  }

  storable(text: string | null): string | null {
    return text
  }

  note(hint: Partial<Hint>): void {
    this.session.note(hint)
  }
}

function toSqlite(value: Value): SqliteValue {
  return typeof value === 'boolean' ? Number(value) : value
}
