import type { EnqueueChain } from '../../job/limits/recursion.js'
import { isOptionsObject } from '../../codec/options-object.js'
import { show } from '../../codec/show.js'
import { InvalidOptionsError } from '../../errors.js'
import type { Problem } from '../../errors.js'
import type { Capture, CaptureResult } from '../../job/attempt/capture.js'
import { parseWhen } from '../../job/duration/duration.js'
import type { EnqueueOptions, Enqueueable, Handle } from '../../job/enqueue.js'
import type { CalledBy } from '../../job/definition/stored-options.js'
import type { Registered, Registry } from '../../job/definition/registry.js'
import type { OnDuplicate } from '../../job/rules/unique.js'
import { thenOrRetry } from '../../store/unknown-outcome.js'
import type { Inserted, InsertedBy, InsertOptions, NewJob, Store } from '../../store/store.js'
import type { WhenDone } from '../../store/groups.js'
import type { World } from '../../world/world.js'
import { readBulkOptions, BULK_MAX, copyPayloads, prepareMany, prepareManySync } from './bulk.js'
import type { BulkItemOptions, Bulk, BulkOptions } from './bulk.js'
import { refuseTooManyLinks } from './parent-links.js'
import { flowOptions, flowRows } from '../flow/flow-rows.js'
import type { FlowGraph, GraphNode } from '../flow/flow.js'
import { copyOptions } from './call-snapshot.js'
import { thenSync, requireSync, txOf } from './in-transaction.js'
import { prepare, whenOf, withCaptured } from './prepare.js'
import { refuse } from './refuse.js'
import type { Item, Prepared } from './prepare.js'

export interface EnqueuerParts {
  readonly world: World
  readonly store: Store
  readonly registry: Registry
  /** Reads the caller's async context at each enqueue; undefined when nothing is captured. */
  readonly capture: Capture | undefined
  readonly enqueued: (jobs: readonly NewJob[]) => void
  /** Called with the name of a job that is enqueued here and not registered here. */
  readonly unregistered: (name: string) => void
  readonly toHandle: (id: string, isNew: boolean) => Handle<unknown>
  /** The chain of a job of this name, where the caller is a handler of a job of the same name. */
  readonly chainOf: (name: string) => EnqueueChain | undefined
}

/**
 * The verbs that insert jobs. Each checks and encodes, then inserts. Without `tx` the verb is asynchronous and its promise
 * rejects. With `tx` it inserts in the caller's transaction, synchronously, and throws what it refuses.
 */
export class Enqueuer {
  readonly #parts: EnqueuerParts

  constructor(parts: EnqueuerParts) {
    this.#parts = parts
  }

