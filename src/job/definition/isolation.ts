import { fileURLToPath, pathToFileURL } from 'node:url'
import { isAbsolute } from 'node:path'
import { show } from '../../codec/show.js'
import { DefinitionError } from '../../errors.js'
import type { Problem } from '../../errors.js'
import type { Check } from './check-fields.js'
import type { AnyJob, ResolvedOptions } from './define.js'
import { inherited, resolveHandler } from './inheritance.js'
import { lazy } from './lazy.js'
import type { Loadable } from './lazy.js'

/** Where handlers run: the event loop of the worker's process, a thread of it, or a process of their own. */
export const EXECUTORS = ['loop', 'thread', 'process'] as const
export type Executor = (typeof EXECUTORS)[number]

/** Less is not enough for Node itself; the maximum only catches a number of bytes. */
export const MEMORY_MIN_MB = 16
export const MEMORY_MAX_MB = 1_048_576

/** How the handler of a job runs apart from the worker. */
export interface Isolation {
  readonly executor: 'thread' | 'process'
  /** The URL of the module whose `default` or `run` export is the handler. */
  readonly module: string
  readonly memoryMb: number | undefined
}

export const MODULE_ADVICE = "module: new URL('./render.js', import.meta.url)"

/** Only a file can be loaded by a thread or a process; a relative path would depend on the working directory. */
export const isModule: Check = (value) => {
  const url = moduleUrl(value)
  if (url !== undefined) return undefined
  return `must be the file: URL or the absolute path of the handler's module, got ${show(value)}; write ${MODULE_ADVICE}`
}

/** The URL of a module as text; undefined for what is neither a file: URL nor an absolute path. */
export function moduleUrl(value: unknown): string | undefined {
  if (typeof value === 'string' && isAbsolute(value)) return pathToFileURL(value).href
  const text = value instanceof URL ? value.href : value
  if (typeof text !== 'string' || !URL.canParse(text) || new URL(text).protocol !== 'file:') return undefined
  try {
    fileURLToPath(text)
    return new URL(text).href
  } catch {
    return undefined // A file: URL with a host, for example.
  }
}

interface IsolationOptions {
  readonly run?: unknown
  readonly executor?: unknown
  readonly module?: unknown
}

/** What is wrong with the options of one job or category together. What it lacks may come from a category. */
export function isolationProblems({ run, executor, module }: IsolationOptions): Problem[] {
  if (run === undefined) return []
  const isIsolated = executor === 'thread' || executor === 'process'
  if (isIsolated)
    return [
      {
        path: 'run',
        message: `cannot be sent to a ${executor}: move the handler to a file of its own, export it as default, and give ${MODULE_ADVICE} instead of run`,
      },
    ]
  if (module === undefined) return []
  return [{ path: 'module', message: 'cannot be given with run: one of them is the handler' }]
}

/** How a job runs apart from its worker; undefined when it runs in the event loop. */
export function isolationOf(job: AnyJob): Isolation | undefined {
  const [executor, module] = [inherited(job, 'executor') ?? 'loop', inherited(job, 'module')]
  const refuse = (problem: string): never => {
    throw new DefinitionError(`job ${JSON.stringify(job.name)}: ${problem}`)
  }
  if (executor === 'loop') {
    if (inherited(job, 'memoryMb') !== undefined)
      refuse('memoryMb limits a thread or a process; give it executor "thread" or "process" too')
    if (job.options.module !== undefined)
      refuse('module is loaded by executor "thread" or "process"; for "loop" give run: lazy(() => import(…))')
    return undefined
  }
  if (job.options.run !== undefined)
    refuse(`its run cannot be sent to a ${executor}; export it from a file of its own, and give ${MODULE_ADVICE}`)
  const url = moduleUrl(module) ?? refuse(`executor "${executor}" needs the module of the handler: ${MODULE_ADVICE}`)
  return { executor, module: url, memoryMb: inherited(job, 'memoryMb') }
}

/** The handler of a job: its own, that of its module, else the nearest category's fallback. */
export function handlerOf(job: AnyJob): ResolvedOptions['run'] {
  const isolation = isolationOf(job)
  if (isolation === undefined) return resolveHandler(job)
  return lazy(() => import(isolation.module) as Promise<Loadable<never, unknown>>)
}
