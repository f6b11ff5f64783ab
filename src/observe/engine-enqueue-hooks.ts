import { AsyncResource } from 'node:async_hooks'
import { HookError } from '../errors.js'
import type { Capture } from '../job/attempt/capture.js'
import type { EnqueueCall, EnqueueItem, EnqueueNext, HookLists } from '../job/attempt/hooks.js'
import { runThroughHook } from '../job/attempt/run-hooks.js'
import { isOfSql, readOptions } from '../job/definition/stored-options.js'
import type { EnqueueOptions, Handle } from '../job/enqueue.js'
import type { Encoded } from '../job/rules/outcome.js'
import type { ClaimedJob, NewJob } from '../store/store.js'
import type { EngineEvents, EnqueuedBy } from './engine-events.js'

/** How the hooks see jobs that are written already. */
export interface WrittenJobs {
  readonly handle: (id: string) => Handle<unknown>
  /** Undefined when it does not decode here. */
  readonly decode: (name: string, payload: Encoded, version: number) => unknown
}

type Parts = WrittenJobs & { readonly capture: Capture | undefined }
type Cause = EnqueuedBy | { readonly verb: 'sql' }

/**
 * The same events, which also call the `enqueue` hooks for jobs that no call of the app enqueued: those of ticks and of `whenDone`
 * after this process wrote them, and those of the SQL function `add_job` when a worker of this process begins them. Without hooks, the events themselves.
 */
export function withEnqueueHooks(events: EngineEvents, hooks: HookLists['enqueue'], parts: Parts): EngineEvents {
  if (hooks.length === 0) return events
  // The commit that wakes the scheduler or the promoter is made in the context of an unrelated caller.
  const context = new AsyncResource('millrace.enqueue-hooks')
  const notify = (cause: Cause, jobs: readonly (NewJob | ClaimedJob)[]): void => {
    const [first] = jobs
    if (first === undefined) return
    const failed = (error: unknown): void => events.hookFailed('enqueue', first, error)
    try {
      const { captured } = readOptions(first.options)
      const restore = parts.capture?.restore(captured) ?? ((call: () => void) => call())
      const call = callOf(cause, first, jobs, parts)
      const written = Promise.resolve(jobs.map(({ id }) => parts.handle(id)))
      context.runInAsyncScope(() => restore(() => void callFrom(0, { hooks, call, written, failed })))
    } catch (error) {
      failed(error)
    }
  }
  return {
    ...events,
    enqueued(jobs, by) {
      events.enqueued(jobs, by)
      if (by !== undefined) notify(by, jobs)
    },
    began(job) {
      events.began(job)
      if (isFirstRun(job) && isOfSql(job.options)) notify({ verb: 'sql' }, [job])
    },
  }
}

/** A job that was given back by a stop before its handler was called is seen twice. */
const isFirstRun = ({ attempt, retries, crashes, log }: ClaimedJob): boolean =>
  attempt + retries + crashes === 0 && log === null

interface Passing {
  readonly hooks: HookLists['enqueue']
  readonly call: EnqueueCall
  readonly written: Promise<Handle<unknown>[]>
  readonly failed: (error: unknown) => void
}

/** Nests the hooks, the first outermost. The jobs are written: a hook that throws keeps no other hook from being called. */
function callFrom(at: number, passing: Passing): Promise<Handle<unknown>[]> {
  const { hooks, call, written, failed } = passing
  const hook = hooks[at]
  if (hook === undefined) return written
  let isPassed = false
  const inner = (change?: unknown): unknown => {
    isPassed = true
    if (change !== undefined) failed(optionsIgnored(call.verb))
    return callFrom(at + 1, passing)
  }
  const ended = (error: unknown): void => {
    failed(error)
    if (!isPassed) void callFrom(at + 1, passing)
  }
  try {
    const run = runThroughHook('enqueue', (next) => hook(call, next as EnqueueNext), inner, { failed })
    Promise.resolve(run).catch(ended)
  } catch (error) {
    ended(error)
  }
  return written
}

const optionsIgnored = (verb: string): HookError =>
  new HookError(
    `hooks.enqueue gave options to next() for a job that is written already, and they change nothing; call next() without options where call.verb is '${verb}'`,
  )

function callOf(
  cause: Cause,
  first: NewJob | ClaimedJob,
  jobs: readonly (NewJob | ClaimedJob)[],
  parts: Parts,
): EnqueueCall {
  return { ...cause, job: first.name, queue: first.queue, items: jobs.map((job) => itemOf(job, parts)) }
}

function itemOf(job: NewJob | ClaimedJob, { decode }: Parts): EnqueueItem {
  const { title, labels, version } = readOptions(job.options)
  const given: EnqueueOptions = {
    queue: job.queue,
    ...(job.key === null ? {} : { key: job.key }),
    ...(typeof job.group === 'string' ? { group: job.group } : {}),
    ...(title === undefined ? {} : { title }),
    ...(labels === undefined ? {} : { labels }),
  }
  return { payload: decode(job.name, job.payload, version ?? 0), options: Object.freeze(given) }
}
