import type { Codec } from './codec/codec.js'
import { ClosedError, InvalidOptionsError, InvalidPayloadError, NotYetError, ResultInHandlerError } from './errors.js'
import { encodePayload, prepare, refuse, whenOf, withTaken } from './client/prepare.js'
import type { Item } from './client/prepare.js'
import { onePolicy, prepareMany } from './client/bulk.js'
import { commandJob } from './client/command.js'
import type { Change, CommandParts } from './client/command.js'
import { editedOptions } from './client/edit.js'
import type { JobEdit } from './client/edit.js'
import { queryOf } from './client/query.js'
import { toRecord } from './client/records.js'
import { awaitResult } from './client/results.js'
import { Waiters } from './client/wait.js'
import { show } from './codec/show.js'
import { checkEdit, checkFilter, checkId, checkResultOptions } from './client/check.js'
import type { Capture } from './job/capture.js'
import type { Command } from './job/command.js'
import { parseDuration, parseWhen } from './job/duration.js'
import type { EnqueueOptions, Enqueueable, Handle } from './job/enqueue.js'
import type { JobFilter, JobRecord } from './job/record.js'
import type { Registered, Registry } from './job/registry.js'
import { checkPayload } from './job/schema.js'
import type { OnDuplicate } from './job/unique.js'
import type { Claim, FindQuery, JobRow, NewJob } from './store/store.js'

/** Jobs in one bulk. */
const BULK_MAX = 1_000_000

export interface ClientParts extends CommandParts {
  readonly registry: Registry
  readonly codec: Codec
  /** Takes context at each enqueue; undefined when none is captured. */
  readonly capture: Capture | undefined
  /** True inside a handler of this mill, where waiting for a result is refused. */
  readonly insideHandler: () => boolean
  readonly enqueued: (jobs: readonly NewJob[]) => void
}

/** Commands going down: enqueue, schedule, cancel, pause, retry, edit, delete; and reading. It holds no state but its waiters. */
export class Client {
  readonly #parts: ClientParts
  readonly #waiters: Waiters

  constructor(parts: ClientParts) {
    this.#parts = parts
    this.#waiters = new Waiters(parts.store, parts.world)
  }

  async enqueue(
    job: Enqueueable,
    payload: unknown,
    options: EnqueueOptions | undefined,
    under?: Claim,
  ): Promise<Handle<unknown>> {
    const item: Item = { registered: this.#parts.registry.lookUp(job), payload, options }
    return this.#insertOne(item, options?.onDuplicate ?? 'return', under)
  }

  async enqueueMany(
    job: Enqueueable,
    payloads: readonly unknown[],
    options: EnqueueOptions | ((payload: never, index: number) => EnqueueOptions) | undefined,
  ): Promise<Handle<unknown>[]> {
    const registered = this.#parts.registry.lookUp(job)
    if (!Array.isArray(payloads)) throw bad('enqueueMany()', 'payloads', `must be an array, got ${show(payloads)}`)
    if (payloads.length > BULK_MAX)
      throw bad('enqueueMany()', 'payloads', `must be at most ${BULK_MAX}, got ${payloads.length}`)
    const rows = await prepareMany(registered, payloads, options, () => this.#newId(), this.#parts.capture?.take())
    const onDuplicate = onePolicy(rows)
    const inserted = await this.#insert(
      rows.map((made) => made.row),
      onDuplicate,
      registered,
      undefined,
    )
    return inserted.map((one) => this.#handle(one.id, one.isNew))
  }

  async schedule(
    job: Enqueueable,
    payload: unknown,
    when: unknown,
    options: EnqueueOptions | undefined,
  ): Promise<Handle<unknown>> {
    const registered = this.#parts.registry.lookUp(job)
    const parsed = parseWhen(when, this.#parts.world.clock.now())
    const problems = parsed.ok ? [] : [{ path: 'when', message: parsed.problem }]
    if (options?.in !== undefined || options?.at !== undefined)
      problems.push({ path: 'options', message: 'has in or at; the time is the third argument' })
    const isObject = typeof options === 'object' && options !== null && !Array.isArray(options)
    // What is no object is passed on as it is, to be refused with the rest.
    const timed = options !== undefined && !isObject ? options : { ...options, ...timeOption(parsed.ok, when) }
    return this.#insertOne({ registered, payload, options: timed, problems }, options?.onDuplicate ?? 'move', undefined)
  }

  async unschedule(job: Enqueueable, key: string): Promise<boolean> {
    const registered = this.#parts.registry.lookUp(job)
    if (typeof key !== 'string') throw bad('unschedule()', 'key', `must be text, got ${show(key)}`)
    const row = await this.#parts.store.jobs.readKeyed(registered.job.name, key)
    return row === undefined
      ? false
      : this.#command(row.id, 'unschedule', (r) => ({
          reason: 'unscheduled',
          keepMs: this.#keepMs(r.name, 'cancelled'),
        }))
  }

  async get(id: string): Promise<JobRecord | undefined> {
    const [row] = await this.#parts.store.jobs.readJobs([checkId(id)])
    return row === undefined ? undefined : this.#record(row)
  }

