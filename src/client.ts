import type { EnqueueChain } from './job/limits/recursion.js'
import type { Encoded } from './job/rules/outcome.js'
import type { Codec } from './codec/codec.js'
import { show } from './codec/show.js'
import { ClosedError, InvalidOptionsError, InvalidPayloadError, ResultInHandlerError } from './errors.js'
import { encodePayload, whenOf } from './client/enqueue/prepare.js'
import type { BulkOptions } from './client/enqueue/bulk.js'
import { commandJob, hasBegun } from './client/commands/command.js'
import { commandAll } from './client/commands/command-all.js'
import type { BulkCommandOptions, BulkPreview, BulkResult, BulkVerb } from './client/commands/command-all.js'
import { readAudit } from './client/read/audit.js'
import type { AuditOptions, AuditRecord } from './client/read/audit.js'
import { listGroups, listSequences, listWorkers } from './client/read/lists.js'
import type { GroupRecord, SequenceRecord, WorkerRecord } from './client/read/lists.js'
import { listChildren, listParents } from './client/read/relatives.js'
import type { RelativesParts } from './client/read/relatives.js'
import { findPage } from './client/read/find-page.js'
import type { FindPageOptions, FoundJobs } from './client/read/find-page.js'
import { matcherOf } from './client/read/scan.js'
import { readWhy } from './client/read/why.js'
import type { Why } from './job/why/why.js'
import type { Page, PageOptions } from './client/read/page.js'
import { commandGiven } from './job/command-options.js'
import type { CommandGiven } from './job/command-options.js'
import { countJobs } from './client/read/count.js'
import type { Change, CommandParts } from './client/commands/command.js'
import { toParents } from './client/enqueue/parent-links.js'
import { runFlow } from './client/flow/flow.js'
import type { FlowGraph, FlowParts } from './client/flow/flow.js'
import { parentResults } from './client/read/parent-results.js'
import { Enqueuer } from './client/enqueue/enqueuer.js'
import { copyOptions } from './client/enqueue/call-snapshot.js'
import { editedOptions, editedTurn, refuseForSequence } from './client/commands/edit.js'
import type { JobEdit } from './client/commands/edit.js'
import { findSequence, writtenSequence } from './client/sequence/sequence.js'
import type { Sequence, SequenceParts } from './client/sequence/sequence.js'
import { SequenceWriter } from './client/sequence/write-sequence.js'
import type { SequenceOptions } from './client/sequence/write-sequence.js'
import { refuseForBegun, workflowFields, workflowOptions } from './client/workflow/change-workflow.js'
import type { WorkflowCommandOptions } from './client/workflow/change-workflow.js'
import { sendEvent } from './client/workflow/send.js'
import type { SendOptions, SendTarget } from './client/workflow/send.js'
import { readSteps, toWorkflowRecord } from './client/workflow/step-records.js'
import type { StepsOptions } from './client/workflow/step-records.js'
import type { StepRecord } from './job/workflow-record.js'
import { groupHandle } from './client/commands/groups.js'
import type { GroupHandle } from './client/commands/groups.js'
import { queryOf } from './client/read/query.js'
import { toRecord } from './client/read/records.js'
import { watchesOf } from './client/read/watch.js'
import type { Watches } from './client/read/watch.js'
import type { LiveQueue } from './client/commands/queues.js'
import type { LiveContext } from './live/live.js'
import type { LiveState } from './job/live-state.js'
import { AwaitedResults } from './client/read/await-result.js'
import { canBeId, checkEdit, checkFilter, checkId, checkResultOptions } from './client/check-arguments.js'
import type { Capture } from './job/attempt/capture.js'
import type { Command } from './job/rules/command.js'
import { parseDuration } from './job/duration/duration.js'
import type { EnqueueOptions, Enqueueable, Handle } from './job/enqueue.js'
import type { CountFilter, JobCount, JobFilter, JobRecord } from './job/record.js'
import type { Registered, Registry } from './job/definition/registry.js'
import type { Fields } from './job/definition/check-fields.js'
import { isKey } from './job/definition/check-options.js'
import { checkPayload } from './job/definition/schema.js'
import type { FindQuery } from './store/find.js'
import type { InsertedBy, JobRow, NewJob } from './store/store.js'

