import { writeLine } from './host.js'

/** What kind of fault it was; stable names. */
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

/** Something went wrong that no caller could be told of. */
export interface Fault {
  readonly code: FaultCode
  /** Where in the engine: the effect, hook or event it came from. */
  readonly site: string
  /** The address of the spin or cell it belongs to. */
  readonly addr?: string
  /** What was thrown, whatever it was. */
  readonly error: unknown
}

/** The default hook: one line where a developer will see it. */
export function reportFault({ code, site, addr, error }: Fault): void {
  const where = addr === undefined ? site : `${site} of ${addr}`
  writeLine(`millrace/reactive: ${code} in ${where}: ${textOf(error)}`)
}

function textOf(error: unknown): string {
  if (error instanceof Error) return `${error.name}: ${error.message}`
  try {
    return String(error)
  } catch {
    return 'a value that cannot be written' // Its own toString threw; there is nothing better to say.
  }
}
