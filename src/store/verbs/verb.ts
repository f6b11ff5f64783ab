import type { GroupMoves } from '../group-moves.js'
import type { Hint, NewJob } from '../store.js'
import type { JobSteps } from './job-steps.js'
import type { SharedStatement } from './statements.js'

/*
 * A cold verb is written once for both stores, as a generator over the statements of the store it runs on. SQLite has the
 * answer of a statement at once; PostgreSQL has it by a promise, which the verb yields and whose value it gets back. So the
 * same control flow runs within one synchronous transaction on SQLite, where nothing may be awaited, and over a connection on
 * PostgreSQL. Claim, plain insert and settle are written for each store, for speed. See docs/decisions/cold-verbs.md.
 */

/** What a statement or a step of a store gives. */
export type Answer<T> = T | Promise<T>

export type Verb<T> = Generator<Promise<unknown>, T, unknown>

/** The `await` of a shared verb: `const rows = yield* awaited(db.rows(…))`. */
export function* awaited<T>(answer: Answer<T>): Verb<T> {
  return (answer instanceof Promise ? yield answer : answer) as T
}

/** Runs a verb on SQLite, whose steps all answer at once. */
export function runVerb<T>(verb: Verb<T>): T {
  const step = verb.next()
  if (step.done !== true) throw new Error('a verb on SQLite must not wait for a promise')
  return step.value
}

/** Runs a verb on PostgreSQL. A statement that fails throws inside the verb, where it can be caught. */
export async function awaitVerb<T>(verb: Verb<T>): Promise<T> {
  let step = verb.next()
  while (step.done !== true) {
    let value: unknown
    try {
      value = await step.value
    } catch (error) {
      step = verb.throw(error)
      continue
    }
    step = verb.next(value)
  }
  return step.value
}

/** A value of a statement; each store binds it in its own way. */
export type Value = string | number | boolean | null

/** The transaction that a shared verb runs in. */
export interface VerbSession {
  /** Members of groups that this transaction moves. */
  readonly groupMoves: GroupMoves
  /** The store's now; on PostgreSQL a round trip. */
  now(): Answer<number>
  /** The same as a value of a statement: null where the statement reads the database's own clock. */
  readonly givenNow: number | null
  /** A statement that gives rows: a select, or a write with `returning`. */
  rows<Row extends object>(statement: SharedStatement, ...values: readonly Value[]): Answer<Row[]>
  /** A write whose rows are not looked at. */
  run(statement: SharedStatement, ...values: readonly Value[]): Answer<unknown>
  /** A list of numbers, as one value of a statement. */
  list(numbers: readonly number[]): string
  /** A text as the store can keep it. */
  storable(text: string | null): string | null
  /** What the commit will have changed, for those who wait for it. */
  note(hint: Partial<Hint>): void
}

/** How a store runs shared verbs. */
export interface VerbRunner {
  read<T>(verb: (session: VerbSession & JobSteps) => Verb<T>): Promise<T>
  /** All or nothing; the result can be written as JSON. */
  write<T>(verb: (session: VerbSession & JobSteps) => Verb<T>, written?: WrittenJobs): Promise<T>
}

/** The jobs that a verb may write: new ones, or those of these ids. */
export type WrittenJobs = { readonly jobs: readonly NewJob[] } | { readonly ids: readonly string[] }