export interface ClientParts extends Omit<CommandParts, 'keepCancelledMs'> {
  readonly registry: Registry
  readonly codec: Codec
  readonly live: LiveContext
  /** Reads the caller's async context at each enqueue; undefined when nothing is captured. */
  readonly capture: Capture | undefined
  /** True inside a handler of this mill, where waiting for a result is refused. */
  readonly insideHandler: () => boolean
  readonly enqueued: (jobs: readonly NewJob[]) => void
  /** Called with the name of a job that is enqueued here and not registered here. */
  readonly unregistered: (name: string) => void
  /** The chain of a job of this name, where the caller is a handler of a job of the same name. */
  readonly chainOf: (name: string) => EnqueueChain | undefined
}

/** The verbs of a mill: enqueue, schedule, cancel, pause, retry, edit, delete, and reads. Its only state is the list of waiters. */
export class Client {
  readonly #parts: ClientParts
  readonly #results: AwaitedResults
  readonly #enqueuer: Enqueuer
  readonly #sequences: SequenceWriter
  readonly #commands: CommandParts
  readonly #watches: Watches

  constructor(parts: ClientParts) {
    this.#parts = parts
    this.#results = new AwaitedResults({ ...parts, codecOf: (name) => this.#codecOf(name) })
    const enqueuing = { ...parts, toHandle: (id: string, isNew: boolean) => this.#handle(id, isNew) }
    this.#enqueuer = new Enqueuer(enqueuing)
    this.#sequences = new SequenceWriter(enqueuing)
    this.#commands = { ...parts, keepCancelledMs: (name) => this.#keepMs(name, 'cancelled') }
    this.#watches = watchesOf({ ...parts, record: (row) => this.#record(row) })
  }

  enqueue(
    job: Enqueueable,
    payload: unknown,
    options: EnqueueOptions | undefined,
    by?: InsertedBy,
  ): Promise<Handle<unknown>> {
    return this.#enqueuer.enqueue(job, payload, options, by)
  }

  child(...args: Parameters<Enqueuer['child']>): ReturnType<Enqueuer['child']> {
    return this.#enqueuer.child(...args)
  }

  /** Checks and encodes a payload as an enqueue does. */
  encodeInput(registered: Registered, input: unknown): Promise<Encoded> {
    return this.#editedPayload(registered.job.name, registered, input)
  }

  template(...args: Parameters<Enqueuer['template']>): Promise<NewJob> {
    return this.#enqueuer.template(...args)
  }

  enqueueMany(job: Enqueueable, payloads: readonly unknown[], options: BulkOptions): Promise<Handle<unknown>[]> {
    return this.#enqueuer.enqueueMany(job, payloads, options)
  }

  schedule(
    job: Enqueueable,
    payload: unknown,
    when: unknown,
    options: EnqueueOptions | undefined,
  ): Promise<Handle<unknown>> {
    return this.#enqueuer.schedule(job, payload, when, options)
  }

  /** Writes a sequence, and returns the handle of its job. */
  sequence(
    job: Enqueueable,
    items: readonly unknown[],
    options: SequenceOptions | undefined,
  ): Promise<Handle<unknown>> {
    return this.#sequences.write(job, items, options)
  }

  /** The sequence of a job that was just written. */
  writtenSequence(handle: Handle<unknown>): Sequence {
    return writtenSequence(this.#sequenceParts(), handle)
  }

  findSequence(target: unknown): Sequence {
    return findSequence(this.#sequenceParts(), target)
  }

  /** `writer` inserts the graph: this client, or the hooks in front of it. */
  runFlow(build: unknown, options: unknown, writer: FlowParts['writer']): Promise<unknown> {
    const { world, registry } = this.#parts
    return runFlow(build, options, { registry, newId: () => world.ids.jobId(world.clock.now()), writer })
  }

  flow(graph: FlowGraph): Promise<Handle<unknown>[]> {
    return this.#enqueuer.flow(graph)
  }

  /** The results of those parents of job `id` whose job is `parent`. */
  results(id: string, parent: Enqueueable): Promise<unknown[]> {
    return parentResults(id, parent, this.#parts)
  }

  async unschedule(job: Enqueueable, key: string, options?: unknown): Promise<boolean> {
    const given = this.#given('unschedule', options, true)
    const registered = this.#parts.registry.lookUp(job)
    const wrong = isKey(key)
    if (typeof wrong === 'string') throw bad('unschedule()', 'key', wrong)
    const row = await this.#parts.store.jobs.readKeyed(registered.job.name, key)
    return row === undefined
      ? false
      : this.#command(row.id, 'unschedule', given, (r) => ({
          reason: given.reason ?? 'unschedule() was called',
          keepMs: this.#keepMs(r.name, 'cancelled'),
        }))
  }

  async get(id: string): Promise<JobRecord | undefined> {
    if (!canBeId(id)) return undefined
    const [row] = await this.#parts.store.jobs.readJobs([id])
    if (row === undefined) return undefined
    const workflow = row.shape === 'workflow' ? await this.#parts.store.workflows.readWorkflow(id) : undefined
    return workflow === undefined ? this.#record(row) : { ...this.#record(row), workflow: toWorkflowRecord(workflow) }
  }

  send(to: SendTarget, event: unknown, payload: unknown, options: SendOptions | undefined): Promise<boolean> {
    return sendEvent(this.#parts, to, event, payload, options)
  }

  steps(id: string, options: StepsOptions | undefined): Promise<StepRecord[]> {
    return readSteps({ store: this.#parts.store, codecOf: (name) => this.#codecOf(name) }, id, options)
  }

  async *find(filter: JobFilter = {}): AsyncGenerator<JobRecord, void, undefined> {
    const problems = checkFilter(filter)
    if (problems.length > 0) throw new InvalidOptionsError('find()', problems)
    let left = filter.limit ?? Infinity
    const matches = matcherOf(filter)
    let query: FindQuery | null = queryOf(filter, this.#parts.registry)
    while (query !== null && left > 0) {
      const limit = matches === undefined ? Math.min(query.limit, left) : query.limit
      const page = await this.#parts.store.jobs.findJobs({ ...query, limit })
      for (const row of page.rows) {
        const record = this.#record(row)
        if (left === 0 || matches?.(record, row) === false) continue
        yield record
        left -= 1
      }
      query = page.cursor === null ? null : { ...query, cursor: page.cursor }
    }
  }

  findPage(filter: JobFilter = {}, options?: FindPageOptions): Promise<FoundJobs> {
    const { store, world, registry } = this.#parts
    return findPage({ store, world, registry, toRecord: (row) => this.#record(row) }, filter, options)
  }

  count(filter: CountFilter = {}): Promise<JobCount> {
    return countJobs(filter, this.#parts.registry, this.#parts.store)
  }

  /** cancel, pause, resume or retry of one job. */
  async command(id: string, command: Movable, options?: unknown): Promise<boolean> {
    const given = this.#given(command, options, command === 'cancel' || command === 'pause', workflowFields(command))
    return this.#command(id, command, given, (row) => this.#change(command, row, given), workflowOptions(options))
  }

  commandAll(verb: BulkVerb, filter: CountFilter, options?: BulkCommandOptions): Promise<BulkResult | BulkPreview> {
    return commandAll(
      {
        store: this.#parts.store,
        registry: this.#parts.registry,
        auditKeepMs: this.#parts.auditKeepMs,
        command: (row, command, given) => this.#commandRow(row, command, given),
        toRecord: (row) => this.#record(row),
      },
      verb,
      filter,
      options,
    )
  }

  async why(id: unknown): Promise<Why | undefined | (Why | undefined)[]> {
    const { store, registry } = this.#parts
    if (Array.isArray(id)) return readWhy(id, store, registry)
    return (await readWhy([id], store, registry))[0]
  }

  parents(id: string, options?: PageOptions): Promise<Page<JobRecord>> {
    return listParents(this.#relativesParts(), id, options)
  }

  children(id: string, options?: PageOptions): Promise<Page<JobRecord>> {
    return listChildren(this.#relativesParts(), id, options)
  }

  workers(options?: PageOptions): Promise<Page<WorkerRecord>> {
    return listWorkers(this.#parts.store, options)
  }

  groups(options?: PageOptions): Promise<Page<GroupRecord>> {
    return listGroups(this.#parts.store, options)
  }

  sequences(options?: PageOptions): Promise<Page<SequenceRecord>> {
    return listSequences(this.#parts.store, options)
  }

  audit(options?: AuditOptions): Promise<Page<AuditRecord>> {
    return readAudit(this.#parts.store, options)
  }

  group(id: unknown, options: unknown): GroupHandle {
    return groupHandle(
      {
        store: this.#parts.store,
        watch: this.#watches.group,
        auditKeepMs: this.#parts.auditKeepMs,
        plan: (...args) => this.#enqueuer.plan(...args),
        planSync: (...args) => this.#enqueuer.planSync(...args),
        command: (row, command, given) => this.#commandRow(row, command, given),
      },
      id,
      options,
    )
  }

  async delete(id: string, options?: unknown): Promise<boolean> {
    return this.#command(id, 'delete', this.#given('delete', options), () => ({ keepMs: 0 }))
  }

  async edit(id: string, change: JobEdit, options?: unknown): Promise<boolean> {
    const given = this.#given('edit', options)
    const copy = copyOptions(change)
    const problems = checkEdit(copy, this.#parts.world.clock.now())
    if (problems.length > 0) throw new InvalidOptionsError(`edit(${show(id)})`, problems)
    return this.#command(id, 'edit', given, (row) => this.#editOf(row, copy))
  }

  /** Rejects every pending and every later `handle.result()` with this error. */
  close(error: Error = new ClosedError()): void {
    this.#results.close(error)
  }

  handle(id: string): Handle<unknown> {
    return this.#handle(checkId(id), false)
  }

  #command(
    id: string,
    command: Command,
    given: CommandGiven,
    how: (row: JobRow) => Change | Promise<Change>,
    forWorkflow?: WorkflowCommandOptions,
  ): Promise<boolean> {
    return commandJob(this.#commands, id, command, how, { given, forWorkflow })
  }

  /** A command of a bulk on a row that was just read. */
  #commandRow(row: JobRow, command: Movable | 'delete', given: CommandGiven): Promise<boolean> {
    const how = (seen: JobRow): Change => (command === 'delete' ? { keepMs: 0 } : this.#change(command, seen, given))
    return commandJob(this.#commands, row.id, command, how, { seen: row, given })
  }

  #given(verb: string, options: unknown, keepsReason = false, more?: Fields['fields']): CommandGiven {
    return commandGiven(verb, `${verb}()`, options, this.#parts.auditKeepMs, { keepsReason, more })
  }

  /** The fields that a command writes beside the new state. */
  #change(command: Movable, row: JobRow, { reason }: CommandGiven): Change {
    switch (command) {
      case 'cancel':
        return { reason: reason ?? 'cancel() was called', keepMs: this.#keepMs(row.name, 'cancelled') }
      case 'pause':
        return { reason: reason ?? 'pause() was called', exit: 'paused', keepMs: Infinity }
      case 'resume':
        return { exit: 'resumed', keepMs: Infinity }
      case 'retry':
        return { due: { inMs: 0 }, exit: 'retried', freshRetries: true, keepMs: Infinity }
      default:
        return command satisfies never
    }
  }

  async #editOf(row: JobRow, change: JobEdit): Promise<Change> {
    refuseForSequence(row, change)
    if (row.shape === 'workflow' && (await hasBegun(this.#parts.store, row.id))) refuseForBegun(row.id, { ...change })
    const registered = this.#parts.registry.runnable(row.name)
    const payload =
      change.payload !== undefined ? await this.#editedPayload(row.name, registered, change.payload) : undefined
    const when = change.in ?? change.at
    const own = registered ?? { codec: this.#parts.registry.codecOf(row.name) }
    return {
      exit: 'edited',
      keepMs: Infinity,
      ...(when === undefined ? (row.state === 'parked' ? { due: { inMs: 0 } } : {}) : { due: whenOf(when) }),
      edit: {
        payload,
        turn: change.payload === undefined ? undefined : editedTurn(registered, row.name, change.payload),
        options: editedOptions(
          row.options,
          change,
          own,
          change.payload !== undefined ? change.payload : this.#record(row).payload,
        ),
        priority: change.priority,
        queue: change.queue,
        after:
          change.after === undefined
            ? undefined
            : {
                parents: toParents(change.after),
                onFailure: change.onParentFailure ?? registered?.onParentFailure ?? 'wait',
                keepMs: this.#keepMs(row.name, 'cancelled'),
              },
      },
    }
  }

  async #editedPayload(
    name: string,
    registered: Registered | undefined,
    payload: unknown,
  ): Promise<string | Uint8Array> {
    if (registered === undefined) return this.#parts.codec.encode(payload)
    // Encoded before the check runs, as in an enqueue: a check that mutates the payload must not change what is stored.
    const encoded = encodePayload(registered, payload)
    const checked = await checkPayload(registered.job.options, payload)
    if (!checked.ok) throw new InvalidPayloadError(`job ${JSON.stringify(name)}`, checked.problems)
    return encoded
  }

  #handle(id: string, isNew: boolean): Handle<unknown> {
    const handle: Handle<unknown> = {
      id,
      isNew,
      get: () => this.get(id),
      cancel: (options) => this.command(id, 'cancel', options),
      result: (options) => this.#result(id, options),
      watch: () => this.watch(id),
    }
    return handle
  }

  /** The record of a job as live state; undefined when there is no such job. */
  watch(id: string): LiveState<JobRecord | undefined> {
    return this.#watches.job(checkId(id))
  }

  liveQueues(): LiveState<readonly LiveQueue[]> {
    return this.#watches.queues()
  }

  liveWorkers(): LiveState<readonly WorkerRecord[]> {
    return this.#watches.workers()
  }

  #result(id: string, options: { readonly timeout?: unknown } = {}): Promise<unknown> {
    if (this.#parts.insideHandler()) return Promise.reject(new ResultInHandlerError())
    const problems = checkResultOptions(options)
    if (problems.length > 0) return Promise.reject(new InvalidOptionsError('result()', problems))
    const limit =
      options.timeout === undefined || options.timeout === Infinity ? undefined : parseDuration(options.timeout)
    return this.#results.wait(id, limit?.ok === true ? limit.ms : undefined)
  }

  #relativesParts(): RelativesParts {
    return { ...this.#parts, toRecord: (row) => this.#record(row) }
  }

  #sequenceParts(): SequenceParts {
    return {
      ...this.#commands,
      codecOf: (name) => this.#codecOf(name),
      watch: this.#watches.sequence,
      handle: (id) => this.#handle(id, false),
      nameOf: (job) => this.#parts.registry.lookUp(job).job.name,
    }
  }

  #record(row: JobRow): JobRecord {
    const { registry, codec } = this.#parts
    return toRecord(row, registry.codecOf(row.name), codec, registry.known(row.name)?.upcast)
  }

  #codecOf(name: string): Codec {
    return this.#parts.registry.codecOf(name)
  }

  #keepMs(name: string, state: 'cancelled'): number {
    return this.#parts.registry.keepOf(name)[state]
  }
}

type Movable = 'cancel' | 'pause' | 'resume' | 'retry'

function bad(subject: string, path: string, message: string): InvalidOptionsError {
  return new InvalidOptionsError(subject, [{ path, message }])
}
