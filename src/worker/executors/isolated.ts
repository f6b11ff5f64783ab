import { makeError } from '../../codec/error-shape.js'
import { describeError } from '../../codec/error-text.js'
import { Abort, Snooze } from '../../job/attempt/control-errors.js'
import type { When } from '../../job/duration/duration.js'
import type { Isolation } from '../../job/definition/isolation.js'
import { DefinitionError } from '../../errors.js'
import type { Timers } from '../../world/timers.js'
import type { Running } from '../attempt/running.js'
import { ABORT_GRACE_MS } from '../in-flight/overdue.js'
import { ChildCrashError, UnsentResult } from './child-crash.js'
import type { HandlerExecutor } from './loop.js'
import type { ChildPool, PooledChild } from './pool.js'

/** An error as a child describes it. */
interface ChildError {
  readonly name: string
  readonly message: string
  readonly stack: string
  readonly type?: string
  readonly props: object
  readonly isAbort: boolean
  readonly snooze?: { readonly delay: unknown }
  readonly cause?: ThrownInChild
}
type ThrownInChild = ChildError | { readonly value: unknown }

type FromChild =
  | { readonly ready: true }
  | { readonly log: readonly unknown[] }
  | { readonly progress: readonly [done: number, total: number | undefined] }
  | { readonly call: number; readonly verb: string; readonly args: readonly unknown[] }
  | { readonly returned: unknown; readonly unsent?: string }
  | { readonly threw: ThrownInChild }
  | { readonly uncaught: ThrownInChild }
  | { readonly stray: ThrownInChild }

interface Settle {
  resolve(value: unknown): void
  reject(error: unknown): void
}

export interface IsolatedParts {
  readonly pool: ChildPool
  readonly timers: Timers
  /** An attempt that has ended left an error behind in its thread or process. */
  readonly strayError: (running: Running, error: unknown) => void
}

/** Runs the handlers of jobs with `executor: 'thread'` or `'process'` in a child, and all others in the event loop. */
export function isolatingExecutor(loop: HandlerExecutor, parts: IsolatedParts): HandlerExecutor {
  const attempts = new Map<Running, IsolatedAttempt>()
  return {
    ...loop,
    isolates: true,
    call(handler, payload, running) {
      const { isolation } = running.registered
      if (isolation === undefined) return loop.call(handler, payload, running)
      const attempt = new IsolatedAttempt(running, parts.pool.take(isolation), isolation, parts)
      attempts.set(running, attempt)
      return attempt.run(payload).finally(() => attempts.delete(running))
    },
    end: (running) => attempts.get(running)?.kill(),
    close: () => parts.pool.close(),
  }
}

/** One attempt in a child. */
class IsolatedAttempt {
  readonly #running: Running
  readonly #child: PooledChild
  readonly #isolation: Isolation
  readonly #parts: IsolatedParts
  #settle: Settle | undefined
  /** What a call without an answer threw: the attempt fails with it, as it does where such a call throws into the handler. */
  #refused: { readonly error: unknown } | undefined
  #isSpoiled = false
  #isKilled = false
  #stopGrace: (() => void) | undefined

  constructor(running: Running, child: PooledChild, isolation: Isolation, parts: IsolatedParts) {
    this.#running = running
    this.#child = child
    this.#isolation = isolation
    this.#parts = parts
  }

