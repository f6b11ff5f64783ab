import { isFinal } from '../../../job/rules/states.js'
import type { State } from '../../../job/rules/states.js'
import type { FoundParent } from '../../links.js'
import { numberOf } from '../connection/executor.js'
import type { Session } from '../connection/session.js'
import { arrayOf } from '../connection/session.js'

/* The rows of links and of those they lead to, for all who write links. */

/** A parent, with its number. */
export interface StandingParent extends FoundParent {
  readonly ref: number
}

export interface ParentRow {
  readonly ref: unknown
  readonly id: string
  readonly name: string
  readonly key: string | null
  readonly state: State
}

export async function byId(s: Session, ids: readonly string[]): Promise<StandingParent[]> {
  if (ids.length === 0) return []
  return (await s.query<ParentRow>(s.queries.parentsById, JSON.stringify(ids))).map(toParent)
}

export function toParent({ ref, id, name, key, state }: ParentRow): StandingParent {
  return { ref: numberOf(ref), id, name, key, state }
}

interface Link {
  readonly parent: number
  readonly child: number
  readonly onFailure: string
  readonly keepMs: number | null
}

/** Links in one statement. */
const LINKS_PER_INSERT = 10_000

export async function addLinks(s: Session, links: readonly Link[]): Promise<void> {
  for (let from = 0; from < links.length; from += LINKS_PER_INSERT) {
    const some = links.slice(from, from + LINKS_PER_INSERT)
    await s.query(
      s.queries.addLinks,
      arrayOf(some.map((link) => link.parent)),
      arrayOf(some.map((link) => link.child)),
      JSON.stringify(some.map((link) => link.onFailure)),
      arrayOf(some.map((link) => link.keepMs)),
    )
  }
}

/** That their ends are told, or looked at if they were before this commits. */
export async function lookAt(s: Session, parents: readonly StandingParent[]): Promise<void> {
  if (parents.length === 0) return
  const todos = parents.map(({ ref, id, state }) => ({ parent: ref, id, what: isFinal(state) ? state : 'look' }))
  await s.query(s.queries.addTodos, JSON.stringify(todos))
  s.note({ dueInMs: 0 })
}
