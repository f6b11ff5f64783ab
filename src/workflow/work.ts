import type { Job } from '../job/definition/define.js'
import type { AnyEvent } from '../job/definition/workflow-options.js'
import type { Duration } from '../job/duration/duration.js'
import type { EnqueueOptions, Handle } from '../job/enqueue.js'
import type { RetryOptions } from '../job/rules/retry.js'

/** An event that a workflow waits for: sent as `Sent`, received as `Got`. Made by `event()`. */
export interface Event<Sent = undefined, Got = Sent> extends AnyEvent {
  /** Types only: there is no such field. */
  readonly '~types'?: { readonly sent: (payload: Sent) => void; readonly got: Got } | undefined
}

/** One branch of `w.all` or `w.race`. Its verbs are those of the `w` that it is given. */
export type Branch = (w: Work) => unknown

declare const RESTART: unique symbol
/** The value of `w.restart(input)`, to be returned by the body. */
export interface Restart {
  readonly [RESTART]: true
}

/** Options of a step. */
export interface StepOptions {
  /** Tells steps of one name apart, when their order may change. */
  readonly key?: string | undefined
  /** Part by part before that of the workflow and of the mill. */
  readonly retry?: RetryOptions | undefined
  /** How long one attempt of the step may take. Default: that of the workflow. */
  readonly timeout?: Duration | number | undefined
}

/** What the function of a step is given. */
export interface StepContext {
  /** The same for every attempt of this step: pass it to other systems as the idempotency key. */
  readonly id: string
  /** The id of the workflow. */
  readonly workflow: string
  /** Which attempt of this step this is: 1 is the first. */
  readonly attempt: number
  /** Aborted at the timeout, by a cancel, when the claim is lost or the worker stops. */
  readonly signal: AbortSignal
  log(...parts: readonly unknown[]): void
  progress(done: number, total?: number): void
  /** Enqueues another job, once for each call: at least once if the step is tried again. */
  enqueue<Payload, Result>(
    job: Job<Payload, Result> | string,
    ...rest: undefined extends Payload
      ? [payload?: NoInfer<Payload>, options?: EnqueueOptions]
      : [payload: NoInfer<Payload>, options?: EnqueueOptions]
  ): Promise<Handle<Result, Payload>>
}

type CallOptions = Omit<EnqueueOptions, 'tx'> & {
  /** The name in the address. Default: the job's. */
  readonly name?: string | undefined
}

/** The payload may be left out where the job takes none. */
type CallArguments<Payload, Options> = undefined extends Payload
  ? [payload?: Payload, options?: Options]
  : [payload: Payload, options?: Options]

/**
 * The verbs of a workflow's body. Each call is recorded once and replayed after a restart of the process. Helpers take it
 * as an argument: `async function pay(w: Work, order: Order) { … }`.
 */
export interface Work<Input = never> {
  /** The id of the workflow's job. */
  readonly id: string
  /** 0, and one more after each restart. */
  readonly run: number
  /** The answers given so far in this run. */
  readonly steps: number
  /** Calls `act` at least once, records what it returns, and returns the recorded copy. */
  step<T>(name: string, act: (s: StepContext) => T): Promise<Awaited<T>>
  step<T>(name: string, options: StepOptions, act: (s: StepContext) => T): Promise<Awaited<T>>
  /** The writes of `work` and the record of this step are one commit. On SQLite `work` is synchronous. */
  transaction<T, Tx = unknown>(name: string, work: (tx: Tx) => T): Promise<Awaited<T>>
  sleep(span: Duration | number, options?: { readonly name?: string | undefined }): Promise<void>
  sleepUntil(instant: Date | string, options?: { readonly name?: string | undefined }): Promise<void>
  /** The oldest event of this name that is not taken; throws TimeoutError after `timeout`. */
  waitFor<Sent, Got>(
    event: Event<Sent, Got>,
    options?: { readonly timeout?: Duration | number | undefined; readonly name?: string | undefined },
  ): Promise<Got>
  /** Enqueues a job, once, and waits for its result without holding a slot. */
  call<Payload, Result>(
    job: Job<Payload, Result>,
    ...rest: CallArguments<NoInfer<Payload>, CallOptions & { readonly onCancel?: 'cancel' | 'leave' | undefined }>
  ): Promise<Result>
  /** Enqueues a job, once, and does not wait for it. */
  enqueue<Payload, Result>(
    job: Job<Payload, Result>,
    ...rest: CallArguments<NoInfer<Payload>, CallOptions>
  ): Promise<{ readonly id: string }>
  /** Runs the branches side by side, and waits until every one has ended. */
  all<const Branches extends readonly Branch[] | Readonly<Record<string, Branch>>>(
    branches: Branches,
    options?: { readonly concurrency?: number | undefined },
  ): Promise<{ -readonly [Key in keyof Branches]: Branches[Key] extends (w: Work) => infer T ? Awaited<T> : never }>
  /** `all` over a list: results in the order of the list. */
  each<Item, T>(
    name: string,
    items: readonly Item[],
    turn: (item: Item, w: Work, index: number) => T,
    options?: {
      readonly concurrency?: number | undefined
      readonly key?: ((item: Item) => string) | undefined
    },
  ): Promise<Awaited<T>[]>
  /** The first branch to end wins; the verbs of the others reject, and it settles when they have unwound. */
  race<const Branches extends Readonly<Record<string, Branch>>>(
    branches: Branches,
  ): Promise<
    {
      [Key in keyof Branches]: { readonly won: Key; readonly value: Awaited<ReturnType<Branches[Key]>> }
    }[keyof Branches]
  >
  /** Verbs of the inner `w` work after a cancel too. */
  cleanup<T>(work: (w: Work) => T): Promise<Awaited<T>>
  /** 0 in workflows that ran past this point before the line was added, else `latest`. */
  version(id: string, latest?: number): number
  /** The store's time of the answer last given: the same on every replay. */
  now(): Date
  /** The same on every replay; not secret. */
  random(): number
  uuid(): string
  log(...parts: readonly unknown[]): void
  progress(done: number, total?: number): void
  /** The results of the parents in `after` whose job is `parent`. */
  results<Result>(parent: Job<never, Result> | Job<unknown, Result>): Promise<Result[]>
  /** Begins an empty log with another input: `return w.restart(next)`. */
  restart(input: Input): Restart
}
