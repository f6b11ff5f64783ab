import { formatDuration } from '../job/duration/duration.js'
import type { Log } from '../world/log.js'
import type { SignalStops } from '../world/signals.js'
import type { Cancel } from '../world/timers.js'
import { deadlineOf } from './options.js'
import type { StopOptions } from './options.js'

/** Below the 30 s that Kubernetes, Heroku and ECS wait before they kill, with time for the last writes. */
const SIGNAL_DEADLINE_MS = 25_000

interface Closing {
  readonly mill: object
  /** `isEnding`: the process ends when this has resolved. */
  close(deadlineMs: number, isEnding: boolean): Promise<void>
}

/** Closes the mill when the process is asked to end. */
export function stopOnSignals(closing: Closing, signals: SignalStops, log: Log, options: StopOptions = {}): Cancel {
  const deadlineMs = deadlineOf(options, 'stopOnSignals()', SIGNAL_DEADLINE_MS)
  if (!signals.receivesSignals) log.write('warn', {}, NOT_HERE)
  return signals.add(closing.mill, {
    deadlineMs,
    async stop(signal, isShared) {
      const text = `${signal}: stopping; running jobs have ${formatDuration(deadlineMs)} to end, a second signal ends the process at once`
      log.write('info', { signal, deadlineMs }, text)
      try {
        await closing.close(deadlineMs, !isShared)
      } catch (error) {
        log.write('error', { err: error }, 'the mill could not be closed')
        throw error
      }
    },
  })
}

const NOT_HERE =
  'stopOnSignals() does nothing in a worker thread: signals come to the main thread, which should close this mill'
