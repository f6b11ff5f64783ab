import type { GroupMoves } from '../rows/group-moves.js'
import type { Hint, NewJob } from '../store.js'
import type { JobSteps } from './job-steps.js'
import type { SharedStatement } from './statements.js'

/*
 * A cold verb is written once for both stores, as a generator over the statements of the store it runs on. SQLite
 * returns the result of a statement at once; PostgreSQL returns a promise, which the verb yields and whose value it
 * receives. So the same control flow runs within one synchronous transaction on SQLite, where nothing may be awaited,
 * and over a connection on PostgreSQL. Claim, plain insert and settle are written for each store, for speed. See
 * docs/decisions/cold-verbs.md.
 */

/** The result of a statement or of a store's step. */
export type Answer<T> = T | Promise<T>

export type Verb<T> = Generator<Promise<unknown>, T, unknown>

/** The `await` of a shared verb: `const rows = yield* awaited(db.rows(…))`. */
export function* awaited<T>(answer: Answer<T>): Verb<T> {
  return (answer instanceof Promise ? yield answer : answer) as T
}

/** Runs a verb on SQLite, where every step returns at once. */
export function runVerb<T>(verb: Verb<T>): T {
  const step = verb.next()
  if (step.done !== true) throw new Error('a verb on SQLite must not wait for a promise')
  return step.value
}

/** Runs a verb on PostgreSQL. A failed statement throws inside the verb, which can catch it. */
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

/** A parameter of a statement; each store binds it in its own way. */
export type Value = string | number | boolean | null

/** The transaction that a shared verb runs in. */
export interface VerbSession {
  /** Moves of group members in this transaction. */
  readonly groupMoves: GroupMoves
  /** The store's now; on PostgreSQL a round trip. */
  now(): Answer<number>
  /** The store's now as a parameter of a statement: null where the statement reads the database's clock. */
  readonly givenNow: number | null
  /** Runs a statement that returns rows: a select, or a write with `returning`. */
  rows<Row extends object>(statement: SharedStatement, ...values: readonly Value[]): Answer<Row[]>
  /** Runs a write and ignores its rows. */
  run(statement: SharedStatement, ...values: readonly Value[]): Answer<unknown>
  /** A list of numbers as one parameter of a statement. */
  list(numbers: readonly number[]): string
  /** The text without the characters that the store cannot keep. */
  storable(text: string | null): string | null
  /** Adds to the hint that the commit will publish. */
  note(hint: Partial<Hint>): void
}

/** How a store runs shared verbs. */
export interface VerbRunner {
  read<T>(verb: (session: VerbSession & JobSteps) => Verb<T>): Promise<T>
  /** All or nothing. The result must be serializable as JSON. */
  write<T>(verb: (session: VerbSession & JobSteps) => Verb<T>, written?: WrittenJobs): Promise<T>
}

/** The jobs that a verb may write: new ones, or those with these ids. */
export type WrittenJobs = { readonly jobs: readonly NewJob[] } | { readonly ids: readonly string[] }
