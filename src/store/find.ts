import type { State } from '../job/states.js'
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
