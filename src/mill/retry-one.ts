import { reviveError } from '../codec/error-text.js'
import type { ErrorRecord } from '../codec/error-text.js'
import { RetryHeldError } from '../errors.js'
import type { AuditNote } from '../job/command-options.js'
import { isSequence } from '../job/definition/stored-options.js'
import type { JobRecord } from '../job/record.js'
import { decideCommand } from '../job/rules/command.js'
import { RetryNotStarted } from '../store/limits.js'
import type { RetriedJob } from '../store/limits.js'
import type { FindQuery } from '../store/find.js'
import type { JobRow } from '../store/store.js'
import type { ClaimPlan } from '../worker/claim.js'
import type { WorkerEvents } from '../worker/in-flight/in-flight-parts.js'
import { Worker } from '../worker/worker.js'
import type { PartsToStart } from './started-parts.js'

/** What became of a retried job. */
export interface RetriedOne {
  /** The job after the attempt. */
  readonly record: JobRecord
  /** What the attempt failed with, with its stack and causes; undefined when it did not fail. */
  readonly error: Error | undefined
}

/** Gives up after this many jobs that another process changed first. */
const TRIES = 20
/** Jobs that are read at a time, and the pages that are read, to find one that is not a workflow or a sequence. */
const PAGE = 50
const PAGES_MAX = 20

export interface RetryOneParts {
  readonly parts: PartsToStart
  readonly queue: string
  readonly audit: AuditNote | undefined
  readonly get: (id: string) => Promise<JobRecord | undefined>
  /** Called with how to stop the attempt when the mill stops. */
  readonly started: (stop: (deadlineMs: number) => Promise<void>) => void
}

/**
 * Runs the oldest error of a queue by a worker of its own, which claims nothing else: the retry and the claim are one
 * transaction, so that no other worker takes the job. The worker has a lease, as any other: if this process dies, the job is
 * rescued.
 */
export async function retryOne(given: RetryOneParts): Promise<RetriedOne | null> {
  for (let tries = 1; ; tries += 1) {
    const row = await oldestError(given)
    if (row === undefined) return null
    const outcome = await runAlone(given, retriedOf(row, given.audit))
    if (outcome === 'stale' && tries < TRIES) continue
    if (outcome === 'held' || outcome === 'stale') throw new RetryHeldError(given.queue, row.id)
    const record = await given.get(row.id)
    // Not kept: the settlement says what came of it.
    return record === undefined ? null : { record, error: errorOf(record) }
  }
}

/** A job that is retried or done since has no error. */
function errorOf({ error }: JobRecord): Error | undefined {
  return error === undefined ? undefined : reviveError(error as ErrorRecord)
}

/** Of the jobs that this process can run, the one that was enqueued first. */
async function oldestError({ parts: { store, registry }, queue }: RetryOneParts): Promise<JobRow | undefined> {
  let query: FindQuery = {
    names: registry.claimable(),
    queues: [queue],
    states: ['failed', 'retrying', 'parked'],
    order: 'oldest',
    limit: PAGE,
    cursor: null,
  }
  for (let pages = 0; pages < PAGES_MAX; pages += 1) {
    const page = await store.jobs.findJobs(query)
    const found = page.rows.find((row) => row.shape === null && !isSequence(row.options))
    if (found !== undefined || page.cursor === null) return found
    query = { ...query, cursor: page.cursor }
  }
  return undefined
}

function retriedOf({ ref, id, name, queue, state }: JobRow, audit: AuditNote | undefined): RetriedJob {
  const to = decideCommand(state, 'retry')?.to ?? 'ready'
  const change = { id, name, from: state, to, due: { inMs: 0 }, exit: 'retried', freshRetries: true, keepMs: Infinity }
  return { ref, name, queue, change: { ...change, audit } }
}

/** 'ended' when the end of the attempt is written, or its claim was lost. */
async function runAlone({ parts, started }: RetryOneParts, only: RetriedJob): Promise<'ended' | 'stale' | 'held'> {
  const attempt = new Attempt(only.change.id)
  const worker = new Worker(
    { ...parts, only, events: attempt.watched(parts.events), planClaim: () => attempt.plan() },
    { ...parts.options(), concurrency: 1, queues: new Map(), pollMs: Infinity },
  )
  await worker.start()
  const stop = (deadlineMs: number): Promise<void> => worker.stop(deadlineMs)
  started(stop)
  try {
    // Settled by the first of these: the claim fails, or it has taken the job and the attempt ends.
    await worker.idle()
    return await attempt.ended
  } finally {
    await stop(0)
  }
}

class Attempt {
  readonly #id: string
  #isPlanned = false
  #end: (outcome: 'ended' | 'stale' | 'held') => void = () => undefined
  #fail: (error: unknown) => void = () => undefined
  readonly ended = new Promise<'ended' | 'stale' | 'held'>((resolve, reject) => {
    this.#end = resolve
    this.#fail = reject
  })

  constructor(id: string) {
    this.#id = id
    // The caller awaits it after the claim, which may fail before.
    this.ended.catch(() => undefined)
  }

  /** One claim, of the one job. */
  plan(): ClaimPlan {
    if (this.#isPlanned) return { claim: false }
    this.#isPlanned = true
    return { claim: true, max: 1, starting: 1, suspects: 'none' }
  }

  watched<Events extends WorkerEvents>(events: Events): Events {
    return {
      ...events,
      settled: (job, tookMs, running) => {
        events.settled(job, tookMs, running)
        if (job.id === this.#id) this.#end('ended')
      },
      lost: (what) => {
        events.lost(what)
        if ('worker' in what || what.id === this.#id) this.#end('ended')
      },
      storeFailed: (what, error) => {
        if (what !== 'claim') events.storeFailed(what, error)
        else if (error instanceof RetryNotStarted) this.#end(error.why)
        else this.#fail(error)
      },
    } satisfies Partial<WorkerEvents> as Events
  }
}
