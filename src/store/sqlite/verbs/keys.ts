import type { State } from '../../../job/rules/states.js'
import type { Session } from '../connection/session.js'

/*
 * Who holds a key. A key has one row while one unfinished job holds it, and two while a job that runs has a successor: the
 * successor's turn is one higher, and it is blocked until the other ends. A row is written and removed with its own job, so
 * the key falls to the successor when the other ends, and back to the other when the successor is removed.
 */

/** An unfinished job that another meets. */
export interface InTheWay {
  readonly seq: number
  readonly id: string
  readonly key: string | null
  readonly options: string | null
  readonly grp: string | null
  readonly state: State
  readonly fence: number | null
}

export interface KeyHolder extends InTheWay {
  readonly turn: number
}

interface Keyed {
  readonly name: string
  readonly key: string | null
}

/** The newest unfinished job of a key; with `below`: the one before that turn. */
export function keyHolder(
  session: Session,
  { name, key }: Keyed,
  below = Number.MAX_SAFE_INTEGER,
): KeyHolder | undefined {
  if (key === null) return undefined
  return session.statement(session.queries.keyHolder).get(name, key, below) as KeyHolder | undefined
}

/** `follows`: the unfinished job of the same key that this one comes after. */
export function takeKey(session: Session, { name, key }: Keyed, seq: number, follows?: KeyHolder): void {
  if (key !== null)
    session.statement(session.queries.takeKey).run(name, key, follows === undefined ? 0 : follows.turn + 1, seq)
}
