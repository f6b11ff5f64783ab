import type { ErrorRecord } from '../codec/error-text.js'
import { formatDuration } from '../job/duration.js'
import type { State } from '../job/states.js'
import type { Ask } from '../job/wish.js'
import type { StandingPause } from '../store/queues.js'
import type { ClaimedJob, LeasedJob, NewJob, SettledJob } from '../store/store.js'
import type { Log } from '../world/log.js'
import { logAsked, logQueue, logTransition } from './log-lines.js'

/** What a running job shows of itself. */
interface Shown {
  readonly id: string
  readonly job: string
  readonly lastWord: string | undefined
}

/** What the engine's parts tell, turned into log lines. */
export interface EngineEvents {
  enqueued(jobs: readonly NewJob[]): void
  /** A command, or the end of its time, moved a job that no worker holds. */
  changed(
    job: { readonly id: string; readonly name: string; readonly queue: string },
    to: State | 'gone',
    reason: string | undefined,
  ): void
  /** Something was asked of a job that runs. */
  asked(job: { readonly id: string; readonly name: string; readonly queue: string }, ask: Ask): void
  /** A queue was paused, or runs again (undefined). */
  queuePaused(queue: string, pause: StandingPause | undefined): void
  began(job: ClaimedJob): void
  settled(job: SettledJob, tookMs: number | undefined): void
  rescued(worker: string, jobs: readonly LeasedJob[], parked: number): void
  lost(what: string): void
  troubled(what: string, error: unknown): void
  slow(running: Shown, forMs: number): void
  logLine(running: Shown, line: string): void
}

/** A fault of the store repeats many times a second; it is said when it is new, and again after this many. */
const REPEAT_EVERY = 100

export function engineEvents(log: Log): EngineEvents {
  const troubles = new Map<string, number>()
  return {
    enqueued(jobs) {
      if (!log.debugs) return
      for (const { id, name, queue, due } of jobs) {
        const later = 'at' in due || due.inMs > 0
        logTransition(log, {
          id,
          job: name,
          queue,
          to: later ? 'scheduled' : 'ready',
          dueInMs: 'inMs' in due ? due.inMs : undefined,
        })
      }
    },
    changed({ id, name, queue }, to, reason) {
      if (to === 'gone') log.write('info', { id, queue }, `deleted ${name}`)
      else logTransition(log, { id, job: name, queue, to, reason })
    },
    asked: (job, ask) => logAsked(log, job, ask),
    queuePaused: (queue, pause) => logQueue(log, queue, pause),
    began(job) {
      if (log.debugs)
        logTransition(log, { id: job.id, job: job.name, queue: job.queue, to: 'running', tries: job.attempt + 1 })
    },
    settled(job, ms) {
      logTransition(log, {
        id: job.id,
        job: job.name,
        queue: job.queue,
        to: job.to,
        tries: job.attempt,
        ms,
        dueInMs: job.delayMs,
        error: job.error === null ? undefined : (JSON.parse(job.error) as ErrorRecord),
        reason: job.reason,
      })
    },
    rescued(worker, jobs, parked) {
      const fields = { worker, jobs: jobs.length, ...(parked === 0 ? {} : { parked }) }
      log.write('warn', fields, 'rescued: a worker died; what it held runs again, each job alone first')
    },
    lost: (what) => log.write('warn', {}, `lost ${what}: its claim was gone, and nothing of it was recorded`),
    troubled(what, error) {
      const text = error instanceof Error ? error.message : String(error)
      const times = troubles.get(what + text) ?? 0
      troubles.set(what + text, times + 1)
      if (troubles.size > 100) troubles.clear()
      if (times % REPEAT_EVERY === 0) log.write('error', { error: text }, `cannot ${what} for now; it is tried again`)
    },
    slow({ id, job, lastWord }, forMs) {
      const word = lastWord === undefined ? {} : { last: lastWord }
      log.write('error', { id, ...word }, `slow ${job}: running for ${formatDuration(forMs)}`)
    },
    logLine: ({ id, job }, line) => log.write('info', { id }, `${job}: ${line}`),
  }
}
