import type { EngineEvents, ShownAttempt } from './engine-events.js'

/** The same events, sent with the captured context of the job in place: a logger that reads the tenant gets that of the job. */
export function eventsInContext(events: EngineEvents): EngineEvents {
  return {
    ...events,
    settled(job, ms, running) {
      if (running?.within === undefined) events.settled(job, ms, running)
      else sendWithin(running.within, () => events.settled(job, ms, running))
    },
    slow(running, forMs) {
      if (running.within === undefined) events.slow(running, forMs)
      else sendWithin(running.within, () => events.slow(running, forMs))
    },
  }
}

/** If a captured store of the user throws, the event is sent without the context. */
function sendWithin(within: NonNullable<ShownAttempt['within']>, send: () => void): void {
  let isSent = false
  const once = (): void => {
    if (isSent) return
    isSent = true
    send()
  }
  try {
    within(once)
  } catch {
    once()
  }
}
