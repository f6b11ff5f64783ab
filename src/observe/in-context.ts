import type { EngineEvents, Shown } from './engine-events.js'

/** The same events, told with what the job captured in place: a logger that asks for the tenant gets this job's. */
export function toldInContext(events: EngineEvents): EngineEvents {
  return {
    ...events,
    settled(job, ms, running) {
      if (running?.within === undefined) events.settled(job, ms, running)
      else tellWithin(running.within, () => events.settled(job, ms, running))
    },
    slow(running, forMs) {
      if (running.within === undefined) events.slow(running, forMs)
      else tellWithin(running.within, () => events.slow(running, forMs))
    },
  }
}

/** A store of the user's that throws costs the context and never the line: the engine goes on from here. */
function tellWithin(within: NonNullable<Shown['within']>, tell: () => void): void {
  let told = false
  const once = (): void => {
    if (told) return
    told = true
    tell()
  }
  try {
    within(once)
  } catch {
    once()
  }
}
