import type { JobEdit } from '../client/commands/edit.js'
import type { FlowBuilder, FlowHandles } from '../client/flow/flow.js'
import type { GroupHandle, GroupOptions } from '../client/commands/groups.js'
import type { QueueHandle } from '../client/commands/queues.js'
import type { AnyJob, Job } from '../job/definition/define.js'
import type { Duration, When } from '../job/duration/duration.js'
import type { EnqueueArguments, EnqueueOptions, Enqueueable, Handle } from '../job/enqueue.js'
import type { CountFilter, Findable, FoundRecord, JobCount, JobFilter, JobRecord } from '../job/record.js'
import type { RuleInput } from '../schedule/calendar.js'
import type { RecurringOptions, ScheduleRecord } from '../schedule/record.js'
import type { Schedules } from '../schedule/recurring.js'
import type { Upcoming } from '../schedule/upcoming.js'
import type { MillOptions } from './options.js'

/** A registered job as `mill.jobs()` lists it. */
export interface ListedJob {
  readonly name: string
  readonly description: string | undefined
  readonly queue: string
  readonly priority: number
  readonly timeoutMs: number
  readonly retryLimit: number
  readonly categories: readonly string[]
  readonly labels: readonly string[]
  readonly job: AnyJob
}

/** Your job engine: enqueues at once, runs jobs between `start()` and `stop()`. */
export interface Mill {
  /**
   * Enqueues a job; when this resolves, the job is on disk.
   *
   * ```ts
   * import { job, millrace } from 'millrace'
   * const greet = job('greet', async (p: { name: string }) => `hello ${p.name}`)
   * const mill = await millrace({ store: ':memory:', jobs: [greet] })
   * const handle = await mill.enqueue(greet, { name: 'Ada' }, { labels: ['welcome'] })
   * ```
   */
  enqueue<Payload = unknown, Result = unknown>(
    job: Job<Payload, Result> | string,
    ...rest: EnqueueArguments<NoInfer<Payload>>
  ): Promise<Handle<Result, Payload>>

  /** Enqueues all of them or none; an error names the index. */
  enqueueMany<Payload = unknown, Result = unknown>(
    job: Job<Payload, Result> | string,
    payloads: readonly NoInfer<Payload>[],
    options?: EnqueueOptions | ((payload: NoInfer<Payload>, index: number) => EnqueueOptions),
  ): Promise<Handle<Result, Payload>[]>

  /**
   * Enqueues for later. Under a key, the one that waits is moved; if that job is running, a successor is written, which is
   * blocked until the job ends.
   */
  schedule<Payload = unknown, Result = unknown>(
    job: Job<Payload, Result> | string,
    payload: NoInfer<Payload>,
    when: When | Duration | number,
    options?: ScheduleOptions,
  ): Promise<Handle<Result, Payload>>

  /**
   * Enqueues a job again and again: by a cron text in a time zone, or every so often. The same id updates it in place; a call
   * that changes nothing writes nothing, so make it at every start.
   *
   * ```ts
   * import { job, millrace } from 'millrace'
   * const digest = job('digest', async () => 'sent')
   * const mill = await millrace({ store: ':memory:', jobs: [digest] })
   * await mill.recurring('daily-digest', digest, undefined, '0 9 * * *', { timezone: 'Europe/Oslo' })
   * ```
   */
  recurring<Payload = unknown>(
    id: string,
    job: Job<Payload, unknown> | string,
    payload: NoInfer<Payload>,
    rule: RuleInput,
    options?: RecurringOptions,
  ): Promise<ScheduleRecord>
  /** Forgets a recurring job with its ledger; jobs that were enqueued stay. False when there was none. */
  deleteRecurring(id: string): Promise<boolean>
  /** Recurring jobs by their ids: list, get, pause, resume, runNow, backfill, ticks. */
  readonly schedules: Schedules
  /** What will run within a span, recurring jobs included, in the order of its times: the nearest 1,000, or `limit`. */
  upcoming(span: Duration | number, options?: { readonly limit?: number }): Promise<Upcoming[]>

  /**
   * Enqueues a whole graph in one transaction: all of it or nothing. Gives what `build` returned, with handles in place of
   * nodes; all handles, in the order they were added, where it returned nothing.
   *
   * ```ts
   * import { job, millrace } from 'millrace'
   * const extract = job('extract', async (p: { file: string }) => 42)
   * const load = job('load', async (p: undefined, ctx) => (await ctx.results(extract)).length)
   * const mill = await millrace({ store: ':memory:', jobs: [extract, load] })
   * const loaded = await mill.flow((f) => {
   *   const parts = ['a.csv', 'b.csv'].map((file) => f.add(extract, { file }))
   *   return f.add(load, undefined, { after: parts })
   * })
   * ```
   */
  flow<Built>(build: (f: FlowBuilder) => Built, options?: { readonly tx?: unknown }): Promise<FlowHandles<Built>>