  /** Resolves with what the handler returned in the child, and rejects with what it threw or with how the child ended. */
  run(payload: unknown): Promise<unknown> {
    const { id, job, attempt, tick, queue, signal, sequence } = this.#running
    const child = this.#child
    const ended = new Promise<unknown>((resolve, reject) => (this.#settle = { resolve, reject }))
    child.onMessage = (message: FromChild) => this.#receive(message)
    child.onEnd = (exit) => this.#crashed(exit)
    const abort = (): void => this.#abort()
    try {
      child.send({
        run: { payload, context: { id, job, attempt, tick, queue: queue.name, sequence: sequence && { ...sequence } } },
      })
    } catch (error) {
      this.#end()
      throw new DefinitionError(
        `job ${JSON.stringify(job)}: its payload cannot be sent to a ${this.#isolation.executor}: ${describeError(error).message}`,
      )
    }
    if (signal.aborted) abort()
    else signal.addEventListener('abort', abort, { once: true })
    return ended.finally(() => {
      signal.removeEventListener('abort', abort)
      this.#stopGrace?.()
    })
  }

  /** Ends the child, whatever its handler does. */
  kill(): void {
    if (this.#settle === undefined) return
    this.#isKilled = true
    this.#running.exit = 'killed'
    this.#child.kill()
  }

  #abort(): void {
    const { name, message } = describeError(this.#running.abortReason)
    this.#child.send({ abort: { name, message } })
    this.#stopGrace = this.#parts.timers.after(ABORT_GRACE_MS, () => this.kill())
  }

  #receive(message: FromChild): void {
    if ('returned' in message) return this.#returned(message.returned, message.unsent)
    if ('threw' in message) return this.#rejected(revive(message.threw))
    if ('uncaught' in message) {
      this.#isSpoiled = true
      return this.#rejected(revive(message.uncaught))
    }
    if ('stray' in message) {
      this.#isSpoiled = true
      return this.#parts.strayError(this.#running, revive(message.stray))
    }
    if ('call' in message) return void this.#answer(message)
    if ('ready' in message) return
    try {
      if ('log' in message) this.#running.log(...message.log)
      else this.#running.progress(...message.progress)
    } catch (error) {
      this.#refused ??= { error }
    }
  }

  async #answer({ call, verb, args }: Extract<FromChild, { call: number }>): Promise<void> {
    try {
      this.#reply({ answer: call, value: await callVerb(this.#running, verb, args) })
    } catch (error) {
      const { name, message, code } = describeError(error)
      this.#reply({ answer: call, error: { name, message, code } })
    }
  }

  #reply(message: unknown): void {
    if (this.#settle !== undefined) this.#child.send(message)
  }

  #returned(value: unknown, unsent: string | undefined): void {
    if (this.#refused !== undefined) return this.#rejected(this.#refused.error)
    this.#end()?.resolve(unsent === undefined ? value : new UnsentResult(unsent))
  }

  #rejected(error: unknown): void {
    this.#end()?.reject(error)
  }

  #crashed(exit: string): void {
    const { executor } = this.#isolation
    if (!this.#isKilled) this.#running.exit = `${executor} ended: ${exit}`
    this.#isSpoiled = true
    this.#end()?.reject(new ChildCrashError(executor, exit))
  }

  /** The attempt is over; the child goes back to the pool. Undefined when it was over before. */
  #end(): Settle | undefined {
    const settle = this.#settle
    this.#settle = undefined
    if (settle === undefined) return undefined
    if (this.#isSpoiled) this.#parts.pool.discard(this.#child)
    else this.#parts.pool.giveBack(this.#child)
    return settle
  }
}

/** The verbs of the context that a child calls. They are fenced by the claim of the attempt, as those of the event loop are. */
async function callVerb(running: Running, verb: string, args: readonly unknown[]): Promise<unknown> {
  const [first, payload, options] = args
  switch (verb) {
    case 'enqueue': {
      const { id, isNew } = await running.enqueue(first as string, payload, options as never)
      return { id, isNew }
    }
    case 'results':
      return running.results(first as string)
    case 'pauseUntil':
      return running.queue.pauseUntil(first as When)
    default:
      throw new DefinitionError(
        `handle.${verb}() is not available in a ${running.registered.isolation?.executor}: the handle there has id and isNew`,
      )
  }
}

function revive(thrown: ThrownInChild): unknown {
  if (!('name' in thrown)) return thrown.value
  const { name, message, stack, props, cause } = thrown
  if (thrown.snooze !== undefined) return new Snooze(thrown.snooze.delay as When)
  const causes = cause === undefined ? {} : { cause: revive(cause) }
  if (thrown.isAbort) return Object.assign(new Abort(message, causes), { stack })
  return makeError({ name, message, stack, props, ...causes })
}