  async *find(filter: JobFilter = {}): AsyncGenerator<JobRecord, void, undefined> {
    const problems = checkFilter(filter)
    if (problems.length > 0) throw new InvalidOptionsError('find()', problems)
    let left = filter.limit ?? Infinity
    let query: FindQuery | null = queryOf(filter, this.#parts.registry)
    while (query !== null && left > 0) {
      const page = await this.#parts.store.jobs.findJobs({ ...query, limit: Math.min(query.limit, left) })
      for (const row of page.rows) yield this.#record(row)
      left -= page.rows.length
      query = page.cursor === null ? null : { ...query, cursor: page.cursor }
    }
  }

  cancel(id: string): Promise<boolean> {
    return this.#command(id, 'cancel', (row) => ({
      reason: 'cancelled by command',
      keepMs: this.#keepMs(row.name, 'cancelled'),
    }))
  }

  pause(id: string): Promise<boolean> {
    return this.#command(id, 'pause', () => ({ reason: 'paused by command', exit: 'paused', keepMs: Infinity }))
  }

  resume(id: string): Promise<boolean> {
    return this.#command(id, 'resume', () => ({ exit: 'resumed', keepMs: Infinity }))
  }

  retry(id: string): Promise<boolean> {
    return this.#command(id, 'retry', () => ({
      due: { inMs: 0 },
      exit: 'retried',
      freshRetries: true,
      keepMs: Infinity,
    }))
  }

  delete(id: string): Promise<boolean> {
    return this.#command(id, 'delete', () => ({ keepMs: 0 }))
  }

  async edit(id: string, change: JobEdit): Promise<boolean> {
    const problems = checkEdit(change)
    if (problems.length > 0) throw new InvalidOptionsError(`edit(${checkId(id)})`, problems)
    return this.#command(id, 'edit', (row) => this.#editOf(row, change))
  }

  /** Nobody waits for a result any longer. */
  close(): void {
    this.#waiters.close(new ClosedError())
  }

  handle(id: string): Handle<unknown> {
    return this.#handle(checkId(id), false)
  }

  async #insertOne(item: Item, onDuplicate: OnDuplicate, under: Claim | undefined): Promise<Handle<unknown>> {
    const made = await prepare(withTaken(item, this.#parts.capture?.take()), this.#newId())
    if ('wrong' in made) refuse(item.registered.job.name, [made.wrong])
    const { row } = made
    const [inserted] = await this.#insert([row], onDuplicate, item.registered, under)
    return this.#handle(inserted?.id ?? row.id, inserted?.isNew === true)
  }

  async #insert(
    rows: readonly NewJob[],
    onDuplicate: OnDuplicate,
    registered: Registered,
    under: Claim | undefined,
  ): Promise<readonly { id: string; isNew: boolean }[]> {
    const keepCancelledMs = registered.keepMs.cancelled
    const inserted = await this.#parts.store.jobs.insertJobs(rows, {
      onDuplicate,
      keepCancelledMs,
      ...(under === undefined ? {} : { under }),
    })
    this.#parts.enqueued(rows.filter((_, i) => inserted[i]?.isNew === true))
    return inserted
  }

  #command(id: string, command: Command, how: (row: JobRow) => Change | Promise<Change>): Promise<boolean> {
    return commandJob(this.#parts, id, command, how)
  }

  async #editOf(row: JobRow, change: JobEdit): Promise<Change> {
    const registered = this.#parts.registry.runnable(row.name)
    const payload = 'payload' in change ? await this.#editedPayload(row.name, registered, change.payload) : undefined
    const when = change.in ?? change.at
    const codec = registered?.codec ?? this.#parts.codec
    return {
      exit: 'edited',
      keepMs: Infinity,
      ...(when === undefined ? (row.state === 'parked' ? { due: { inMs: 0 } } : {}) : { due: whenOf(when) }),
      edit: {
        payload,
        options: editedOptions(
          row.options,
          change,
          codec,
          'payload' in change ? change.payload : toRecord(row, codec).payload,
        ),
        priority: change.priority,
        queue: change.queue,
      },
    }
  }

  async #editedPayload(
    name: string,
    registered: Registered | undefined,
    payload: unknown,
  ): Promise<string | Uint8Array> {
    if (registered === undefined) return this.#parts.codec.encode(payload)
    const checked = await checkPayload(registered.job.options, payload)
    if (!checked.ok) throw new InvalidPayloadError(`job ${JSON.stringify(name)}`, checked.problems)
    return encodePayload(registered, payload)
  }

  #handle(id: string, isNew: boolean): Handle<unknown> {
    return {
      id,
      isNew,
      get: () => this.get(id),
      cancel: () => this.cancel(id),
      result: (options) => this.#result(id, options),
      watch: () => {
        throw new NotYetError('handle.watch()')
      },
    }
  }

  #result(id: string, options: { readonly timeout?: unknown } = {}): Promise<unknown> {
    if (this.#parts.insideHandler()) return Promise.reject(new ResultInHandlerError())
    const problems = checkResultOptions(options)
    if (problems.length > 0) return Promise.reject(new InvalidOptionsError('result()', problems))
    const limit =
      options.timeout === undefined || options.timeout === Infinity ? undefined : parseDuration(options.timeout)
    return awaitResult(id, limit?.ok === true ? limit.ms : undefined, {
      waiters: this.#waiters,
      world: this.#parts.world,
      codecOf: (name) => this.#codecOf(name),
    })
  }

  #record(row: JobRow): JobRecord {
    return toRecord(row, this.#codecOf(row.name), this.#parts.codec)
  }

  #codecOf(name: string): Codec {
    return this.#parts.registry.codecOf(name)
  }

  #keepMs(name: string, state: 'cancelled'): number {
    return this.#parts.registry.keepOf(name)[state]
  }

  #newId(): string {
    return this.#parts.world.ids.jobId(this.#parts.world.clock.now())
  }
}

function timeOption(isRight: boolean, when: unknown): EnqueueOptions {
  if (!isRight) return {}
  return 'inMs' in whenOf(when) ? { in: when as never } : { at: when as never }
}

function bad(subject: string, path: string, message: string): InvalidOptionsError {
  return new InvalidOptionsError(subject, [{ path, message }])
}
