import type { State } from '../job/rules/states.js'
import type { JobRow } from './store.js'

/** Which jobs are looked for, a page at a time. */
export interface FindQuery {
  readonly names?: readonly string[] | undefined
  readonly queues?: readonly string[] | undefined
  readonly states?: readonly State[] | undefined
  readonly label?: string | undefined
  readonly key?: string | undefined
  readonly group?: string | undefined
  readonly createdAfter?: number | undefined
  readonly createdBefore?: number | undefined
  readonly order: 'newest' | 'oldest'
  readonly limit: number
  /** Where the page before ended. */
  readonly cursor: number | null
}

export interface FoundPage {
  readonly rows: readonly JobRow[]
  /** Null when there is no more. */
  readonly cursor: number | null
}

/** How many jobs of a page match, up to the query's `limit`; a page that reached it ends there, with no cursor. */
export interface CountedPage {
  readonly count: number
  readonly cursor: number | null
}

/**
 * How a page is found. Each filter that has an index gives a list of candidates in the order of their numbers: a superset of what
 * matches, read from behind the cursor and no longer than a bound. One list is chosen, its jobs are read in order and checked
 * against the whole filter. So a page looks at a bounded number of rows, whatever matches and wherever it is.
 */
export interface Candidates {
  readonly looked: number
  /** The last one, in the order of the page; null when there is none. */
  readonly last: number | null
}

/** Ready jobs are listed by lane and not by number: up to so many are read and sorted, and beyond that jobs are walked. */
export const READY_MAX = 10_000

/** A filter of more lanes than this is not looked up lane by lane. */
export const LANES_MAX = 16

/**
 * The list whose window reaches farthest, so the sparsest: one that ends within its window comes first, the shortest of those.
 * Every list is a superset of the matches, so any choice is right, and each page may choose another.
 */
export function farthest<C extends Candidates>(lists: readonly C[], order: FindQuery['order'], windowMax: number): C {
  const reach = ({ looked, last }: C): number => {
    if (looked < windowMax || last === null) return Infinity
    return order === 'newest' ? -last : last
  }
  const better = (one: C, other: C): C => {
    const [a, b] = [reach(one), reach(other)]
    if (a === b) return other.looked < one.looked ? other : one
    return b > a ? other : one
  }
  return lists.reduce(better)
}
