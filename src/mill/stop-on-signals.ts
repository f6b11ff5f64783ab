import { formatDuration } from '../job/duration/duration.js'
import type { Log } from '../world/log.js'
import type { SignalStops } from '../world/signals.js'
import type { Cancel } from '../world/timers.js'
import { deadlineOf } from './options.js'
import type { StopOptions } from './options.js'

/** Kubernetes, Heroku and ECS kill a process 30 s after SIGTERM: this leaves time for the last writes. */
const SIGNAL_DEADLINE_MS = 25_000

interface Closing {
  readonly mill: object
  /** `isEnding`: the process exits when this has resolved. */
  close(deadlineMs: number, isEnding: boolean): Promise<void>
}

/** Closes the mill on SIGTERM or SIGINT. */
export function stopOnSignals(closing: Closing, signals: SignalStops, log: Log, options: StopOptions = {}): Cancel {
  const deadlineMs = deadlineOf(options, 'stopOnSignals()', SIGNAL_DEADLINE_MS)
  if (!signals.receivesSignals) log.write('warn', {}, NO_SIGNALS)
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

const NO_SIGNALS =
  'stopOnSignals() does nothing in a worker thread: the main thread receives the signals, and should close this mill'
