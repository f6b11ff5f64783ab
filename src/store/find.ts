import type { State } from '../job/rules/states.js'
import type { JobRow } from './store.js'

/** A filter over jobs, read one page at a time. */
export interface FindQuery {
  readonly names?: readonly string[] | undefined
  readonly queues?: readonly string[] | undefined
  readonly states?: readonly State[] | undefined
  readonly label?: string | undefined
  readonly key?: string | undefined
  readonly group?: string | undefined
  /** The error group of the error that they have now. */
  readonly fingerprint?: string | undefined
  /** The id of one of their parents. */
  readonly parent?: string | undefined
  readonly createdAfter?: number | undefined
  readonly createdBefore?: number | undefined
  readonly order: 'newest' | 'oldest'
  readonly limit: number
  /** The cursor that the previous page returned. */
  readonly cursor: number | null
}

export interface FoundPage {
  readonly rows: readonly JobRow[]
  /** Null on the last page. */
  readonly cursor: number | null
}

/**
 * The number of matches on a page, up to the query's `limit`. A page that reaches the limit ends there, with no cursor.
 */
export interface CountedPage {
  readonly count: number
  readonly cursor: number | null
}

/**
 * How a page is found. Each filter that has an index lists candidates in the order of their numbers: a superset of the
 * matches, read from the cursor on and bounded in length. The query picks one list, reads its jobs in order and checks
 * each against the whole filter. So a page reads a bounded number of rows, however many jobs match and wherever they
 * are.
 */
export interface Candidates {
  readonly scanned: number
  /** The last candidate in page order; null when the list is empty. */
  readonly last: number | null
}

/**
 * Ready jobs are indexed by lane, not by number: up to this many are read and sorted; beyond it the query scans jobs in
 * order.
 */
export const READY_MAX = 10_000

/** A filter that matches more lanes than this is not scanned up lane by lane. */
export const LANES_MAX = 16

/**
 * Picks the sparsest list: the one whose window reaches farthest. A list that ends within its window comes first, the
 * shortest of those before the others. Every list is a superset of the matches, so any choice is correct, and each page
 * may choose another.
 */
export function farthest<C extends Candidates>(lists: readonly C[], order: FindQuery['order'], windowMax: number): C {
  const reach = ({ scanned, last }: C): number => {
    if (scanned < windowMax || last === null) return Infinity
    return order === 'newest' ? -last : last
  }
  const better = (one: C, other: C): C => {
    const [a, b] = [reach(one), reach(other)]
    if (a === b) return other.scanned < one.scanned ? other : one
    return b > a ? other : one
  }
  return lists.reduce(better)
}