  enqueue(
    job: Enqueueable,
    payload: unknown,
    callerOptions: EnqueueOptions | undefined,
    by: InsertedBy | undefined,
  ): Promise<Handle<unknown>> {
    const options = copyOptions(callerOptions)
    const make = (): Item => ({ registered: this.#lookUp(job), payload, options })
    return this.#one(make, options, options?.onDuplicate ?? 'return', by)
  }

  schedule(
    job: Enqueueable,
    payload: unknown,
    when: unknown,
    callerOptions: EnqueueOptions | undefined,
  ): Promise<Handle<unknown>> {
    const options = copyOptions(callerOptions)
    const make = (): Item => this.#timed(job, payload, when, options)
    return this.#one(make, options, options?.onDuplicate ?? 'move', undefined)
  }

  /** The job that a workflow calls or enqueues, checked and encoded: the store inserts it with the row of the call. */
  async child(
    job: Enqueueable,
    payload: unknown,
    callerOptions: EnqueueOptions | undefined,
    calledBy: CalledBy,
  ): Promise<{ readonly job: NewJob; readonly options: InsertOptions }> {
    const options = copyOptions(callerOptions)
    const item: Item = { registered: this.#lookUp(job), payload, options, calledBy }
    const row = rowOrThrow(item, await this.#prepare(item))
    return { job: row, options: insertOptions(item.registered, options?.onDuplicate ?? 'return', undefined) }
  }

  /** The row that a schedule inserts at each tick. `problems` of the schedule are reported together with those of the job. */
  async template(
    job: Enqueueable,
    payload: unknown,
    options: EnqueueOptions,
    problems: readonly Problem[],
  ): Promise<NewJob> {
    const item: Item = {
      registered: this.#lookUp(job),
      payload,
      options: copyOptions(options),
      problems,
    }
    return rowOrThrow(item, await this.#prepare(item))
  }

  enqueueMany(job: Enqueueable, callerPayloads: readonly unknown[], options: BulkOptions): Promise<Handle<unknown>[]> {
    const payloads = copyPayloads(callerPayloads)
    const itemOptions = readBulkOptions(payloads, options)
    const make = (): Bulk => this.#bulk(job, payloads, itemOptions)
    const { tx } = itemOptions
    if (tx === undefined) return this.#many(make)
    const bulk = make()
    const { rows, onDuplicate } = prepareManySync(bulk)
    refuseTooManyLinks(rows, 'enqueueMany()')
    const inserting = this.#insertIn(tx, rows, insertOptions(bulk.registered, onDuplicate, undefined))
    return thenSync(inserting, (inserted) => this.#handles(inserted))
  }

  /** Inserts a whole graph in one transaction. */
  flow(graph: FlowGraph): Promise<Handle<unknown>[]> {
    for (const { registered } of graph.nodes) this.#noteUnregistered(registered)
    if (graph.tx === undefined) return this.#graph(graph)
    const prepared = this.#prepareAll(graph).map((one, index) =>
      requireSync((graph.nodes[index] as GraphNode).registered, one),
    )
    const inserting = this.#insertIn(graph.tx, flowRows(graph, prepared), flowOptions(graph))
    return thenSync(inserting, (inserted) => this.#handles(inserted))
  }

  async #graph(graph: FlowGraph): Promise<Handle<unknown>[]> {
    const prepared: Prepared[] = []
    for (const one of this.#prepareAll(graph)) prepared.push(one instanceof Promise ? await one : one)
    return this.#insert(flowRows(graph, prepared), flowOptions(graph), (inserted) => this.#handles(inserted))
  }

  /** Encodes all nodes before any check is awaited: the arguments are stored as they were at the call. */
  #prepareAll({ nodes }: FlowGraph): (Prepared | Promise<Prepared>)[] {
    const context = this.#parts.capture?.capture()
    return nodes.map(({ registered, payload, options, addedParents: flowParents, id }, index) =>
      // The nodes share one captured context: only the first reports what is wrong with it.
      prepare(
        withCaptured(
          { registered, payload, options, flowParents, index },
          index === 0 ? context : withoutProblems(context),
        ),
        id,
        this.#parts.world.clock.now(),
      ),
    )
  }

  /** Checks and encodes a job that the store is to enqueue later, when its group is done. */
  async plan(job: Enqueueable, payload?: unknown, callerOptions?: EnqueueOptions): Promise<WhenDone> {
    const item = this.#whenDoneItem(job, payload, callerOptions)
    return toWhenDone(item, await this.#prepare(item))
  }

  /** The synchronous form of `plan`, for a call with `tx`. */
  planSync(job: Enqueueable, payload?: unknown, callerOptions?: EnqueueOptions): WhenDone {
    const item = this.#whenDoneItem(job, payload, callerOptions)
    return toWhenDone(item, requireSync(item.registered, this.#prepare(item)))
  }

  #whenDoneItem(job: Enqueueable, payload: unknown, callerOptions: EnqueueOptions | undefined): Item {
    const options = copyOptions(callerOptions)
    const registered = this.#lookUp(job)
    return { registered, payload, options, problems: whenDoneProblems(options, registered) }
  }

  #one(
    make: () => Item,
    options: EnqueueOptions | undefined,
    onDuplicate: OnDuplicate,
    by: InsertedBy | undefined,
  ): Promise<Handle<unknown>> {
    const tx = txOf(options)
    if (tx === undefined) return this.#oneAsync(make, onDuplicate, by)
    const item = make()
    const row = rowOrThrow(item, requireSync(item.registered, this.#prepare(item)))
    const inserting = this.#insertIn(tx, [row], insertOptions(item.registered, onDuplicate, by))
    return thenSync(inserting, (inserted) => this.#handles(inserted)[0] as Handle<unknown>)
  }

  async #oneAsync(make: () => Item, onDuplicate: OnDuplicate, by: InsertedBy | undefined): Promise<Handle<unknown>> {
    const item = make()
    const prepared = await this.#prepare(item)
    const options = insertOptions(item.registered, onDuplicate, by)
    return this.#insert(
      [rowOrThrow(item, prepared)],
      options,
      (inserted) => this.#handles(inserted)[0] as Handle<unknown>,
    )
  }

  async #many(make: () => Bulk): Promise<Handle<unknown>[]> {
    const bulk = make()
    const { rows, onDuplicate } = await prepareMany(bulk)
    refuseTooManyLinks(rows, 'enqueueMany()')
    const options = insertOptions(bulk.registered, onDuplicate, undefined)
    return this.#insert(rows, options, (inserted) => this.#handles(inserted))
  }

  #prepare(item: Item): Prepared | Promise<Prepared> {
    const chain = this.#parts.chainOf(item.registered.job.name)
    const chained = chain === undefined ? item : { ...item, chain }
    return prepare(withCaptured(chained, this.#parts.capture?.capture()), this.#newId(), this.#parts.world.clock.now())
  }

  #insert<T>(
    rows: readonly NewJob[],
    options: InsertOptions,
    toResult: (inserted: readonly Inserted[]) => T,
  ): Promise<T> {
    return thenOrRetry(this.#parts.store.jobs.insertJobs(rows, options), (inserted) => {
      this.#parts.enqueued(inserted.every(isNew) ? rows : rows.filter((_, i) => inserted[i]?.isNew === true))
      return toResult(inserted)
    })
  }

  /** No `enqueued` event is emitted: the jobs exist only once the caller's transaction commits. */
  #insertIn(
    tx: unknown,
    rows: readonly NewJob[],
    options: InsertOptions,
  ): readonly Inserted[] | Promise<readonly Inserted[]> {
    return this.#parts.store.transactions.insertJobsIn(tx, rows, options)
  }

  #timed(job: Enqueueable, payload: unknown, when: unknown, options: EnqueueOptions | undefined): Item {
    const registered = this.#lookUp(job)
    const parsed = parseWhen(when, this.#parts.world.clock.now())
    const problems = parsed.ok ? [] : [{ path: 'when', message: parsed.problem }]
    if (options?.in !== undefined || options?.at !== undefined)
      problems.push({ path: 'options', message: 'has in or at; the time is the third argument' })
    // A value that holds no options is passed on, and refused together with the other problems.
    const isWrong = options !== undefined && !isOptionsObject(options)
    const timed = isWrong ? options : { ...options, ...timeOption(parsed.ok, when) }
    return { registered, payload, options: timed, problems }
  }

  #bulk(job: Enqueueable, payloads: readonly unknown[], options: BulkItemOptions): Bulk {
    const registered = this.#lookUp(job)
    if (!Array.isArray(payloads)) throw badPayloads(`must be an array, got ${show(payloads)}`)
    if (payloads.length > BULK_MAX) throw badPayloads(`must be at most ${BULK_MAX}, got ${payloads.length}`)
    return {
      registered,
      payloads,
      options,
      newId: () => this.#newId(),
      nowMs: this.#parts.world.clock.now(),
      captured: this.#parts.capture?.capture(),
      chain: this.#parts.chainOf(registered.job.name),
    }
  }

  #lookUp(job: Enqueueable): Registered {
    const registered = this.#parts.registry.lookUp(job)
    this.#noteUnregistered(registered)
    return registered
  }

  #noteUnregistered({ job: { name } }: Registered): void {
    if (!this.#parts.registry.has(name)) this.#parts.unregistered(name)
  }

  #handles(inserted: readonly Inserted[]): Handle<unknown>[] {
    return inserted.map((one) => this.#parts.toHandle(one.id, one.isNew))
  }

  #newId(): string {
    return this.#parts.world.ids.jobId(this.#parts.world.clock.now())
  }
}

function insertOptions(registered: Registered, onDuplicate: OnDuplicate, by: InsertedBy | undefined): InsertOptions {
  return { onDuplicate, keepCancelledMs: registered.keepMs.cancelled, ...by }
}

function withoutProblems(context: CaptureResult | undefined): CaptureResult | undefined {
  return context === undefined ? undefined : { ...context, problems: [] }
}

function toWhenDone(item: Item, prepared: Prepared): WhenDone {
  const { onDuplicate, keepCancelledMs } = insertOptions(
    item.registered,
    item.options?.onDuplicate ?? 'return',
    undefined,
  )
  return { job: rowOrThrow(item, prepared), options: { onDuplicate, keepCancelledMs } }
}

/** Options that a `whenDone` job cannot have. The store inserts it later: no caller waits for a refusal, and no transaction is open. */
function whenDoneProblems(options: EnqueueOptions | undefined, registered: Registered): Problem[] {
  const wrong: Problem[] = []
  if (options?.tx !== undefined) wrong.push({ path: 'options.tx', message: 'belongs to seal({ tx }), not to whenDone' })
  if (options?.group !== undefined) wrong.push({ path: 'options.group', message: 'cannot be given to whenDone' })
  if (options?.onDuplicate === 'reject')
    wrong.push({ path: 'options.onDuplicate', message: `must be "return" or "replace": ${NO_CALLER}` })
  const unique = options?.unique
  const policy = unique === false ? 'ignore' : unique?.onDuplicate
  if ((policy ?? registered.unique?.onDuplicate) === 'reject') {
    const message = `must be "ignore", "replace" or "reschedule"${policy === undefined ? ', and its job says "reject"' : ''}: ${NO_CALLER}`
    wrong.push({ path: 'options.unique.onDuplicate', message })
  }
  return wrong
}

const NO_CALLER = 'the store enqueues this job later, when no caller waits for an error'

function isNew(one: Inserted): boolean {
  return one.isNew
}

function rowOrThrow(item: Item, prepared: Prepared): NewJob {
  if ('wrong' in prepared) refuse(item.registered.job.name, [prepared.wrong])
  return prepared.row
}

function timeOption(isValid: boolean, when: unknown): EnqueueOptions {
  if (!isValid) return {}
  return 'inMs' in whenOf(when) ? { in: when as never } : { at: when as never }
}

function badPayloads(message: string): InvalidOptionsError {
  return new InvalidOptionsError('enqueueMany()', [{ path: 'payloads', message }])
}
