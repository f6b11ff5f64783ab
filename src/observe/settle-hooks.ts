import type { ErrorRecord } from '../codec/error-text.js'
import type { AttemptEnd, HookLists, SettledAttempt } from '../job/attempt/hooks.js'
import { isThenable } from '../job/definition/schema.js'
import type { SettledJob } from '../store/store.js'
import type { EngineEvents } from './engine-events.js'

/** The same events, which also call the `settle` hooks for each end; without hooks, the events themselves. */
export function withSettleHooks(events: EngineEvents, hooks: HookLists['settle']): EngineEvents {
  if (hooks.length === 0) return events
  return {
    ...events,
    settled(job, ms, running) {
      events.settled(job, ms, running)
      // The job was claimed in advance and released: it never began, so no attempt ended.
      if (job.to === 'ready' && ms === undefined) return
      // A workflow that waits for something, or begins its next run, has ended no attempt.
      if (job.workflow?.suspended !== undefined || job.workflow?.restarted !== undefined) return
      const [attempt, end] = [attemptOf(job), endOf(job, ms)]
      for (const hook of hooks) callHook(hook, attempt, end, (error) => events.hookFailed('settle', job, error))
    },
  }
}

/** Calls a hook without waiting for it; its errors never reach the engine. */
function callHook(
  hook: HookLists['settle'][number],
  attempt: SettledAttempt,
  end: AttemptEnd,
  failed: (error: unknown) => void,
): void {
  try {
    const returned = hook(attempt, end)
    if (isThenable(returned)) returned.then(undefined, failed)
  } catch (error) {
    failed(error)
  }
}

const attemptOf = ({ id, name, queue, attempt }: SettledJob): SettledAttempt => ({ id, job: name, queue, attempt })

function endOf(job: SettledJob, ms: number | undefined): AttemptEnd {
  return {
    state: job.to,
    ms,
    error: job.error === null ? undefined : (JSON.parse(job.error) as ErrorRecord),
    reason: job.reason ?? undefined,
    againInMs: job.delayMs ?? undefined,
  }
}
