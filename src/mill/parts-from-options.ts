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
import { perMsOf } from '../job/definition/limit-options.js'
import { OUTAGE_AFTER } from '../job/limits/outage.js'
import type { QueueLimitsChange } from '../store/limits.js'
import { toMs } from './options.js'
import type { MillOptions } from './options.js'

/** The store: the option, else $MILLRACE_STORE, else ./millrace.db. With NODE_ENV=production there is no default. */
export function storeOf(option: unknown): StoreChoice {
  if (isStoreChoice(option)) return option
  const { store, production } = readEnvironment()
  const target = option === undefined ? store : option
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

/** The context to capture at each enqueue: the app's stores, and the trace context unless it is switched off. */
export function captureOf(option: MillOptions['capture'], codec: Codec): Capture | undefined {
  if (option === false) return undefined
  const { trace = true, ...appStores } = option ?? {}
  const stores = Object.entries({ ...appStores, trace }).filter((entry): entry is [string, ContextStore] => {
    const [, store] = entry
    return typeof store === 'object' || typeof store === 'function'
  })
  if (stores.length === 0 && trace === false) return undefined
  return new Capture(Object.fromEntries(stores), trace === true ? traceContext : undefined, codec)
}

export function workerOptionsOf(options: MillOptions): WorkerOptions {
  return {
    concurrency: options.concurrency ?? 10,
    queues: new Map(
      Object.entries(options.queues ?? {}).flatMap(([queue, given]) => {
        const bound = typeof given === 'number' ? given : given.concurrency
        return bound === undefined ? [] : [[queue, bound] as const]
      }),
    ),
    outageAfter: options.outage === false ? Infinity : (options.outage?.after ?? OUTAGE_AFTER),
    pollMs: toMs(options.poll, '5s'),
    leaseMs: toMs(options.lease, '15s'),
    crashBudget: options.crashBudget ?? 3,
    slowAfterMs: toMs(options.slowAfter, '5m'),
    workflows: { sticky: options.workflows?.sticky ?? 1_000, strict: options.workflows?.strict ?? false },
  }
}

/** The limits of queues that a start stores. An entry with a limit or a rate replaces both; other queues keep theirs. */
export function queueLimitsOf(options: MillOptions): QueueLimitsChange[] {
  return Object.entries(options.queues ?? {}).flatMap(([queue, given]) => {
    if (typeof given === 'number' || (given.limit === undefined && given.rate === undefined)) return []
    const { limit, rate } = given
    const limits = {
      ...(isGiven(limit) ? { limit: { max: limit.max } } : {}),
      ...(isGiven(rate) ? { rate: { max: rate.max, perMs: perMsOf(rate.per) } } : {}),
    }
    return [{ queue, limits: Object.keys(limits).length === 0 ? null : limits }]
  })
}

function isGiven<T extends object>(value: T | false | undefined): value is T {
  return value !== undefined && value !== false
}