  /** True when a job was still waiting under that key, and now never runs. */
  unschedule(job: Enqueueable, key: string): Promise<boolean>

  /** Begins to run jobs. A second call does nothing. */
  start(): Promise<void>
  /** Claims no more, lets running jobs finish until the deadline (30 s), gives the rest back. It can be started again. */
  stop(options?: { readonly deadline?: Duration | number | undefined }): Promise<void>
  /** Stops, and lets go of the store. */
  close(options?: { readonly deadline?: Duration | number | undefined }): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
  /**
   * Closes this mill on SIGTERM or SIGINT (Ctrl-C), with a deadline of 25 s, and then ends the process: code 0, or 1 when it could
   * not be closed. A second signal ends it at once. Gives a function that undoes it.
   *
   * ```ts
   * import { job, millrace } from 'millrace'
   * const greet = job('greet', async (p: { name: string }) => `hello ${p.name}`)
   * const mill = await millrace({ store: ':memory:', jobs: [greet] })
   * mill.stopOnSignals()
   * await mill.start()
   * ```
   */
  stopOnSignals(options?: { readonly deadline?: Duration | number | undefined }): () => void

  /** A job's record; undefined when no job has that id, also where the text is no id at all. */
  get(id: string): Promise<JobRecord | undefined>
  /**
   * Every job that fits, newest first, read page by page as you go. Records are typed where `job` is a job's value, or a list
   * of them. There is no cursor to keep: the loop reads on until it ends.
   *
   * ```ts
   * import { millrace } from 'millrace'
   * const mill = await millrace({ store: ':memory:' })
   * for await (const record of mill.find({ state: 'failed', limit: 50 })) console.log(record.id, record.error?.message)
   * await mill.close()
   * ```
   */
  find<Wanted extends Findable | readonly Findable[] = string>(
    filter?: JobFilter<Wanted>,
  ): AsyncIterableIterator<FoundRecord<Wanted>>
  /**
   * How many jobs fit: `{ count, exact }`. Counting stops at 10,000, and `exact` is false when there are more. Members of a
   * group that have not ended are read from its counters, whatever their number.
   */
  count(filter?: CountFilter): Promise<JobCount>
  /** A handle for an id you kept. */
  handle(id: string): Handle<unknown>
  /** Runs a failed, cancelled, parked or retrying job again, now, with all its retries. False when it is none of those. */
  retry(id: string): Promise<boolean>
  /**
   * Cancels a job. One that waits is cancelled at once. One that runs, wherever that is, is told through `ctx.signal`, and
   * never begins again; if its handler returns all the same, it is done. False when it has ended, is parked or unknown.
   */
  cancel(id: string): Promise<boolean>
  /**
   * Pauses a job that waits. One that runs goes on, and is paused if it would be tried again. False when it has ended, was
   * cancelled, is parked or unknown.
   */
  pause(id: string): Promise<boolean>
  /** Lets a paused job go on, with its time and its retries as they were. False when it is not paused. */
  resume(id: string): Promise<boolean>
  /** A queue by its name: `pause()`, `resume()` and `pauseUntil(…)` it, for every process. */
  queue(name: string): QueueHandle
  /**
   * A group by its name: `progress()`, `seal()`, and verbs for all of its members. Nothing is written before `seal()`.
   *
   * ```ts
   * import { job, millrace } from 'millrace'
   * const send = job('send', async (p: { to: string }) => p.to)
   * const report = job('report', async (p: { campaign: string }) => p.campaign)
   * const mill = await millrace({ store: ':memory:', jobs: [send, report] })
   * const campaign = mill.group('spring', { whenDone: [report, { campaign: 'spring' }] })
   * await mill.enqueueMany(send, [{ to: 'a@example.com' }, { to: 'b@example.com' }], { group: 'spring' })
   * await campaign.seal()
   * console.log((await campaign.progress()).unfinished)
   * ```
   */
  group<Payload = unknown, Result = unknown>(id: string, options?: GroupOptions<Payload, Result>): GroupHandle
  /** Forgets a job that is not running. */
  delete(id: string): Promise<boolean>
  /** Changes a job that waits; a parked one becomes ready. */
  edit(id: string, change: JobEdit): Promise<boolean>

  /** Every job registered here. */
  jobs(): readonly ListedJob[]
  has(name: string): boolean
  /** Runs a registered job's handler here and now, outside the queue. */
  run(name: string, payload?: unknown): Promise<unknown>
  /** Adds a job, also while running. */
  register(job: Job<never, unknown> | AnyJob): void
  /** Changes concurrency, queues, poll, crashBudget or slowAfter while running. */
  configure(change: Partial<MillOptions>): void
}

export type ScheduleOptions = Omit<EnqueueOptions, 'in' | 'at'>
