import { describeError } from '../../codec/error-text.js'
import { runThroughHook } from '../../job/attempt/run-hooks.js'
import type { Capture, RunInContext } from '../../job/attempt/capture.js'
import type { HookLists } from '../../job/attempt/hooks.js'
import type { Outcome } from '../../job/rules/outcome.js'
import { attemptInput } from './attempt-input.js'
import type { HandlerExecutor } from '../executors/loop.js'
import type { InFlightParts } from '../in-flight/in-flight-parts.js'
import { failure, runAttempt } from './run.js'
import type { Attempt } from './run.js'
import type { Running } from './running.js'

/** Runs an attempt in the async context that its job captured at enqueue. */
export type RunAttemptInContext = (running: Running, attempt: Attempt) => Outcome | Promise<Outcome>

type Parts = Pick<InFlightParts, 'world' | 'executor' | 'runInContext'>

/** Runs an attempt that has begun, in the context that its job captured, if any. */
export function runInCapturedContext(running: Running, parts: Parts): Outcome | Promise<Outcome> {
  const attempt = attemptInput(running, parts)
  return parts.runInContext === undefined ? runAttempt(attempt) : parts.runInContext(running, attempt)
}

/** The outcome of an attempt whose handler did not return in time; its retry policy is called in the handler's context. */
export function failureOf(running: Running, parts: Parts): Outcome {
  const fail = (): Outcome => failure(attemptInput(running, parts), running.abortReason)
  try {
    return running.within === undefined ? fail() : running.within(fail)
  } catch {
    return fail() // A context store of the application threw: the attempt ends all the same.
  }
}

/** Undefined when nothing is captured: then attempts are run directly, at no cost. */
export function contextRunner(capture: Capture | undefined): RunAttemptInContext | undefined {
  if (capture === undefined) return undefined
  return (running, attempt) => {
    let within: RunInContext | undefined
    try {
      within = capture.restore(running.options.captured)
    } catch (error) {
      // Like a payload that does not decode: the job is parked and no attempt is counted. Without its tenant it could run for another.
      return { kind: 'unreadable', error: describeError(error) }
    }
    if (within === undefined) return runAttempt(attempt)
    running.within = within
    return runWithin(within, attempt)
  }
}

/** A context store of the application may throw, unlike an AsyncLocalStorage; that fails the attempt. */
async function runWithin(within: RunInContext, attempt: Attempt): Promise<Outcome> {
  try {
    return await within(() => runAttempt(attempt))
  } catch (error) {
    return failure(attempt, error)
  }
}

/** The executor with the `start` hooks around each call; without hooks, the executor itself. */
export function hookedExecutor(
  executor: HandlerExecutor,
  hooks: HookLists['start'],
  failed: (running: Running, error: unknown) => void,
): HandlerExecutor {
  if (hooks.length === 0) return executor
  return {
    ...executor,
    call(handler, payload, running) {
      const step = (at: number): unknown => {
        const hook = hooks[at]
        if (hook === undefined) return executor.call(handler, payload, running)
        return runThroughHook(
          'start',
          (next) => hook(running, next as () => Promise<unknown>),
          // The hook always gets a promise, also of a synchronous handler.
          async () => step(at + 1),
          { failed: (error) => failed(running, error) },
        )
      }
      return step(0)
    },
  }
}
