import type { Kind } from '../replay/address.js'
import type { ReactiveEvent } from '../drain/events.js'
import type { FaultCode } from '../fault.js'
import type { Entry } from '../replay/log.js'
import type { SpinNode } from '../spins/spin.js'

/** What `ctx.trace(fn)` reports, for tests and debugging. */
export type TraceRecord =
  /** An event was taken from the queue. */
  | {
      readonly type: 'event'
      readonly event: ReactiveEvent['type']
      readonly addr: string
      readonly generation: number
    }
  /** A body was started from its top. */
  | { readonly type: 'run'; readonly addr: string }
  /** A body asked for something, of `target` where it has an address, and was answered from the log or goes live. */
  | {
      readonly type: 'ask'
      readonly addr: string
      readonly kind: Kind
      readonly target: string | undefined
      readonly from: 'log' | 'live'
    }

export type TraceListener = (record: TraceRecord) => void

/** Who hears of a listener that throws. */
interface FaultHook {
  fault(code: FaultCode, site: string, error: unknown): void
}

export class Tracer {
  readonly #home: FaultHook
  readonly listeners = new Set<TraceListener>()

  constructor(home: FaultHook) {
    this.#home = home
  }

  processed(event: ReactiveEvent, generation: number): void {
    this.#tell({ type: 'event', event: event.type, addr: subjectOf(event), generation })
  }

  ran(node: SpinNode): void {
    this.#tell({ type: 'run', addr: node.addr })
  }

  asked(entry: Entry): void {
    const from = entry.isAnswered ? 'log' : 'live'
    this.#tell({ type: 'ask', addr: entry.addr, kind: entry.kind, target: addressIn(entry.target), from })
  }

  #tell(record: TraceRecord): void {
    for (const listener of this.listeners) {
      try {
        listener(record)
      } catch (error) {
        this.#home.fault('watcher-fault', 'trace', error)
      }
    }
  }
}

function subjectOf(event: ReactiveEvent): string {
  if (event.type === 'resume') return event.request.run?.node.addr ?? ''
  return event.node?.addr ?? ''
}

function addressIn(target: unknown): string | undefined {
  const addr = (target as { addr?: unknown } | undefined)?.addr
  return typeof addr === 'string' ? addr : undefined
}
