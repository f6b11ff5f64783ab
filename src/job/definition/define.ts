import { DefinitionError, InvalidOptionsError, InvalidPayloadError } from '../../errors.js'
import type { Codec } from '../../codec/codec.js'
import { show } from '../../codec/show.js'
import { CATEGORY, JOB } from './brands.js'
import { checkCategoryOptions, checkJobOptions, checkName } from './check-options.js'
import type { Context } from '../attempt/context.js'
import type { Duration } from '../duration/duration.js'
import type { After } from '../enqueue.js'
import type { OnParentFailure } from '../rules/links.js'
import type { KeepOptions } from './keep.js'
import type { RetryOptions } from '../rules/retry.js'
import { isLazy, loadHandler } from './lazy.js'
import type { Lazy } from './lazy.js'
import { resolveHandler } from './inheritance.js'
import type { AnyUniqueOptions, UniqueOptions } from './unique-options.js'
import { testContext } from '../attempt/test-context.js'
import type { StandardSchema } from './schema.js'
import { checkPayload } from './schema.js'

export type Handler<Payload, Result> = (payload: Payload, ctx: Context) => Result | Promise<Result>

/** A job: a plain typed value, bound to no server and no database. */
export interface Job<Payload, Result> {
  readonly [JOB]: true
  readonly name: string
  readonly options: ResolvedOptions
  /** Checks the payload and calls the handler, with a recording context when none is given. For tests. */
  run(payload: Payload, ctx?: Context): Promise<Result>
}

export type AnyJob = Job<unknown, unknown>

/** What job definitions share, whatever their payload. */
export interface SharedOptions {
  /** What it does, for people. */
  readonly description?: string | undefined
  /** The queue it runs in. Default 'default'. */
  readonly queue?: string | undefined
  /** Categories it belongs to, nearest first. */
  readonly is?: readonly Category[] | undefined
  /** Higher runs first; ten minutes of waiting weigh as much as one point. Default 0. */
  readonly priority?: number | undefined
  readonly retry?: RetryOptions | undefined
  /** How long one attempt may take before `ctx.signal` is aborted. Default 30 min; Infinity lifts it. */
  readonly timeout?: Duration | number | undefined
  /** How long a finished job is kept: '1d', or { done, cancelled, failed }. Default 7 d done and cancelled, 30 d failed. */
  readonly keep?: KeepOptions | undefined
  /** Turns a given error into success, for idempotent consumers (a 409, a lost compare-and-swap). */
  readonly treatAsDone?: ((error: unknown) => boolean) | undefined
  readonly labels?: readonly string[] | undefined
  /** Writes and reads this job's payloads and results. */
  readonly codec?: Codec | undefined
  /** Which jobs of this name count as the same, and what becomes of the second one; false: none. Default: none. */
  readonly unique?: AnyUniqueOptions | false | undefined
  /** What it does when a job it comes after fails for good or is cancelled. Default 'wait'. */
  readonly onParentFailure?: OnParentFailure | undefined
}

/** `Given` is the payload as it is enqueued and stored: the same as the handler's `Payload`, unless a schema makes that of it. */
export interface JobOptions<Payload, Result, Given = Payload> extends SharedOptions {
  readonly run: Handler<Payload, Result> | Lazy<Payload, Result>
  /** Any Standard Schema (zod, valibot, arktype …): checked at enqueue, read again at each attempt. */
  readonly input?: StandardSchema<Given, Payload> | undefined
  /** The plain form of a schema, in place of `input`: false refuses the payload. */
  readonly accepts?: ((payload: Payload) => boolean) | undefined
  /** A title for people: text with `{field}` places, or a function of the payload. */
  readonly title?: string | ((payload: Payload) => string) | undefined
  /**
   * Which jobs of this name count as the same, and what becomes of the second one; false: none. It is asked of the payload
   * as it was given, before the schema. Default: none.
   */
  readonly unique?: UniqueOptions<NoInfer<Given>> | false | undefined
  /**
   * The jobs it comes after, or a function that names them, of the payload as it was given, before the schema; an enqueue's own
   * come in their place.
   */
  readonly after?: readonly After[] | ((payload: NoInfer<Given>) => readonly After[]) | undefined
}

/** The options of a job whose payload has a schema. */
export interface SchemaJobOptions<Payload, Result, Given = Payload> extends JobOptions<Payload, Result, Given> {
  readonly input: StandardSchema<Given, Payload>
}

/** The options of a job whose handler is that of a category. */
export interface InheritedJobOptions extends SharedOptions {
  readonly is: readonly Category[]
  readonly run?: undefined
}

/** The options of a job, of whatever shape. */
export interface ResolvedOptions extends SharedOptions {
  readonly run?: Handler<never, unknown> | Lazy<never, unknown> | undefined
  readonly input?: StandardSchema | undefined
  readonly accepts?: ((payload: never) => boolean) | undefined
  readonly title?: string | ((payload: never) => string) | undefined
  readonly after?: readonly After[] | ((payload: never) => readonly After[]) | undefined
}

/**
 * Defines a job at module top level. Listing it in `jobs`, or `mill.register(job)`, is all it takes to run it.
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
export function job(name: string, options: InheritedJobOptions): Job<unknown, unknown>
export function job<Payload, Result = void, Given = Payload>(
  name: string,
  options: SchemaJobOptions<Payload, Result, Given>,
): Job<Given, Awaited<Result>>
// TypeScript 5 reports the last of four overloads, and of three it reports them all: this one takes every form but the
// inherited handler, so that its complaint is about what is wrong.
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

/** A category: default options and, if it likes, a fallback handler for the jobs that are of it. */
export interface Category {
  readonly [CATEGORY]: true
  readonly name: string
  readonly options: CategoryOptions
}

export interface CategoryOptions extends SharedOptions {
  /** Runs the jobs of this category that have no handler of their own; `ctx.job` says which it is. */
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
  const run = resolveHandler(target)
  if (run === undefined)
    throw new DefinitionError(`job ${JSON.stringify(target.name)} has no handler, and no category of it has one`)
  const checked = await checkPayload(target.options, payload)
  if (!checked.ok) throw new InvalidPayloadError(`job ${JSON.stringify(target.name)}`, checked.problems)
  const handler = isLazy(run) ? await loadHandler(run) : run
  return await (handler as Handler<unknown, unknown>)(checked.value, ctx ?? testContext(target))
}
