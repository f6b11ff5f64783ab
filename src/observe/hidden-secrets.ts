import { describeError } from '../codec/error-text.js'
import type { ErrorRecord } from '../codec/error-text.js'
import { isSecretReason, isReadableError } from '../job/secrets/secret-ends.js'
import type { SettledJob } from '../store/store.js'
import type { EngineEvents, ShownAttempt } from './engine-events.js'

const HIDDEN = 'encrypted'

/** The same events, whose log lines do not repeat what jobs with `encrypt` threw and logged; without such jobs, the events themselves. */
export function withoutSecrets(events: EngineEvents, encrypts: (name: string) => boolean): EngineEvents {
  const shown = (name: string, error: unknown): unknown => (encrypts(name) ? hiddenError(error) : error)
  return {
    ...events,
    settled: (job, ms, running) => events.settled(encrypts(job.name) ? hiddenEnd(job) : job, ms, running),
    threwAfterwards: (running, error) =>
      events.threwAfterwards(running, encrypts(running.job) ? hiddenRecord(error) : error),
    errorAfterEnd: (running, error) => events.errorAfterEnd(running, shown(running.job, error)),
    strayError: (running, error) => events.strayError(running, shown(running.job, error)),
    hookFailed: (which, job, error) => events.hookFailed(which, job, shown(job.name, error)),
    slow: (running, forMs) => events.slow(encrypts(running.job) ? hiddenActivity(running) : running, forMs),
    logLine: (running, logged) =>
      events.logLine(running, encrypts(running.job) ? { fields: {}, message: HIDDEN, line: HIDDEN } : logged),
  }
}

function hiddenEnd(job: SettledJob): SettledJob {
  if (job.error === null) return isSecretReason(job) ? { ...job, reason: HIDDEN } : job
  const error = JSON.parse(job.error) as ErrorRecord
  if (isReadableError(error)) return job
  return { ...job, error: JSON.stringify(hiddenRecord(error)), reason: isSecretReason(job) ? HIDDEN : job.reason }
}

/** The class of an error is no secret; its text, its stack and its fields may be. */
function hiddenRecord({ name, type }: ErrorRecord): ErrorRecord {
  return { name, message: HIDDEN, ...(type === undefined ? {} : { type }) }
}

function hiddenError(error: unknown): Error {
  return Object.assign(new Error(HIDDEN), { name: describeError(error).name, stack: '' })
}

function hiddenActivity(running: ShownAttempt): ShownAttempt {
  const { id, job, attempt, claimed, within } = running
  return { id, job, attempt, claimed, within, lastActivity: undefined }
}
