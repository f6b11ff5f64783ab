import { writeLine } from './host.js'

/** The kind of fault; the names are stable. */
export type FaultCode =
  | 'event-error'
  | 'continuation-fault'
  | 'executor-task-fault'
  | 'unknown-event'
  | 'divergence'
  | 'context-abandoned'
  | 'watcher-fault'
  | 'run-in-body'
  | 'log-overflow'

/** An error that no caller can receive. */
export interface Fault {
  readonly code: FaultCode
  /** The effect, hook or event of the engine in which it occurred. */
  readonly site: string
  /** The address of the spin or cell it belongs to. */
  readonly addr?: string
  /** The value that was thrown; it need not be an Error. */
  readonly error: unknown
}

/** The default fault hook: writes one line to stderr. */
export function reportFault({ code, site, addr, error }: Fault): void {
  const where = addr === undefined ? site : `${site} of ${addr}`
  writeLine(`millrace/reactive: ${code} in ${where}: ${textOf(error)}`)
}

function textOf(error: unknown): string {
  if (error instanceof Error) return `${error.name}: ${error.message}`
  try {
    return String(error)
  } catch {
    return 'a value that cannot be written' // Its own toString threw.
  }
}
