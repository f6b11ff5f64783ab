import { show } from '../../codec/show.js'
import { DefinitionError } from '../../errors.js'
import type { Handler } from './define.js'

const LAZY = Symbol.for('millrace.lazy')

/** A handler that is loaded at the first run of its job. */
export interface Lazy<Payload, Result> {
  readonly [LAZY]: true
  readonly load: () => Promise<Handler<Payload, Result>>
}

/** The result of an importer: the handler itself, or a module that exports it as `default` or `run`. */
export type Loadable<Payload, Result> =
  | Handler<Payload, Result>
  | { readonly default: Handler<Payload, Result> }
  | { readonly run: Handler<Payload, Result> }

/**
 * Keeps heavy code out of processes that only enqueue: the module is imported at the first run of the job.
 * Its `default` or `run` export is the handler.
 *
 * ```ts
 * import { job, lazy } from 'millrace'
 * const heavy = async () => ({ run: async (p: { card: string }) => p.card })
 * export const charge = job('charge', { run: lazy(heavy) })
 * ```
 */
export function lazy<Payload, Result>(importer: () => Promise<Loadable<Payload, Result>>): Lazy<Payload, Result> {
  if (typeof importer !== 'function')
    throw new DefinitionError(
      `lazy() takes a function that imports the handler, such as () => import('./charge.js'), got ${show(importer)}`,
    )
  let loading: Promise<Handler<Payload, Result>> | undefined
  const load = (): Promise<Handler<Payload, Result>> => {
    // A failed import is not cached, so that the next attempt imports again.
    loading ??= imported(importer).catch((error: unknown) => {
      loading = undefined
      throw error
    })
    return loading
  }
  return { [LAZY]: true, load }
}

/** A value that is no promise is used as it is: the importer may have the handler already. */
async function imported<Payload, Result>(
  importer: () => Loadable<Payload, Result> | Promise<Loadable<Payload, Result>>,
): Promise<Handler<Payload, Result>> {
  return handlerOf(await importer())
}

export function isLazy(value: unknown): value is Lazy<never, unknown> {
  return typeof value === 'object' && value !== null && (value as { [LAZY]?: unknown })[LAZY] === true
}

export function loadHandler<Payload, Result>(lazily: Lazy<Payload, Result>): Promise<Handler<Payload, Result>> {
  return lazily.load()
}

/** Calling a generator function runs none of its code: the job would be done without its handler having run. */
export function isGenerator(value: unknown): boolean {
  return typeof value === 'function' && /Generator/.test(Object.prototype.toString.call(value))
}

export const GENERATOR_PROBLEM =
  'must not be a generator function (function*): calling one runs nothing; make it an async function'

function handlerOf<Payload, Result>(loaded: Loadable<Payload, Result>): Handler<Payload, Result> {
  if (typeof loaded === 'function') return runnable(loaded)
  if (typeof loaded !== 'object' || loaded === null)
    throw new DefinitionError(`lazy(): the function must return the handler or its module, got ${show(loaded)}`)
  const module = loaded as { default?: unknown; run?: unknown }
  for (const candidate of [module.default, module.run])
    if (typeof candidate === 'function') return runnable(candidate as Handler<Payload, Result>)
  const names = Object.keys(module).join(', ') || 'nothing'
  throw new DefinitionError(`lazy(): the module must export its handler as default or as run; it exports ${names}`)
}

function runnable<Run>(run: Run): Run {
  if (isGenerator(run)) throw new DefinitionError(`lazy(): the handler ${GENERATOR_PROBLEM}`)
  return run
}
