import type { LiveState } from '../job/live-state.js'
import type { Context } from '../reactive/index.js'
import type { JobEdit } from '../client/commands/edit.js'
import type { FlowBuilder, FlowHandles } from '../client/flow/flow.js'
import type { GroupHandle, GroupOptions } from '../client/commands/groups.js'
import type { Sequence } from '../client/sequence/sequence.js'
import type { SequenceOptions } from '../client/sequence/write-sequence.js'
import type { BulkCommandOptions, BulkPreview, BulkResult } from '../client/commands/command-all.js'
import type { AuditOptions, AuditRecord } from '../client/read/audit.js'
import type { Stats } from '../client/statistics/stats.js'
import type { FindPageOptions, FoundJobs } from '../client/read/find-page.js'
import type { GroupRecord, SequenceRecord, WorkerRecord } from '../client/read/lists.js'
import type { Page, PageOptions } from '../client/read/page.js'
import type { Why } from '../job/why/why.js'
import type { CommandOptions } from '../job/command-options.js'
import type { SendArguments, SendOptions, SendTarget } from '../client/workflow/send.js'
import type { StepsOptions } from '../client/workflow/step-records.js'
import type { StepRecord } from '../job/workflow-record.js'
import type { Event } from '../workflow/work.js'
import type { Change, ChangesEnd, ChangesOptions, StopChangesOptions } from '../client/read/changes.js'
import type { MillEvent } from '../observe/transitions.js'
import type { LiveQueue, QueueHandle } from '../client/commands/queues.js'
import type { AnyJob, Job } from '../job/definition/define.js'
import type { Duration, When } from '../job/duration/duration.js'
import type { EnqueueArguments, EnqueueOptions, Enqueueable, Handle } from '../job/enqueue.js'
import type { CountFilter, Findable, FoundRecord, JobCount, JobFilter, JobRecord } from '../job/record.js'
import type { RuleInput } from '../schedule/calendar.js'
import type { RecurringOptions, ScheduleRecord } from '../schedule/record.js'
import type { Schedules } from '../schedule/recurring.js'
import type { UpcomingBins, UpcomingBinsOptions } from '../schedule/upcoming-bins.js'
import type { Upcoming } from '../schedule/upcoming.js'
import type { CheckFinding } from './check-stored-jobs.js'
import type { RetriedOne } from './retry-one.js'
import type { HealthReport } from '../observe/health/health.js'
import type { DashboardListenOptions, ServedDashboard } from './dashboard-options.js'
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
  /** The JSON Schema of its payload, where its schema offers Standard JSON Schema; undefined elsewhere. */
  readonly inputSchema: Readonly<Record<string, unknown>> | undefined
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

  /** Enqueues all payloads or none. An error names the index of each bad item. */
  enqueueMany<Payload = unknown, Result = unknown>(
    job: Job<Payload, Result> | string,
    payloads: readonly NoInfer<Payload>[],
    options?: EnqueueOptions | ((payload: NoInfer<Payload>, index: number) => EnqueueOptions),
  ): Promise<Handle<Result, Payload>[]>

  /**
   * Enqueues a job for later. With a key, a waiting job of that key gets the new time and payload; if that job is running, a
   * successor is written, which is blocked until the job ends.
   */
  schedule<Payload = unknown, Result = unknown>(
    job: Job<Payload, Result> | string,
    payload: NoInfer<Payload>,
    when: When | Duration | number,
    options?: ScheduleOptions,
  ): Promise<Handle<Result, Payload>>

  /**
   * Enqueues a job repeatedly: by a cron expression in a time zone, or at an interval. A call with the same id updates the
   * schedule; a call that changes nothing writes nothing, so it can be made at every start.
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
  /** Deletes a schedule and its ledger; jobs that it enqueued stay. False when there was none. */
  deleteRecurring(id: string, options?: CommandOptions): Promise<boolean>
  /** Recurring jobs by their ids: list, get, pause, resume, runNow, backfill, ticks. */
  readonly schedules: Schedules
  /** The runs due within a span, schedules included, earliest first: at most 1,000, or `limit`. */
  upcoming(span: Duration | number, options?: { readonly limit?: number }): Promise<Upcoming[]>

  /**
   * How many runs are due within a span, by queue, in parts of equal length: 48, or `bins`. Counting stops at 50,000 jobs and as many
   * ticks; then `exact` is false.
   *
   * ```ts
   * import { millrace } from 'millrace'
   * const mill = await millrace({ store: ':memory:' })
   * const { from, binMs, queues } = await mill.upcomingBins('24h', { bins: 24 })
   * for (const { queue, jobs, ticks } of queues) console.log(from, binMs, queue, jobs, ticks)
   * await mill.close()
   * ```
   */
  upcomingBins(span: Duration | number, options?: UpcomingBinsOptions): Promise<UpcomingBins>
  /**
   * Enqueues a whole graph in one transaction: all of it or nothing. Resolves with the return value of `build`, each node
   * replaced by its handle; with all handles, in the order of `add`, when it returned nothing.
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

  /**
   * Works off a long list in order, one item at a time, with the job's handler: pause, resume, cancel, reset, ordered output and
   * progress, from any process. The items are written with it, whole or not at all. The same key while it is unfinished gives that
   * sequence.
   *
   * ```ts
   * import { job, millrace } from 'millrace'
   * const archive = job('archive', async (contact: { id: number }, ctx) => `archived ${contact.id} of ${ctx.sequence?.total}`)
   * const mill = await millrace({ store: ':memory:', jobs: [archive] })
   * const sequence = await mill.sequence(archive, [{ id: 1 }, { id: 2 }], { key: 'archive-42' })
   * await mill.start()
   * await sequence.result()
   * for (const { index, result } of await sequence.output()) console.log(index, result)
   * ```
   */
  sequence<Payload = unknown, Result = unknown>(
    job: Job<Payload, Result> | string,
    items: readonly NoInfer<Payload>[],
    options?: SequenceOptions,
  ): Promise<Sequence<Result>>
  /** A sequence by its id, or by its job and key: the unfinished one, else the newest. Nothing is read before a verb is called. */
  sequence(target: string | readonly [job: Enqueueable, key: string]): Sequence

  /** Cancels the waiting job of that key. False when no job of that key was waiting. */
  unschedule(job: Enqueueable, key: string, options?: CommandOptions): Promise<boolean>

  /** Starts to run jobs. A second call does nothing. */
  start(): Promise<void>
  /** Stops claiming, waits for running jobs until the deadline (30 s), and releases the rest. The mill can be started again. */
  stop(options?: { readonly deadline?: Duration | number | undefined }): Promise<void>
  /** Stops, and closes the store. */
  close(options?: { readonly deadline?: Duration | number | undefined }): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
  /**
   * Closes this mill on SIGTERM or SIGINT (Ctrl-C), with a deadline of 25 s, and then exits the process with code 0, or 1 when the
   * mill could not be closed. A second signal exits at once. Returns a function that removes the signal handlers.
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

  /** A job's record; undefined when no job has that id, also when the string is not a UUID. */
  get(id: string): Promise<JobRecord | undefined>
  /**
   * Every matching job, newest first, read page by page as you iterate. Records are typed when `job` is a job's value, or a list
   * of them. There is no cursor to keep: the loop reads until there are no more jobs.
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
   * Finds stored jobs that this mill could not run: without a handler, or with a payload or result that does not decrypt, decode,
   * upcast or pass the schema. Without a filter: all unfinished jobs, and all schedules. It reads page by page and writes nothing.
   *
   * ```ts
   * import { millrace } from 'millrace'
   * const mill = await millrace({ store: ':memory:' })
   * for await (const { id, job, problem, message } of mill.check()) console.log(id, job, problem, message)
   * ```
   */
  check(filter?: JobFilter): AsyncIterableIterator<CheckFinding>
  /**
   * One page of a search that may have to test many jobs, bounded in time: `{ rows, cursor, scanned, reachedAt }`. It ends when the
   * page is full, when `deadline` (200 ms) or `scan` (20,000 jobs) is reached, or when there are no more jobs; only then it has no
   * cursor. So a page may be empty and have one: the same call with the cursor continues.
   *
   * ```ts
   * import { millrace } from 'millrace'
   * const mill = await millrace({ store: ':memory:' })
   * const page = await mill.findPage({ state: 'failed', payload: { 'user.id': 42 }, error: 'declined' }, { deadline: '200ms' })
   * console.log(page.rows.length, page.scanned, page.reachedAt, page.cursor)
   * await mill.close()
   * ```
   */
  findPage<Wanted extends Findable | readonly Findable[] = string>(
    filter?: Omit<JobFilter<Wanted>, 'limit'>,
    options?: FindPageOptions,
  ): Promise<Omit<FoundJobs, 'rows'> & { readonly rows: readonly FoundRecord<Wanted>[] }>
  /**
   * How many jobs match: `{ count, exact }`. Counting stops at 10,000, and `exact` is false when there are more. Unfinished
   * members of a group are read from its counters, and so are always exact.
   */
  count(filter?: CountFilter): Promise<JobCount>
  /** A handle for a stored id. */
  handle(id: string): Handle<unknown>
  /**
   * A job's record as live state: a signal that follows the job in any process, and is read only while it is observed.
   *
   * ```ts
   * import { millrace } from 'millrace'
   * const mill = await millrace({ store: ':memory:' })
   * for await (const record of mill.watch('01890a5d-ac96-774b-bcce-b302099a8057')) {
   *   console.log(record?.state, record?.progress)
   *   if (record === undefined || record.settledAt !== undefined) break
   * }
   * await mill.close()
   * ```
   */
  watch(id: string): LiveState<JobRecord | undefined>
  /**
   * The transitions that this process makes, from now on: jobs it enqueues, begins, settles and commands. A reader that lags behind by more
   * than 1,000 loses the oldest, and gets `{ kind: 'missed', count }` in their place.
   *
   * ```ts
   * import { millrace } from 'millrace'
   * const mill = await millrace({ store: ':memory:' })
   * const events = mill.events()
   * await mill.close()
   * for await (const event of events) if (event.kind === 'transition') console.log(event.job, event.id, event.state)
   * ```
   */
  events(): AsyncIterableIterator<MillEvent>
  /**
   * With `changeLog: true`: every change of state of every job, in any process, in order for each job. A consumer id continues where it
   * stopped, also after a restart; a new id begins with the next change. What is not read yet is kept. After a crash of this process the
   * changes since the last position that was saved (at most 500) come again. A loop that throws has read the change that it was given.
   *
   * ```ts
   * import { millrace } from 'millrace'
   * const mill = await millrace({ store: ':memory:', changeLog: true })
   * const changes = mill.changes('mirror', { end: true })
   * await mill.stopChanges('mirror')
   * for await (const change of changes) if (change.kind === 'change') console.log(change.id, change.state)
   * await mill.close()
   * ```
   */
  changes(consumerId: string, options?: ChangesOptions): AsyncGenerator<Change | ChangesEnd, void, undefined>
  /** Ends the reader of a consumer in this process, and keeps its position; false when there is none. With `forget`, in all of the fleet. */
  stopChanges(consumerId: string, options?: StopChangesOptions): Promise<boolean>
  /** Ends all readers of this process, and returns how many there were. */
  stopAllChanges(): Promise<number>
  readonly live: {
    /**
     * The context of `millrace/reactive` in which `watch()` makes its signals, unless another one is current: enter it to make
     * computeds and effects over them. It ends with the mill.
     */
    readonly context: Context
    /**
     * The first 1,000 queues by name, with their counts, pauses and outages: read at most once a second, while it is observed.
     *
     * ```ts
     * import { millrace } from 'millrace'
     * const mill = await millrace({ store: ':memory:' })
     * for await (const queues of mill.live.queues) {
     *   for (const { name, counts, oldestDueAt } of queues) console.log(name, counts.ready, counts.running, oldestDueAt)
     *   break
     * }
     * await mill.close()
     * ```
     */
    readonly queues: LiveState<readonly LiveQueue[]>
    /** The first 1,000 workers by id, as `mill.workers()` lists them: read at most once a second, while it is observed. */
    readonly workers: LiveState<readonly WorkerRecord[]>
  }
  /**
   * Sends an event to a workflow, in any state that is not final; it is kept until the workflow takes it. True when it was written,
   * false when the workflow has ended or an event of that `id` was sent before.
   *
   * ```ts
   * import { event, millrace, workflow } from 'millrace'
   * const approved = event<{ by: string }>('approved')
   * const refund = workflow('refund', async (order: { id: string }, w) => (await w.waitFor(approved)).by)
   * const mill = await millrace({ store: ':memory:', jobs: [refund] })
   * await mill.enqueue(refund, { id: '7' }, { key: '7' })
   * await mill.send([refund, '7'], approved, { by: 'ann' }, { id: 'click-1' })
   * ```
   */
  send<Sent>(to: SendTarget, event: Event<Sent, unknown>, ...rest: SendArguments<NoInfer<Sent>>): Promise<boolean>
  /** An event by the name under which a registered workflow declares it. */
  send(to: SendTarget, event: string, payload?: unknown, options?: SendOptions): Promise<boolean>
  /**
   * What a workflow has recorded, in the order of the answers, and then what is open: at most 100, or `limit`. `after` is the
   * address of the last one that was read.
   *
   * ```ts
   * import { millrace } from 'millrace'
   * const mill = await millrace({ store: ':memory:' })
   * for (const { name, state, result } of await mill.steps('01890a5d-ac96-774b-bcce-b302099a8057')) console.log(name, state, result)
   * ```
   */
  steps(id: string, options?: StepsOptions): Promise<StepRecord[]>
  /**
   * Runs a failed, cancelled, parked or retrying job again now, with a full set of retries. False when it is none of those. A
   * workflow continues where it failed; with `fresh` it forgets everything that it has recorded.
   */
  retry(id: string, options?: CommandOptions & { readonly fresh?: boolean | undefined }): Promise<boolean>
  /**
   * Cancels a job. A waiting job is cancelled at once. For a running job, in any process, `ctx.signal` is aborted and the job is
   * not retried; if its handler returns nevertheless, it is done. A workflow that has begun unwinds first; with `unwind: false` it
   * ends at once. False when it has ended, is parked or unknown.
   */
  cancel(id: string, options?: CommandOptions & { readonly unwind?: boolean | undefined }): Promise<boolean>
  /**
   * Pauses a waiting job. A running attempt continues, and the job is paused if it would be tried again. False when it has ended,
   * was cancelled, is parked or unknown.
   */
  pause(id: string, options?: CommandOptions): Promise<boolean>
  /** Resumes a paused job, with its due time and its retries unchanged. False when it is not paused. */
  resume(id: string, options?: CommandOptions): Promise<boolean>
  /**
   * Runs the oldest failed, retrying or parked job of a queue in this process, at once and whatever its attempts, also while the mill is
   * not started. Resolves after the attempt, with the job's new record and the error that it threw, whole; null when the queue has none.
   * Workflows and sequences, and jobs that are not registered here, are passed over.
   *
   * ```ts
   * import { millrace } from 'millrace'
   * const mill = await millrace({ store: ':memory:' })
   * const retried = await mill.retryOne('billing', { actor: 'ada' })
   * console.log(retried?.record.state, retried?.error?.stack)
   * await mill.close()
   * ```
   */
  retryOne(queue: string, options?: CommandOptions): Promise<RetriedOne | null>
  /**
   * Runs every failed, parked or retrying job that matches again, as `retry` does; cancelled ones when the filter names that
   * state. It works newest first, in pages of 500, each job in a transaction of its own; a call that failed or stopped can be
   * repeated. With `preview: true` it changes nothing and returns what it would change.
   *
   * ```ts
   * import { millrace } from 'millrace'
   * const mill = await millrace({ store: ':memory:' })
   * const preview = await mill.retryAll({ queue: 'billing' }, { preview: true })
   * console.log(preview.count, preview.states)
   * await mill.retryAll({ queue: 'billing' }, { cursor: preview.cursor, actor: 'ada', onProgress: (p) => console.log(p.changed) })
   * await mill.close()
   * ```
   */
  retryAll: BulkVerb
  /** Cancels every matching job that is waiting or running, as `cancel` does; parked ones stay. */
  cancelAll: BulkVerb
  /** Deletes every matching job that is not running, finished ones too. */
  deleteAll: BulkVerb
  /** Pauses every matching job that is waiting or running, as `pause` does. */
  pauseAll: BulkVerb
  /** Resumes every matching job that is paused. */
  resumeAll: BulkVerb
  /**
   * Why a job is not running: one true sentence, and what it waits for. Undefined when no job has that id.
   *
   * ```ts
   * import { job, millrace } from 'millrace'
   * const greet = job('greet', async (p: { name: string }) => p.name)
   * const mill = await millrace({ store: ':memory:', jobs: [greet] })
   * const { id } = await mill.enqueue(greet, { name: 'Ada' }, { in: '1h' })
   * console.log((await mill.why(id))?.text)
   * await mill.close()
   * ```
   */
  why(id: string): Promise<Why | undefined>
  /** The same for at most 50 jobs, from one snapshot. */
  why(ids: readonly string[]): Promise<(Why | undefined)[]>
  /** True, or false when a job has been in error for longer than `allowedErrorTime`: the result of the last check; null before it. */
  healthy(): boolean | null
  /** Checks now, and reports everything that is wrong: since when, what it does to you, and what mends it. */
  health(): Promise<HealthReport>
  /**
   * One page of the jobs that a job was enqueued after, in the order given. Deleted ones are left out.
   *
   * ```ts
   * import { millrace } from 'millrace'
   * const mill = await millrace({ store: ':memory:' })
   * const { rows, cursor } = await mill.parents('01890a5d-ac96-774b-bcce-b302099a8057', { limit: 20 })
   * for (const { id, job, state } of rows) console.log(id, job, state, cursor)
   * await mill.close()
   * ```
   */
  parents(id: string, options?: PageOptions): Promise<Page<JobRecord>>
  /** One page of the jobs that were enqueued after a job, the oldest first, also those that have ended. */
  children(id: string, options?: PageOptions): Promise<Page<JobRecord>>
  /** One page of the workers that are registered, in the order of their ids, and what each runs. */
  workers(options?: PageOptions): Promise<Page<WorkerRecord>>
  /** One page of the groups, in the order of their names, each with its progress. */
  groups(options?: PageOptions): Promise<Page<GroupRecord>>
  /** One page of the sequences, newest first, each with its progress. */
  sequences(options?: PageOptions): Promise<Page<SequenceRecord>>
  /** One page of the audit trail, newest first: the commands that were given with an `actor`. */
  audit(options?: AuditOptions): Promise<Page<AuditRecord>>
  /** Statistics of the whole store: queues, retries, durations, series over time, error groups. */
  readonly stats: Stats
  /**
   * Serves the dashboard on a port of this process, by default on 127.0.0.1:8080. Its link has a token that signs you in; it is closed
   * with the mill.
   *
   * ```ts
   * import { millrace } from 'millrace'
   * const mill = await millrace({ store: ':memory:' })
   * const { url, close } = await mill.dashboard({ port: 0 })
   * console.log(url)
   * await close()
   * await mill.close()
   * ```
   */
  dashboard(options?: DashboardListenOptions): Promise<ServedDashboard>
  /** A queue by its name: `pause()`, `resume()` and `pauseUntil(…)` apply to every process. */
  queue(name: string): QueueHandle
  /**
   * A group by its name: `progress()`, `seal()`, and commands for all its members. Nothing is written before `seal()`.
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
  /** Deletes a job that is not running. */
  delete(id: string, options?: CommandOptions): Promise<boolean>
  /** Changes a waiting job; a parked one becomes ready. */
  edit(id: string, change: JobEdit, options?: CommandOptions): Promise<boolean>

  /** Every job registered in this mill. */
  jobs(): readonly ListedJob[]
  has(name: string): boolean
  /** Runs a registered job's handler directly, outside the queue. */
  run(name: string, payload?: unknown): Promise<unknown>
  /** Registers a job, also while the mill runs. */
  register(job: Job<never, unknown> | AnyJob): void
  /** Changes concurrency, queues, poll, crashBudget or slowAfter while running. */
  configure(change: Partial<MillOptions>): void
}

/** A command to all jobs that match a filter. An empty filter is refused, unless `all: true` says that every job is meant. */
export interface BulkVerb {
  (filter: CountFilter, options: BulkCommandOptions & { readonly preview: true }): Promise<BulkPreview>
  (filter: CountFilter, options?: BulkCommandOptions & { readonly preview?: false | undefined }): Promise<BulkResult>
}

export type ScheduleOptions = Omit<EnqueueOptions, 'in' | 'at'>
