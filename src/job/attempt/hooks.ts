import type { ErrorRecord } from '../../codec/error-text.js'
import type { Context } from './context.js'
import type { EnqueueOptions, Handle } from '../enqueue.js'
import type { State } from '../rules/states.js'

/**
 * Your code around the engine's three moments.
 *
 * ```ts
 * import { millrace } from 'millrace'
 * const mill = await millrace({
 *   hooks: {
 *     enqueue: (call, next) => next({ labels: [`by-${call.verb}`] }),
 *     start: async (ctx, next) => {
 *       console.time(ctx.id)
 *       await next()
 *     },
 *     settle: (job, end) => console.log(job.job, end.state, end.ms),
 *   },
 * })
 * ```
 */
export interface Hooks {
  /**
   * Around each call of enqueue, enqueueMany and schedule, and each node of a flow. `next()` writes the jobs; what it is given is laid over their
   * options, `tx` excepted. Throw before it, and nothing is written. With `tx` it must be called before anything is awaited.
   */
  readonly enqueue?: ((call: EnqueueCall, next: EnqueueNext) => unknown) | undefined
  /**
   * Around the handler of each attempt. `next()` calls it and resolves with what it returned. What the hook throws fails the
   * attempt like an error of the handler; what the handler threw stands, also when the hook catches it.
   */
  readonly start?: ((ctx: Context, next: () => Promise<unknown>) => unknown) | undefined
  /** Told when an attempt's end is on disk. Not waited for; what it throws is logged and changes nothing. */
  readonly settle?: ((job: SettledAttempt, end: AttemptEnd) => unknown) | undefined
}

/** One call that enqueues. */
export interface EnqueueCall {
  readonly verb: 'enqueue' | 'enqueueMany' | 'schedule' | 'flow'
  /** The job's name. */
  readonly job: string
  /** One, or all of a bulk; of a flow one call for each node. Payloads as they were given, before the job's schema looks at them. */
  readonly items: readonly EnqueueItem[]
  /** The third argument of `schedule`. */
  readonly when?: unknown
}

export interface EnqueueItem {
  readonly payload: unknown
  readonly options: EnqueueOptions
}

/** Writes the jobs, with options laid over each one's own, and gives their handles. */
export type EnqueueNext = (
  change?: EnqueueOptions | ((item: EnqueueItem, index: number) => EnqueueOptions),
) => Promise<Handle<unknown>[]>

/** The job of an attempt that ended. */
export interface SettledAttempt {
  readonly id: string
  /** The job's name. */
  readonly job: string
  readonly queue: string
  /** Attempts that ended and count, this one included. */
  readonly attempt: number
}

/** How an attempt ended. */
export interface AttemptEnd {
  /** Where the job is now: done, failed, retrying, parked, scheduled (snoozed), cancelled, paused, ready (given back). */
  readonly state: State
  /** How long it ran, in ms; undefined when it never began, or when its process died. */
  readonly ms: number | undefined
  readonly error: ErrorRecord | undefined
  /** Why it is where it is, when an error does not say it. */
  readonly reason: string | undefined
  /** Runs again in so many ms: retrying and snoozed. */
  readonly againInMs: number | undefined
}

export interface HookLists {
  readonly enqueue: readonly NonNullable<Hooks['enqueue']>[]
  readonly start: readonly NonNullable<Hooks['start']>[]
  readonly settle: readonly NonNullable<Hooks['settle']>[]
}

/** The hooks by moment, the first outermost. Each is called as a method of the object it came in. */
export function listHooks(given: Hooks | readonly Hooks[] | undefined): HookLists {
  const all: readonly Hooks[] = given === undefined ? [] : Array.isArray(given) ? given : [given as Hooks]
  const of = <Moment extends keyof Hooks>(moment: Moment): NonNullable<Hooks[Moment]>[] =>
    all.flatMap((hooks) => {
      const hook = hooks[moment] as ((...args: unknown[]) => unknown) | undefined
      return hook === undefined ? [] : [hook.bind(hooks) as NonNullable<Hooks[Moment]>]
    })
  return { enqueue: of('enqueue'), start: of('start'), settle: of('settle') }
}
