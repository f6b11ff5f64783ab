import type { ErrorRecord } from '../../codec/error-text.js'
import type { Context } from './context.js'
import type { EnqueueOptions, Handle } from '../enqueue.js'
import type { State } from '../rules/states.js'

/**
 * Functions that Millrace calls around each enqueue, around each attempt, and after each attempt has ended.
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
   * Around each call of enqueue, enqueueMany, schedule and sequence, and each node of a flow. `next()` writes the jobs; its argument overrides
   * their options, except `tx`. A hook that throws before `next()` prevents the write. With `tx` it must call `next()` before it
   * awaits anything.
   *
   * Called also for jobs that no call enqueues: those of ticks, of `whenDone` and of the SQL function `add_job`. They are written
   * already: `next()` resolves with their handles, and what the hook throws is logged.
   */
  readonly enqueue?: ((call: EnqueueCall, next: EnqueueNext) => unknown) | undefined
  /**
   * Around the handler of each attempt. `next()` calls it and resolves with its result. An error that the hook throws fails the
   * attempt like an error of the handler. An error of the handler fails the attempt also when the hook catches it.
   */
  readonly start?: ((ctx: Context, next: () => Promise<unknown>) => unknown) | undefined
  /** Called after the end of an attempt was committed. Not awaited; an error that it throws is logged and changes nothing. */
  readonly settle?: ((job: SettledAttempt, end: AttemptEnd) => unknown) | undefined
}

/** One call that enqueues. */
export interface EnqueueCall {
  readonly verb: 'enqueue' | 'enqueueMany' | 'schedule' | 'flow' | 'sequence' | 'tick' | 'whenDone' | 'sql'
  /** The job's name. */
  readonly job: string
  /** The queue of the job's definition, which `options.queue` of an item overrides; without a call, the queue that the job is in. */
  readonly queue: string
  /**
   * One item, or all items of a bulk; a flow makes one call for each node. The payload of a sequence is its list. Payloads are not
   * yet parsed by the job's schema.
   */
  readonly items: readonly EnqueueItem[]
  /** The third argument of `schedule`. */
  readonly when?: unknown
  /** The schedule of a tick. */
  readonly schedule?: string | undefined
  /** The group that `whenDone` follows. */
  readonly group?: string | undefined
}

export interface EnqueueItem {
  readonly payload: unknown
  readonly options: EnqueueOptions
}

/** Writes the jobs, with `change` overriding the options of each, and resolves with their handles. */
export type EnqueueNext = (
  change?: EnqueueOptions | ((item: EnqueueItem, index: number) => EnqueueOptions),
) => Promise<Handle<unknown>[]>

/** The job of an attempt that ended. */
export interface SettledAttempt {
  readonly id: string
  /** The job's name. */
  readonly job: string
  readonly queue: string
  /** Attempts that ended and were counted, this one included. */
  readonly attempt: number
}

/** How an attempt ended. */
export interface AttemptEnd {
  /** The job's new state: done, failed, retrying, parked, scheduled (snoozed), cancelled, paused, ready (released). */
  readonly state: State
  /** How long the attempt ran, in ms; undefined when it never began, or when its process died. */
  readonly ms: number | undefined
  readonly error: ErrorRecord | undefined
  /** Why the job is in this state, when there is no error. */
  readonly reason: string | undefined
  /** The delay before the next attempt, in ms, of a retrying or snoozed job. */
  readonly againInMs: number | undefined
}

export interface HookLists {
  readonly enqueue: readonly NonNullable<Hooks['enqueue']>[]
  readonly start: readonly NonNullable<Hooks['start']>[]
  readonly settle: readonly NonNullable<Hooks['settle']>[]
}

/** The hooks by kind, the first outermost. Each is called as a method of its object. */
export function listHooks(option: Hooks | readonly Hooks[] | undefined): HookLists {
  const all: readonly Hooks[] = option === undefined ? [] : Array.isArray(option) ? option : [option as Hooks]
  const of = <Kind extends keyof Hooks>(kind: Kind): NonNullable<Hooks[Kind]>[] =>
    all.flatMap((hooks) => {
      const hook = hooks[kind] as ((...args: unknown[]) => unknown) | undefined
      return hook === undefined ? [] : [hook.bind(hooks) as NonNullable<Hooks[Kind]>]
    })
  return { enqueue: of('enqueue'), start: of('start'), settle: of('settle') }
}
