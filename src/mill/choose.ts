import { InvalidOptionsError, NotYetError } from '../errors.js'
import { show } from '../codec/show.js'
import type { StoreChoice } from '../store/choice.js'
import { isStoreChoice } from '../store/choice.js'
import { sqlite } from '../store/sqlite/sqlite.js'
import { consoleLog, logTo, silentLog } from '../world/log.js'
import type { Log } from '../world/log.js'
import { printLine, readEnvironment } from '../world/process.js'
import type { World } from '../world/world.js'
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
  if (typeof path === 'string' && /^postgres(ql)?:/.test(path)) throw new NotYetError('store: "postgres://…"')
  if (typeof path === 'string' || (typeof path === 'object' && path !== null)) return sqlite(path as string)
  throw new InvalidOptionsError('millrace()', [
    { path: 'store', message: `must be a path, ":memory:" or sqlite(…), got ${show(path)}` },
  ])
}

export function logOf(logger: MillOptions['logger'], world: World): Log {
  if (logger === false) return silentLog
  if (logger === undefined || typeof logger === 'string') return consoleLog(logger ?? 'info', world, printLine)
  return logTo(logger)
}
