import type { ErrorRecord } from '../codec/error-text.js'
import type { AttemptEnd, HookLists, SettledAttempt } from '../job/attempt/hooks.js'
import { isThenable } from '../job/definition/schema.js'
import type { SettledJob } from '../store/store.js'
import type { EngineEvents } from './engine-events.js'

/** The same events, with the hooks' `settle` told of each end; without hooks, the events themselves. */
export function tellSettled(events: EngineEvents, hooks: HookLists['settle']): EngineEvents {
  if (hooks.length === 0) return events
  return {
    ...events,
    settled(job, ms, running) {
      events.settled(job, ms, running)
      // Claimed in advance and given back: nothing of it began, so nothing ended.
      if (job.to === 'ready' && ms === undefined) return
      const [attempt, end] = [attemptOf(job), endOf(job, ms)]
      for (const hook of hooks) tell(hook, attempt, end, (error) => events.hookFailed('settle', job, error))
    },
  }
}

/** A hook is told and not waited for; nothing it does comes back to the engine. */
function tell(
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
