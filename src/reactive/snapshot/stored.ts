import type { AddressKind } from '../replay/address.js'
import type { Result } from '../result.js'

/** The state of a context as plain data: what a snapshot holds. Nodes are named by their addresses. */
export interface StoredContext {
  readonly format: typeof FORMAT
  readonly version: typeof VERSION
  readonly clock: 'real' | 'virtual'
  /** The time of a virtual clock; 0 for real time, which goes on while the context is stored. */
  readonly now: number
  readonly stamp: number
  readonly generation: number
  readonly cells: Readonly<Record<string, StoredCell>>
  /** Events that were queued. Runs that were about to begin or to continue are in the state of their spins. */
  readonly queue: readonly StoredEvent[]
  /** Sleeping spins, in the order in which their timers were armed. */
  readonly timers: readonly StoredTimer[]
}

export const FORMAT = 'millrace-snapshot'
export const VERSION = 1

export type StoredCell = StoredSignal | StoredDeferred | StoredMailbox | StoredSpin

export interface StoredSignal {
  readonly kind: 'signal'
  readonly value: unknown
  readonly old: unknown
  readonly changes: number
  readonly stamp: number
  /** The spins that observe it, in the order in which a change reaches them; left out for fewer than two. */
  readonly observers?: readonly string[]
}

export interface StoredDeferred {
  readonly kind: 'deferred'
  readonly result?: Result<unknown>
}

export interface StoredMailbox {
  readonly kind: 'mailbox'
  readonly messages: readonly { readonly order: number; readonly body: unknown }[]
  readonly lastOrder: number
  /** The spins that wait for a message, in waiting order. */
  readonly takers: readonly string[]
}

export interface StoredSpin {
  readonly kind: 'spin'
  readonly stamp: number
  readonly result?: Result<unknown>
  /** The result cannot be stored, because it can be used up; the replay makes it again. */
  readonly isResultMade?: true
  readonly log: readonly StoredEntry[]
  readonly isSpawned?: true
  /** A run is in progress or about to begin. */
  readonly isRunning?: true
  /** It was cancelled: it has a result and nothing to replay. */
  readonly isCancelled?: true
  readonly observers?: readonly string[]
}

export interface StoredEntry {
  readonly kind: AddressKind
  readonly key: string
  readonly path: string
  readonly n: number
  readonly target?: string
  readonly isError?: true
  readonly value: unknown
  /** The stamp of what was read. */
  readonly stamp?: number
  /** The order of a message in its mailbox. */
  readonly order?: number
}

export type StoredEvent =
  | { readonly type: 'signal-change'; readonly addr: string }
  | { readonly type: 'deferred-delivery'; readonly addr: string; readonly result: Result<unknown> }
  | { readonly type: 'mailbox-post'; readonly addr: string; readonly message: unknown }

export interface StoredTimer {
  readonly spin: string
  /** The address of the sleep. */
  readonly addr: string
  readonly remainingMs: number
}
