import type { AsyncLocalStorage } from 'node:async_hooks'
import type { Handler } from '../../job/definition/define.js'
import type { Running } from '../attempt/running.js'

/** Calls handlers. */
export interface HandlerExecutor {
  call(handler: Handler<unknown, unknown>, payload: unknown, running: Running): unknown
  /** The attempt whose handler the calling code belongs to, by async context; left out where that is not known. */
  current?(): Running | undefined
  /** Whether it loads the modules of isolated jobs elsewhere, so that the handler of such a job is not loaded here. */
  readonly isolates?: boolean | undefined
  /** The attempt is over although its handler runs: ends the handler where that is possible. */
  end?(running: Running): void
  /** The worker has stopped. */
  close?(): void
}

/** The event loop of this process: the handler is called where the worker is, inside the mark that says "in a handler". */
export function loopExecutor(inside: AsyncLocalStorage<Running>): HandlerExecutor {
  return {
    call: (handler, payload, running) => inside.run(running, handler, payload, running),
    current: () => inside.getStore(),
  }
}
