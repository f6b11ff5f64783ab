import type { InboxRow } from '../store/workflows.js'
import type { Operation } from './operation.js'

/** The next operation that can be answered without an act, and what answers it. */
export interface Found {
  readonly operation: Operation
  /** By the store's clock: when the event was sent, the called job ended, or the time was over. */
  readonly instant: number
  /** Undefined: its time is over. */
  readonly by: InboxRow | undefined
}

/**
 * Of several operations that could be answered, the one of the earliest instant by the store's clock, then the earliest call:
 * a late worker decides as a punctual one.
 */
export function nextFound(waiting: Iterable<Operation>, inbox: readonly InboxRow[], now: number): Found | undefined {
  let best: Found | undefined
  for (const operation of waiting) {
    const found = operation.state === 'waiting' ? foundFor(operation, inbox, now) : undefined
    if (found !== undefined && (best === undefined || isBefore(found, best))) best = found
  }
  return best
}

function isBefore(a: Found, b: Found): boolean {
  return a.instant < b.instant || (a.instant === b.instant && a.operation.order < b.operation.order)
}

function foundFor(operation: Operation, inbox: readonly InboxRow[], now: number): Found | undefined {
  const { deed, until, child } = operation
  if (deed.kind === 'call') {
    const end = inbox.find(({ kind, name }) => kind === 'call' && name === child?.id)
    return end === undefined ? undefined : { operation, instant: end.sentAt, by: end }
  }
  if (deed.kind === 'wait') {
    const event = inbox.find(({ kind, name }) => kind === 'event' && name === deed.event.name)
    // An event that was sent by the instant of the timeout wins, however late the worker is.
    if (event !== undefined && (until === null || event.sentAt <= until))
      return { operation, instant: event.sentAt, by: event }
  }
  return until !== null && until <= now ? { operation, instant: until, by: undefined } : undefined
}

/** What an event or the end of a job must have to wake the workflow. */
export function waitsOf(operations: Iterable<Operation>): string[] {
  const waits = new Set<string>()
  for (const { state, deed, child } of operations) {
    if (state !== 'waiting') continue
    if (deed.kind === 'wait') waits.add(`event:${deed.event.name}`)
    if (deed.kind === 'call' && child !== undefined) waits.add(`call:${child.id}`)
  }
  return [...waits]
}

/** The earliest time, after this one, at which an operation can go on; null when none waits for such a time. */
export function earliest(operations: Iterable<Operation>, after = -Infinity): number | null {
  let at: number | null = null
  for (const { until, state } of operations)
    if (until !== null && until > after && (state === 'waiting' || state === 'retrying') && (at === null || until < at))
      at = until
  return at
}
