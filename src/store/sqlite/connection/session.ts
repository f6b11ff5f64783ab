import { QUIET } from '../../hint.js'
import type { Hint } from '../../store.js'
import { GroupMoves } from '../../group-moves.js'
import type { RowStatement, SqliteStatement, Statements } from './driver.js'
import { Lanes } from '../verbs/lanes.js'
import type { Queries } from '../queries/queries.js'

/** One connection with what the verbs share: statements, lanes, and what the next commit will have changed. */
export class Session {
  readonly statements: Statements
  readonly queries: Queries
  readonly lanes: Lanes
  /** How far the walk through the places has come; a new session begins anew. */
  sweptTo: readonly [name: string, key: string] = ['', '']
  groupsSweptTo = ''
  /** Members of groups that this transaction moves; `countMoves` writes it down. */
  readonly tally = new GroupMoves()
  /** Whether this transaction has checked that the clock was not set back (`clock-steps.ts`). */
  isInOrder = false
  #hint: Hint = QUIET

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
  noteReady(): void {
    this.#hint = { ...this.#hint, ready: true }
  }
  noteDue(inMs: number): void {
    const dueInMs = this.#hint.dueInMs === null ? inMs : Math.min(this.#hint.dueInMs, inMs)
    this.#hint = { ...this.#hint, dueInMs }
  }
  noteSettled(): void {
    this.#hint = { ...this.#hint, settled: true }
  }
  noteAsked(): void {
    this.#hint = { ...this.#hint, requested: true }
  }

  /** The transaction was rolled back: what it added and noted never was. */
  forget(): void {
    this.lanes.forget()
    this.tally.take()
    this.#hint = QUIET
  }

  /** Gives what was noted since the last call, or undefined when nothing was. */
  takeHint(): Hint | undefined {
    const hint = this.#hint
    this.#hint = QUIET
    return hint === QUIET ? undefined : hint
  }
}
