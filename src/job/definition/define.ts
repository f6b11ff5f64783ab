import { DefinitionError, InvalidOptionsError, InvalidPayloadError } from '../../errors.js'
import type { Codec } from '../../codec/codec.js'
import { show } from '../../codec/show.js'
import { CATEGORY, JOB } from './brands.js'
import { checkCategoryOptions, checkJobOptions, checkName } from './check-options.js'
import type { Context } from '../attempt/context.js'
import type { Duration } from '../duration/duration.js'
import type { After } from '../enqueue.js'
import type { OnParentFailure } from '../rules/links.js'
import type { Executor } from './isolation.js'
import type { KeepOptions } from './keep.js'
import type { LimitOptions, RateOptions } from './limit-options.js'
import type { RetryOptions } from '../rules/retry.js'
import { isLazy, loadHandler } from './lazy.js'
import type { Lazy } from './lazy.js'
import { handlerOf } from './isolation.js'
import type { AnyUniqueOptions, UniqueOptions } from './unique-options.js'
import { testContext } from '../attempt/test-context.js'
import type { StandardSchema } from './schema.js'
import { checkPayload } from './schema.js'
import type { Upcast } from './upcast.js'

export type Handler<Payload, Result> = (payload: Payload, ctx: Context) => Result | Promise<Result>

/** A job definition: a plain typed value, independent of any mill or database. */
export interface Job<Payload, Result> {
  readonly [JOB]: true
  readonly name: string
  readonly options: ResolvedOptions
  /** Checks the payload and calls the handler, with a recording context when none is passed. For tests. */
  run(payload: Payload, ctx?: Context): Promise<Result>
}

export type AnyJob = Job<unknown, unknown>

/** The options of a job that do not depend on its payload type. */
export interface SharedOptions {
  /** What the job does, for readers. */
  readonly description?: string | undefined
  /** The queue it runs in. Default 'default'. */
  readonly queue?: string | undefined
  /** Categories it belongs to, nearest first. */
  readonly is?: readonly Category[] | undefined
  /** Higher runs first; ten minutes of waiting count as much as one point. Default 0. */
  readonly priority?: number | undefined
  readonly retry?: RetryOptions | undefined
  /** How long one attempt may take before `ctx.signal` is aborted. Default 30 min; Infinity: no limit. */
  readonly timeout?: Duration | number | undefined
  /** How long a finished job is kept: '1d', or { done, cancelled, failed }. Default 7 d done and cancelled, 30 d failed. */
  readonly keep?: KeepOptions | undefined
  /** Returns true for an error that means success, for idempotent handlers (a 409, a lost compare-and-swap). */
  readonly treatAsDone?: ((error: unknown) => boolean) | undefined
  readonly labels?: readonly string[] | undefined
  /** Encodes and decodes this job's payloads and results. */
  readonly codec?: Codec | undefined
  /**
   * Encrypts what the job's handler is given and what comes of it: payload, `meta`, result, errors, log, progress, items and their
   * output. Title, key, labels, queue and captured context stay readable. Needs `encryption` of the mill. Default false.
   */
  readonly encrypt?: boolean | undefined
  /** Which jobs of this name count as duplicates, and what to do with a duplicate; false: none. Default: none. */
  readonly unique?: AnyUniqueOptions | false | undefined
  /** How many of its jobs may be in flight at once, in all processes together, or for each key. Default: no limit. */
  readonly limit?: LimitOptions | undefined
  /** How many of its jobs may start within a window, in all processes together, or for each key. Default: no limit. */
  readonly rate?: RateOptions | undefined
  /** What to do when a parent fails for good or is cancelled. Default 'wait'. */
  readonly onParentFailure?: OnParentFailure | undefined
  /**
   * Where the handler runs. Default 'loop': the event loop of the worker's process. 'thread' and 'process' load `module`, and end
   * it for certain on timeout, cancel and stop; a handler that ends its process costs its own attempt only.
   */
  readonly executor?: Executor | undefined
  /** The module of the handler, its `default` or `run` export, for executor 'thread' or 'process'. */
  readonly module?: URL | string | undefined
  /** How much memory the JavaScript heap of that thread or process may use, in MiB. Default: as Node chooses. */
  readonly memoryMb?: number | undefined
  /** A running attempt is logged as slow after this, and again each time it has passed. Default: that of the mill. */
  readonly slowAfter?: Duration | number | undefined
}

/** `Given` is the payload as it is enqueued and stored; a schema may turn it into another `Payload` for the handler. */
export interface JobOptions<Payload, Result, Given = Payload> extends SharedOptions {
  readonly run: Handler<Payload, Result> | Lazy<Payload, Result>
  /** A function runs in the event loop: a thread or a process loads the handler from `module` instead of `run`. */
  readonly executor?: 'loop' | undefined
  readonly module?: undefined
  readonly memoryMb?: undefined
  /** Any Standard Schema (zod, valibot, arktype …): it checks the payload at enqueue, and parses it at each attempt. */
  readonly input?: StandardSchema<Given, Payload> | undefined
  /** A check without a schema, instead of `input`: false refuses the payload. */
  readonly accepts?: ((payload: Payload) => boolean) | undefined
  /**
   * `upcast[n]` turns a payload that was stored at version n into one of version n + 1, before `input` or `accepts` checks it. The
   * current version is their number.
   */
  readonly upcast?: readonly Upcast[] | undefined
  /** A title to show: text with `{field}` placeholders, or a function of the payload. */
  readonly title?: string | ((payload: Payload) => string) | undefined
  /**
   * Which jobs of this name count as duplicates, and what to do with a duplicate; false: none. It applies to the enqueued payload,
   * before the schema. Default: none.
   */
  readonly unique?: UniqueOptions<NoInfer<Given>> | false | undefined
  /** How many of its jobs may be in flight at once, in all processes together, or for each `key`. Default: no limit. */
  readonly limit?: LimitOptions<NoInfer<Given>> | undefined
  /** How many of its jobs may start in any window of `per`, in all processes together, or for each `key`. Default: no limit. */
  readonly rate?: RateOptions<NoInfer<Given>> | undefined
  /**
   * The parents of the job, or a function that returns them for the enqueued payload, before the schema. The `after` of an enqueue
   * replaces them.
   */
  readonly after?: readonly After[] | ((payload: NoInfer<Given>) => readonly After[]) | undefined
}

