import type { FinalState, State } from './states.js'

/**
 * Jobs that come after others. A **link** stands between a parent and a child that waits for it; while one is open the child
 * is `blocked`. What becomes of a link when its parent ends, or goes, is decided here and nowhere else.
 */

/** What a child does when a parent fails for good or is cancelled. */
export type OnParentFailure = 'wait' | 'cancel' | 'run'
export const ON_PARENT_FAILURE: readonly OnParentFailure[] = ['wait', 'cancel', 'run']

/**
 * What a link says of that. `past` is for a tick that waits for the one before it: it runs however that one ends, and goes past one
 * that is parked, which waits for a person and perhaps for ever. What recurs must not hang on it.
 */
export type LinkPolicy = OnParentFailure | 'past'
export const LINK_POLICIES: readonly LinkPolicy[] = [...ON_PARENT_FAILURE, 'past']

/** How a parent stands as its children see it. `gone`: it did not succeed, and it is no longer there to be retried. */
export type ParentFate = 'unfinished' | 'parked' | FinalState | 'gone'

export type LinkVerdict = 'stays' | 'resolves' | 'cancels'

/** Why somebody is to look at those that come after a job: what became of it, or only that it got one. */
export type LinkTodoKind = FinalState | 'parked' | 'gone' | 'look'

/** What its end was when it was written down, and what it is now: it may have been retried or forgotten since. */
export function parentFateOf(state: State | undefined, noted: LinkTodoKind): ParentFate {
  if (state === 'done' || state === 'failed' || state === 'cancelled' || state === 'parked') return state
  if (state !== undefined) return 'unfinished'
  // Kept for no time at all: it is not there, and yet it is done.
  return noted === 'done' ? 'done' : 'gone'
}

/** A parent that waits to be retried can still succeed; one that is gone never will, and strands nobody. */
export function decideLink(fate: ParentFate, policy: LinkPolicy): LinkVerdict {
  if (fate === 'unfinished') return 'stays'
  if (fate === 'parked') return policy === 'past' ? 'resolves' : 'stays'
  if (fate === 'done' || policy === 'run' || policy === 'past') return 'resolves'
  return policy === 'cancel' || fate === 'gone' ? 'cancels' : 'stays'
}

/** The policies whose links are moved by such a parent; those of the others stay. */
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

/** A way from a node back to itself along `parentsOf`, beginning and ending with it; undefined when there is none. */
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

/** Depth first with a stack of its own: a chain may be as long as a flow is large. */
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
      const over = path.pop() as string
      left.pop()
      onPath.delete(over)
      cleared.add(over)
    } else if (onPath.has(next.value)) return [...path.slice(path.indexOf(next.value)), next.value]
    else if (!cleared.has(next.value)) {
      path.push(next.value)
      onPath.add(next.value)
      left.push(parentsOf(next.value)[Symbol.iterator]())
    }
  }
  return undefined
}
