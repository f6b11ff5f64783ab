import { InvalidOptionsError } from '../errors.js'
import type { Codec } from '../codec/codec.js'
import { show } from '../codec/show.js'
import { Capture } from '../job/attempt/capture.js'
import type { ContextStore } from '../job/attempt/capture.js'
import type { StoreChoice } from '../store/choice.js'
import { isStoreChoice } from '../store/choice.js'
import { postgres } from '../store/postgres/postgres.js'
import { sqlite } from '../store/sqlite/sqlite.js'
import { consoleLog, logTo, silentLog } from '../world/log.js'
import type { Log } from '../world/log.js'
import { printLine, readEnvironment, showsColours } from '../world/process.js'
import { traceContext } from '../world/trace.js'
import type { World } from '../world/world.js'
import type { WorkerOptions } from '../worker/worker.js'
import { toMs } from './options.js'
import type { MillOptions } from './options.js'

/** Which store: what was given, else $MILLRACE_STORE, else ./millrace.db, which production must ask for by name. */
export function storeOf(given: unknown): StoreChoice {
  if (isStoreChoice(given)) return given
  const { store, production } = readEnvironment()
  const target = given === undefined ? store : given
  if (target === undefined && production)
    throw new InvalidOptionsError('millrace()', [
      {
        path: 'store',
        message: 'must be chosen when NODE_ENV is production: pass store: "path/to/jobs.db" or set MILLRACE_STORE',
      },
    ])
  const path = target === undefined ? './millrace.db' : target
  if (typeof path === 'string' && /^\s*postgres(ql)?:/.test(path)) return postgres(path)
  if (typeof path === 'string' || (typeof path === 'object' && path !== null)) return sqlite(path as string)
  throw new InvalidOptionsError('millrace()', [
    {
      path: 'store',
      message: `must be a path, ":memory:", a postgres:// URL, sqlite(…) or postgres(…), got ${show(path)}`,
    },
  ])
}

export function logOf(logger: MillOptions['logger'], world: World): Log {
  if (logger === false) return silentLog
  if (logger === undefined || typeof logger === 'string')
    return consoleLog(logger ?? 'info', world, printLine, showsColours())
  return logTo(logger)
}

/** What is captured at enqueue: the stores given by name, and the trace context unless it is switched off. */
export function captureOf(given: MillOptions['capture'], codec: Codec): Capture | undefined {
  if (given === false) return undefined
  const { trace = true, ...own } = given ?? {}
  const stores = Object.entries({ ...own, trace }).filter((entry): entry is [string, ContextStore] => {
    const [, store] = entry
    return typeof store === 'object' || typeof store === 'function'
  })
  if (stores.length === 0 && trace === false) return undefined
  return new Capture(Object.fromEntries(stores), trace === true ? traceContext : undefined, codec)
}

/** What the worker is told of the options. */
export function workerOptionsOf(options: MillOptions): WorkerOptions {
  return {
    concurrency: options.concurrency ?? 10,
    queues: new Map(
      Object.entries(options.queues ?? {}).map(([queue, most]) => [
        queue,
        typeof most === 'number' ? most : most.concurrency,
      ]),
    ),
    pollMs: toMs(options.poll, '5s'),
    leaseMs: toMs(options.lease, '15s'),
    crashBudget: options.crashBudget ?? 3,
    slowAfterMs: toMs(options.slowAfter, '5m'),
  }
}
