import { defaultCodec } from '../codec/codec.js'
import type { Capture } from '../job/attempt/capture.js'
import { listHooks } from '../job/attempt/hooks.js'
import type { HookLists } from '../job/attempt/hooks.js'
import type { EngineEvents } from '../observe/engine-events.js'
import { eventsInContext } from '../observe/events-in-context.js'
import { withEnqueueHooks } from '../observe/engine-enqueue-hooks.js'
import type { WrittenJobs } from '../observe/engine-enqueue-hooks.js'
import { withSettleHooks } from '../observe/settle-hooks.js'
import type { HandlerExecutor } from '../worker/executors/loop.js'
import { hookedExecutor, contextRunner } from '../worker/attempt/attempt-host.js'
import type { RunAttemptInContext } from '../worker/attempt/attempt-host.js'
import { captureOf } from './parts-from-options.js'
import type { MillOptions } from './options.js'

/** The parts of a mill, wrapped in the app's hooks and captured context. */
export interface HooksAndContext {
  readonly events: EngineEvents
  readonly executor: HandlerExecutor
  readonly capture: Capture | undefined
  readonly runInContext: RunAttemptInContext | undefined
  readonly enqueueHooks: HookLists['enqueue']
}

/** Without hooks and without captured context each part is returned unwrapped: apps that use neither pay nothing. */
export function withHooksAndContext(
  options: Pick<MillOptions, 'capture' | 'codec' | 'hooks'>,
  parts: { readonly events: EngineEvents; readonly executor: HandlerExecutor; readonly written: WrittenJobs },
): HooksAndContext {
  const hooks = listHooks(options.hooks)
  const capture = captureOf(options.capture, options.codec ?? defaultCodec)
  const settling = withSettleHooks(parts.events, hooks.settle)
  const events = withEnqueueHooks(settling, hooks.enqueue, { ...parts.written, capture })
  return {
    events: capture === undefined ? events : eventsInContext(events),
    executor: hookedExecutor(parts.executor, hooks.start, ({ id, job }, error) =>
      parts.events.hookFailed('start', { id, name: job }, error),
    ),
    capture,
    runInContext: contextRunner(capture),
    enqueueHooks: hooks.enqueue,
  }
}
