import type { FinalState, State } from './states.js'

/**
 * A **link** connects a parent with a child that waits for it. While a child has an open link, it is `blocked`. This file alone
 * decides what happens to a link when its parent ends or is deleted.
 */

/** What happens to a child when a parent fails for good or is cancelled. */
export type OnParentFailure = 'wait' | 'cancel' | 'run'
export const ON_PARENT_FAILURE: readonly OnParentFailure[] = ['wait', 'cancel', 'run']

/**
 * The policy of a link. `run-if-parked` is for a tick of a schedule that waits for the previous one: the child runs however the parent ends,
 * and also when it is parked. A parked job may stay parked for ever, and must not block its schedule.
 */
export type LinkPolicy = OnParentFailure | 'run-if-parked'
export const LINK_POLICIES: readonly LinkPolicy[] = [...ON_PARENT_FAILURE, 'run-if-parked']

/** The state of a parent as its children see it. `gone`: it did not succeed, and its row was deleted or pruned, so it cannot be retried. */
export type ParentFate = 'unfinished' | 'parked' | FinalState | 'gone'

export type LinkVerdict = 'stays' | 'resolves' | 'cancels'

/** Why the links of a parent must be processed: the state it reached, or 'recheck' when a link to it was added. */
export type LinkTodoKind = FinalState | 'parked' | 'gone' | 'recheck'

/** The parent's fate by its present state. It may have been retried or pruned since `noted` was written. */
export function parentFateOf(state: State | undefined, noted: LinkTodoKind): ParentFate {
  if (state === 'done' || state === 'failed' || state === 'cancelled' || state === 'parked') return state
  if (state !== undefined) return 'unfinished'
  // A done job with `keep: 'none'` has no row, but it succeeded.
  return noted === 'done' ? 'done' : 'gone'
}

/** A failed parent can be retried and still succeed, so its child may wait. A parent that is gone cannot, so its child is cancelled. */
export function decideLink(fate: ParentFate, policy: LinkPolicy): LinkVerdict {
  if (fate === 'unfinished') return 'stays'
  if (fate === 'parked') return policy === 'run-if-parked' ? 'resolves' : 'stays'
  if (fate === 'done' || policy === 'run' || policy === 'run-if-parked') return 'resolves'
  return policy === 'cancel' || fate === 'gone' ? 'cancels' : 'stays'
}

/** The policies whose links such a parent resolves or cancels. */
export function policiesMovedBy(fate: ParentFate): readonly LinkPolicy[] {
  return LINK_POLICIES.filter((policy) => decideLink(fate, policy) !== 'stays')
}

/** Why a child was cancelled. */
export function parentReason(
  fate: ParentFate,
  parent: { readonly id: string | null; readonly name?: string | null },
): string {
  const named = [parent.name, parent.id].filter((part) => part !== null && part !== undefined).join(' ')
  const ended =
    fate === 'failed' ? 'failed' : fate === 'cancelled' ? 'was cancelled' : 'is gone: it was deleted or pruned'
  return `its parent ${named} ${ended}`
}

/** A cycle along `parentsOf`, as a path that begins and ends with the same node; undefined when there is none. */
export function findCycle(
  nodes: readonly string[],
  parentsOf: (node: string) => readonly string[],
): string[] | undefined {
  const cleared = new Set<string>()
  for (const start of nodes) {
    const path = cleared.has(start) ? undefined : walk(start, parentsOf, cleared)
    if (path !== undefined) return path
  }
  return undefined
}

/** Depth first with an explicit stack: a chain may have as many nodes as the flow, too many for recursion. */
function walk(
  start: string,
  parentsOf: (node: string) => readonly string[],
  cleared: Set<string>,
): string[] | undefined {
  const path = [start]
  const onPath = new Set(path)
  const left = [parentsOf(start)[Symbol.iterator]()]
  while (path.length > 0) {
    const next = (left.at(-1) as Iterator<string>).next()
    if (next.done === true) {
      const finished = path.pop() as string
      left.pop()
      onPath.delete(finished)
      cleared.add(finished)
    } else if (onPath.has(next.value)) return [...path.slice(path.indexOf(next.value)), next.value]
    else if (!cleared.has(next.value)) {
      path.push(next.value)
      onPath.add(next.value)
      left.push(parentsOf(next.value)[Symbol.iterator]())
    }
  }
  return undefined
}
