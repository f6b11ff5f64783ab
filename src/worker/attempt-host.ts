import { describeError } from '../codec/error-text.js'
import { runThroughHook } from '../job/attempt/run-hooks.js'
import type { Capture, RunInContext } from '../job/attempt/capture.js'
import type { HookLists } from '../job/attempt/hooks.js'
import type { Outcome } from '../job/rules/outcome.js'
import { attemptOf } from './attempt-of.js'
import type { Executor } from './executors/loop.js'
import type { HandParts } from './in-flight-parts.js'
import { failure, runAttempt } from './run.js'
import type { Attempt } from './run.js'
import type { Running } from './running.js'

/** Runs an attempt with what was captured at its enqueue in place. */
export type Surround = (running: Running, attempt: Attempt) => Outcome | Promise<Outcome>

type Parts = Pick<HandParts, 'world' | 'executor' | 'surround'>

/** Runs what was begun. */
export function runBegun(running: Running, parts: Parts): Outcome | Promise<Outcome> {
  const attempt = attemptOf(running, parts)
  return parts.surround === undefined ? runAttempt(attempt) : parts.surround(running, attempt)
}

/** What becomes of an attempt that never came back; its retry policy is asked where its handler ran. */
export function failureOf(running: Running, parts: Parts): Outcome {
  const ask = (): Outcome => failure(attemptOf(running, parts), running.abortReason)
  try {
    return running.within === undefined ? ask() : running.within(ask)
  } catch {
    return ask() // A store of the user's threw: the attempt ends all the same.
  }
}

/** Undefined when nothing is captured: then attempts are run as they are, at no cost. */
export function surroundWith(capture: Capture | undefined): Surround | undefined {
  if (capture === undefined) return undefined
  return (running, attempt) => {
    let within: RunInContext | undefined
    try {
      within = capture.restore(running.options.captured)
    } catch (error) {
      // Like a payload that does not decode: parked, no try burnt. To run without a tenant could be to run for another.
      return { kind: 'unreadable', error: describeError(error) }
    }
    if (within === undefined) return runAttempt(attempt)
    running.within = within
    return inPlace(within, attempt)
  }
}

/** A store of the user's may throw where an AsyncLocalStorage never does; that is the attempt's failure. */
async function inPlace(within: RunInContext, attempt: Attempt): Promise<Outcome> {
  try {
    return await within(() => runAttempt(attempt))
  } catch (error) {
    return failure(attempt, error)
  }
}

/** The executor behind the hooks' `start`; without hooks, the executor itself. */
export function hookedExecutor(
  executor: Executor,
  hooks: HookLists['start'],
  failed: (running: Running, error: unknown) => void,
): Executor {
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
          // Always a promise for the hook, whatever the handler is.
          async () => step(at + 1),
          { failed: (error) => failed(running, error) },
        )
      }
      return step(0)
    },
  }
}
