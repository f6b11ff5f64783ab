import { mergeHints, EMPTY_HINT } from '../../hint.js'
import type { Hint } from '../../store.js'
import { GroupMoves } from '../../rows/group-moves.js'
import type { SharedStatement } from '../../verbs/statements.js'
import type { Value, VerbSession } from '../../verbs/verb.js'
import type { RowStatement, SqliteStatement, SqliteValue, Statements } from './driver.js'
import { Lanes } from '../verbs/lanes.js'
import type { Queries } from '../queries/queries.js'

/** One connection and the state that the verbs share: statements, lanes, and the hint of the next commit. */
export class Session {
  readonly statements: Statements
  readonly queries: Queries
  readonly lanes: Lanes
  /** The position of the sweep through the unique slots; a new session starts at the beginning. */
  sweptTo: readonly [name: string, key: string] = ['', '']
  groupsSweptTo = ''
  /** When buckets of statistics that are read no longer were last deleted. */
  statsTrimmedAt = -Infinity
  /** Moves of group members in this transaction; `countMoves` writes them. */
  readonly groupMoves = new GroupMoves()
  /** The number of commands of this process that may take a held job from its worker. */
  takings = 0
  /** Whether this transaction has checked that the clock was not set back (`find-by-time.ts`). */
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

  /** Adds to the hint of this transaction. */
  note(hint: Partial<Hint>): void {
    this.#hint = mergeHints(this.#hint, hint)
  }

  /** The transaction was rolled back: drops the lanes it added and its hint. */
  forget(): void {
    this.lanes.forget()
    this.groupMoves.take()
    this.#hint = EMPTY_HINT
  }

  /** The hint since the last call, or undefined when nothing changed. */
  takeHint(): Hint | undefined {
    const hint = this.#hint
    this.#hint = EMPTY_HINT
    return hint === EMPTY_HINT ? undefined : hint
  }
}

/** The current transaction and its now, as shared verbs see them. */
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
