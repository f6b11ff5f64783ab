import type { AsyncLocalStorage } from 'node:async_hooks'
import type { Handler } from '../../job/definition/define.js'
import type { Running } from '../attempt/running.js'

/** Calls handlers. Threads and processes join here as executors of their own. */
export interface HandlerExecutor {
  call(handler: Handler<unknown, unknown>, payload: unknown, running: Running): unknown
  /** The attempt whose handler the calling code belongs to, by async context; left out where that is not known. */
  current?(): Running | undefined
}

/** The event loop of this process: the handler is called where the worker is, inside the mark that says "in a handler". */
export function loopExecutor(inside: AsyncLocalStorage<Running>): HandlerExecutor {
  return {
    call: (handler, payload, running) => inside.run(running, handler, payload, running),
    current: () => inside.getStore(),
  }
}
