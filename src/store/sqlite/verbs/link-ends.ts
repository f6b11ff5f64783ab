import type { State } from '../../../job/rules/states.js'
import type { Session } from '../connection/session.js'

/*
 * What an end owes to those that come after the job: a to-do in the same transaction, if there is anybody. It is worked off by
 * `promoteJobs` (links.ts), a bounded number of links at a time.
 */

/** These have ended, or were parked. Nearly always nobody waits for anybody, and then this is one look at an empty table. */
export function noteEnds(session: Session, ends: readonly { readonly id: string; readonly to: State }[]): void {
  if (ends.length === 0 || session.statement(session.queries.anyLink).get() === undefined) return
  noteAll(
    session,
    ends.map(({ id, to }) => [id, to]),
  )
}

export function noteAll(session: Session, ends: readonly (readonly [string, State])[]): void {
  const { changes } = session.statement(session.queries.noteEnds).run(JSON.stringify(ends))
  if (Number(changes) > 0) session.noteDue(0)
}

/** These are about to be forgotten. */
export function noteGone(session: Session, seqs: readonly number[]): void {
  if (session.statement(session.queries.anyLink).get() === undefined) return
  const { changes } = session.statement(session.queries.noteGone).run(JSON.stringify(seqs))
  if (Number(changes) > 0) session.noteDue(0)
}

/** A job that ended waits for nobody any more. */
export function dropLinks(session: Session, seq: number): void {
  session.statement(session.queries.dropLinks).run(seq)
}

export function isAnyTodo(session: Session): boolean {
  return session.statement(session.queries.anyTodo).get() !== undefined
}
