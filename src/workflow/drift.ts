import type { StepRow } from '../store/workflows.js'
import type { Operation } from './operation.js'

/** The addresses that each side of a difference lists at most. */
const SHOWN_MAX = 20

export interface Difference {
  /** Recorded and not called: answered ones by their number, then open ones. */
  readonly recorded: readonly string[]
  /** Pending and not recorded. */
  readonly called: readonly string[]
}

/** How the code differs from the log. */
export function difference(
  answered: readonly StepRow[],
  open: Iterable<StepRow>,
  pending: ReadonlyMap<string, Operation>,
): Difference {
  const uncalled = [...answered, ...open].filter(({ address }) => !pending.has(address) && !address.startsWith('!'))
  const known = new Set(answered.map(({ address }) => address))
  const called = [...pending.values()].filter(({ address, openAs }) => !known.has(address) && openAs === undefined)
  return {
    recorded: uncalled.slice(0, SHOWN_MAX).map(({ address }) => address),
    called: called.slice(0, SHOWN_MAX).map(({ address }) => address),
  }
}

/** The difference as a sentence. */
export function describeDrift({ recorded, called }: Difference): string {
  const calls = called.length === 0 ? 'nothing that is not recorded' : called.join(', ')
  const missing = recorded.length === 0 ? 'a recorded cancel' : recorded.join(', ')
  return `the code no longer calls ${missing}; it calls ${calls}. Deploy code that fits, or guard the change with w.version(), then retry it`
}
