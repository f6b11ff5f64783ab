import type { CommandOptions } from '../job/command-options.js'
import type { EnqueueOptions, Handle } from '../job/enqueue.js'
import type { RedactRule } from '../job/secrets/redact.js'
import type { Log } from '../world/log.js'
import type { Registry } from '../job/definition/registry.js'
import type { Store } from '../store/store.js'
import type { World } from '../world/world.js'

/** How `millrace/testing`, the dashboard and the command line reach the parts of a mill; no public name. */
export const INTERNALS = Symbol('millrace.internals')

export interface MillInternals {
  readonly store: Store
  readonly registry: Registry
  readonly world: World
  readonly log: Log
  /** The option `redact`. */
  readonly redact: readonly RedactRule[]
  /** The mill has keys: jobs whose names are not registered may be encrypted. */
  readonly hasKeys: boolean
  /** Enqueues a job for a user, with its row of the audit trail in the same transaction. */
  readonly enqueueBy: (
    by: CommandOptions,
    name: string,
    payload: unknown,
    options: EnqueueOptions,
  ) => Promise<Handle<unknown>>
  /** How long a row of the audit trail is kept. */
  readonly auditKeepMs: () => number
  /** Calls back when the mill begins to close, and waits for it. Returns a function that takes that back. */
  readonly onClose: (closer: () => Promise<void> | void) => () => void
}

export function internalsOf(mill: object): MillInternals | undefined {
  return (mill as { readonly [INTERNALS]?: MillInternals })[INTERNALS]
}
