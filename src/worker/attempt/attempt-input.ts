import type { Handler } from '../../job/definition/define.js'
import type { InFlightParts } from '../in-flight/in-flight-parts.js'
import type { Attempt } from './run.js'
import type { Running } from './running.js'

/** The input of `runAttempt`, from the claimed job and the worker's parts. */
export function attemptInput(running: Running, parts: Pick<InFlightParts, 'world' | 'executor'>): Attempt {
  return {
    registered: running.registered,
    payload: running.claimed.payload,
    version: running.options.version,
    retry: running.options.retry,
    retries: running.claimed.retries,
    attempt: running.attempt,
    random: parts.world.random,
    now: () => Math.round(running.startedAt + (parts.world.clock.monotonic() - running.begunAt)),
    isIsolated: parts.executor.isolates === true && running.registered.isolation !== undefined,
    call: (handler, payload) => parts.executor.call(driven(running, handler), payload, running),
    ended: () => running.workflow?.ended?.outcome,
    abortReason: () => running.abortReason,
    note: (line) => running.log(line),
  }
}

/** The handler, or what drives it when it is the body of a workflow. */
function driven({ workflow }: Running, handler: Handler<unknown, unknown>): Handler<unknown, unknown> {
  return workflow === undefined ? handler : (input) => workflow.drive(handler, input)
}
