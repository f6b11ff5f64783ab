import type { EngineEvents, Shown } from './engine-events.js'

/** The same events, told with what the job captured in place: a logger that asks for the tenant gets this job's. */
export function toldInContext(events: EngineEvents): EngineEvents {
  return {
    ...events,
    settled: (job, ms, running) => within(running, () => events.settled(job, ms, running)),
    slow: (running, forMs) => within(running, () => events.slow(running, forMs)),
  }
}

/** A store of the user's that throws costs the context and never the line: the engine goes on from here. */
function within(running: Shown | undefined, tell: () => void): void {
  if (running?.within === undefined) return tell()
  let told = false
  const once = (): void => {
    if (told) return
    told = true
    tell()
  }
  try {
    running.within(once)
  } catch {
    once()
  }
}