/** The options of a job whose payload has a schema. */
export interface SchemaJobOptions<Payload, Result, Given = Payload> extends JobOptions<Payload, Result, Given> {
  readonly input: StandardSchema<Given, Payload>
}

/** The options of a job whose handler is a module that a thread or a process loads. */
export interface IsolatedJobOptions<Payload, Result, Given = Payload> extends Omit<
  JobOptions<Payload, Result, Given>,
  'run' | 'executor' | 'module' | 'memoryMb'
> {
  readonly executor: 'thread' | 'process'
  readonly module: URL | string
  readonly memoryMb?: number | undefined
  readonly run?: undefined
}

/** The options of a job that inherits its handler from a category. */
export interface InheritedJobOptions extends SharedOptions {
  readonly is: readonly Category[]
  readonly run?: undefined
}

/** The options of any job, without its payload type. */
export interface ResolvedOptions extends SharedOptions {
  readonly run?: Handler<never, unknown> | Lazy<never, unknown> | undefined
  readonly input?: StandardSchema | undefined
  readonly accepts?: ((payload: never) => boolean) | undefined
  readonly title?: string | ((payload: never) => string) | undefined
  readonly upcast?: readonly Upcast[] | undefined
  readonly after?: readonly After[] | ((payload: never) => readonly After[]) | undefined
}

/**
 * Defines a job. To run it, list it in `jobs` of `millrace()`, or call `mill.register(job)`.
 *
 * ```ts
 * import { job } from 'millrace'
 * export const sendEmail = job('send-email', async (p: { to: string }, ctx) => {
 *   ctx.log('sending to', p.to)
 * })
 * ```
 */
export function job<Payload = undefined, Result = void>(
  name: string,
  run: Handler<Payload, Result>,
): Job<Payload, Awaited<Result>>
export function job<Payload = undefined, Result = void, Given = Payload>(
  name: string,
  options: IsolatedJobOptions<Payload, Result, Given>,
): Job<Given, Awaited<Result>>
export function job(name: string, options: InheritedJobOptions): Job<unknown, unknown>
export function job<Payload, Result = void, Given = Payload>(
  name: string,
  options: SchemaJobOptions<Payload, Result, Given>,
): Job<Given, Awaited<Result>>
// When no overload matches, TypeScript 5 reports only the last of four or more (of three it reports all). So the last one accepts every
// form except a handler of a category or a module, and its error message is about the actual mistake.
export function job<Payload = undefined, Result = void, Given = Payload>(
  name: string,
  options: JobOptions<Payload, Result, Given> | Handler<Payload, Result>,
): Job<Given, Awaited<Result>>
export function job(name: string, given: unknown): AnyJob {
  const options = (typeof given === 'function' ? { run: given } : given) as ResolvedOptions
  const missing = { path: '', message: 'needs a handler: job(name, async (payload, ctx) => …), or options with run' }
  const problems = [...checkName('name', name), ...(given === undefined ? [missing] : checkJobOptions(options))]
  if (problems.length > 0) throw new InvalidOptionsError(`job(${show(name)})`, problems)
  const defined: AnyJob = {
    [JOB]: true,
    name,
    options,
    run: (payload, ctx) => runDirectly(defined, payload, ctx),
  }
  return Object.freeze(defined)
}

/** A category: default options and an optional fallback handler for its jobs. */
export interface Category {
  readonly [CATEGORY]: true
  readonly name: string
  readonly options: CategoryOptions
}

export interface CategoryOptions extends SharedOptions {
  /** Runs the jobs of this category that have no handler; `ctx.job` is the job's name. */
  readonly run?: Handler<never, unknown> | Lazy<never, unknown> | undefined
}

/**
 * Defines a category of jobs.
 *
 * ```ts
 * import { category, job } from 'millrace'
 * export const notification = category('notification', { queue: 'notify', retry: { limit: 5 } })
 * export const sendSms = job('send-sms', { run: async (p: { to: string }) => {}, is: [notification] })
 * ```
 */
export function category(name: string, options: CategoryOptions = {}): Category {
  const problems = [...checkName('name', name), ...checkCategoryOptions(options)]
  if (problems.length > 0) throw new InvalidOptionsError(`category(${show(name)})`, problems)
  return Object.freeze({ [CATEGORY]: true as const, name, options })
}

async function runDirectly(target: AnyJob, payload: unknown, ctx: Context | undefined): Promise<unknown> {
  const run = handlerOf(target)
  if (run === undefined)
    throw new DefinitionError(`job ${JSON.stringify(target.name)} has no handler, and no category of it has one`)
  const checked = await checkPayload(target.options, payload)
  if (!checked.ok) throw new InvalidPayloadError(`job ${JSON.stringify(target.name)}`, checked.problems)
  const handler = isLazy(run) ? await loadHandler(run) : run
  return await (handler as Handler<unknown, unknown>)(checked.value, ctx ?? testContext(target))
}
