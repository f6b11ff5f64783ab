import type { AddressKind } from '../replay/address.js'
import type { ReactiveEvent } from '../drain/events.js'
import type { FaultCode } from '../fault.js'
import type { Entry } from '../replay/log.js'
import type { SpinNode } from '../spins/spin.js'

/** What `ctx.trace(fn)` reports, for tests and debugging. */
export type TraceRecord =
  /** The drain took an event from the queue. */
  | {
      readonly type: 'event'
      readonly event: ReactiveEvent['type']
      readonly addr: string
      readonly generation: number
    }
  /** A body started from its top. */
  | { readonly type: 'run'; readonly addr: string }
  /** A body requested an effect, of `target` where that has an address; the log answered it, or it was performed. */
  | {
      readonly type: 'ask'
      readonly addr: string
      readonly kind: AddressKind
      readonly target: string | undefined
      readonly from: 'log' | 'live'
    }

export type TraceListener = (record: TraceRecord) => void

/** Reports the error of a listener that throws. */
interface FaultHook {
  fault(code: FaultCode, site: string, error: unknown): void
}

export class Tracer {
  readonly #faultHook: FaultHook
  readonly listeners = new Set<TraceListener>()

  constructor(faultHook: FaultHook) {
    this.#faultHook = faultHook
  }

  eventProcessed(event: ReactiveEvent, generation: number): void {
    this.#report({ type: 'event', event: event.type, addr: subjectOf(event), generation })
  }

  runStarted(node: SpinNode): void {
    this.#report({ type: 'run', addr: node.addr })
  }

  effectRequested(entry: Entry): void {
    const from = entry.isAnswered ? 'log' : 'live'
    this.#report({ type: 'ask', addr: entry.addr, kind: entry.kind, target: addressIn(entry.target), from })
  }

  #report(record: TraceRecord): void {
    for (const listener of this.listeners) {
      try {
        listener(record)
      } catch (error) {
        this.#faultHook.fault('watcher-fault', 'trace', error)
      }
    }
  }
}

function subjectOf(event: ReactiveEvent): string {
  if (event.type === 'resume') return event.request.run?.node.addr ?? ''
  return event.type === 'restore-end' ? '' : (event.node?.addr ?? '')
}

function addressIn(target: unknown): string | undefined {
  const addr = (target as { addr?: unknown } | undefined)?.addr
  return typeof addr === 'string' ? addr : undefined
}
