import { isOptionsObject } from '../../codec/options-object.js'
import { show } from '../../codec/show.js'
import { InvalidOptionsError } from '../../errors.js'
import type { Problem } from '../../errors.js'
import type { Capture, CaptureResult } from '../../job/attempt/capture.js'
import { parseWhen } from '../../job/duration/duration.js'
import type { EnqueueOptions, Enqueueable, Handle } from '../../job/enqueue.js'
import type { Registered, Registry } from '../../job/definition/registry.js'
import type { OnDuplicate } from '../../job/rules/unique.js'
import { followed } from '../../store/followed.js'
import type { Claim, Inserted, InsertOptions, NewJob, Store } from '../../store/store.js'
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
  /** Takes context at each enqueue; undefined when none is captured. */
  readonly capture: Capture | undefined
  readonly enqueued: (jobs: readonly NewJob[]) => void
  /** Called with the name of a job that is enqueued here and not registered here. */
  readonly unregistered: (name: string) => void
  readonly toHandle: (id: string, isNew: boolean) => Handle<unknown>
}

/**
 * The three verbs that make jobs. Each checks and encodes, then writes: by itself, all by its promise, or within the caller's
 * transaction, and then all within the call, refusals too.
 */
export class Enqueuer {
  readonly #parts: EnqueuerParts

  constructor(parts: EnqueuerParts) {
    this.#parts = parts
  }

  enqueue(
    job: Enqueueable,
    payload: unknown,
    given: EnqueueOptions | undefined,
    under: Claim | undefined,
  ): Promise<Handle<unknown>> {
    const options = copyOptions(given)
    const make = (): Item => ({ registered: this.#lookUp(job), payload, options })
    return this.#one(make, options, options?.onDuplicate ?? 'return', under)
  }

  schedule(
    job: Enqueueable,
    payload: unknown,
    when: unknown,
    given: EnqueueOptions | undefined,
  ): Promise<Handle<unknown>> {
    const options = copyOptions(given)
    const make = (): Item => this.#timed(job, payload, when, options)
    return this.#one(make, options, options?.onDuplicate ?? 'move', undefined)
  }

  /** The row of a job that is to be enqueued later, again and again; `problems` are refused with what else is wrong. */
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

  enqueueMany(job: Enqueueable, given: readonly unknown[], options: BulkOptions): Promise<Handle<unknown>[]> {
    const payloads = copyPayloads(given)
    const asked = readBulkOptions(payloads, options)
    const make = (): Bulk => this.#bulk(job, payloads, asked)
    const { tx } = asked
    if (tx === undefined) return this.#many(make)
    const bulk = make()
    const { rows, onDuplicate } = prepareManySync(bulk)
    refuseTooManyLinks(rows, 'enqueueMany()')
    const written = this.#insertIn(tx, rows, insertOptions(bulk.registered, onDuplicate, undefined))
    return thenSync(written, (inserted) => this.#handles(inserted))
  }

  /** A whole graph in one transaction. */
  flow(graph: FlowGraph): Promise<Handle<unknown>[]> {
    for (const { registered } of graph.nodes) this.#noteUnregistered(registered)
    if (graph.tx === undefined) return this.#graph(graph)
    const made = this.#draftAll(graph).map((one, index) =>
      requireSync((graph.nodes[index] as GraphNode).registered, one),
    )
    const written = this.#insertIn(graph.tx, flowRows(graph, made), flowOptions(graph))
    return thenSync(written, (inserted) => this.#handles(inserted))
  }

  async #graph(graph: FlowGraph): Promise<Handle<unknown>[]> {
    const made: Prepared[] = []
    for (const one of this.#draftAll(graph)) made.push(one instanceof Promise ? await one : one)
    return this.#insert(flowRows(graph, made), flowOptions(graph), (inserted) => this.#handles(inserted))
  }

  /** All within the call, so that what counts is what was given at it. */
  #draftAll({ nodes }: FlowGraph): (Prepared | Promise<Prepared>)[] {
    const taken = this.#parts.capture?.capture()
    return nodes.map(({ registered, payload, options, addedParents: beside, id }, index) =>
      // Told once when it is wrong.
      prepare(
        withCaptured(
          { registered, payload, options, flowParents: beside, index },
          index === 0 ? taken : withoutProblems(taken),
        ),
        id,
      ),
    )
  }

  /** Checks and encodes a job that the store is to enqueue later, when its group is done. */
  async plan(job: Enqueueable, payload?: unknown, given?: EnqueueOptions): Promise<WhenDone> {
    const item = this.#later(job, payload, given)
    return toWhenDone(item, await this.#prepare(item))
  }

  /** The same within the call. */
  planSync(job: Enqueueable, payload?: unknown, given?: EnqueueOptions): WhenDone {
    const item = this.#later(job, payload, given)
    return toWhenDone(item, requireSync(item.registered, this.#prepare(item)))
  }

  #later(job: Enqueueable, payload: unknown, given: EnqueueOptions | undefined): Item {
    const options = copyOptions(given)
    const registered = this.#lookUp(job)
    return { registered, payload, options, problems: whenDoneProblems(options, registered) }
  }

  #one(
    make: () => Item,
    options: EnqueueOptions | undefined,
    onDuplicate: OnDuplicate,
    under: Claim | undefined,
  ): Promise<Handle<unknown>> {
    const tx = txOf(options)
    if (tx === undefined) return this.#alone(make, onDuplicate, under)
    const item = make()
    const row = rowOrThrow(item, requireSync(item.registered, this.#prepare(item)))
    const written = this.#insertIn(tx, [row], insertOptions(item.registered, onDuplicate, under))
    return thenSync(written, (inserted) => this.#handles(inserted)[0] as Handle<unknown>)
  }

  async #alone(make: () => Item, onDuplicate: OnDuplicate, under: Claim | undefined): Promise<Handle<unknown>> {
    const item = make()
    const made = await this.#prepare(item)
    const options = insertOptions(item.registered, onDuplicate, under)
    return this.#insert([rowOrThrow(item, made)], options, (inserted) => this.#handles(inserted)[0] as Handle<unknown>)
  }

  async #many(make: () => Bulk): Promise<Handle<unknown>[]> {
    const bulk = make()
    const { rows, onDuplicate } = await prepareMany(bulk)
    refuseTooManyLinks(rows, 'enqueueMany()')
    const options = insertOptions(bulk.registered, onDuplicate, undefined)
    return this.#insert(rows, options, (inserted) => this.#handles(inserted))
  }

  #prepare(item: Item): Prepared | Promise<Prepared> {
    return prepare(withCaptured(item, this.#parts.capture?.capture()), this.#newId())
  }

  #insert<T>(
    rows: readonly NewJob[],
    options: InsertOptions,
    toAnswer: (inserted: readonly Inserted[]) => T,
  ): Promise<T> {
    return followed(this.#parts.store.jobs.insertJobs(rows, options), (inserted) => {
      this.#parts.enqueued(inserted.every(isNew) ? rows : rows.filter((_, i) => inserted[i]?.isNew === true))
      return toAnswer(inserted)
    })
  }

  /** Nobody is told that they were enqueued: only the commit of their owner makes it true. */
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
    // What holds no options is passed on as it is, to be refused with the rest.
    const isWrong = options !== undefined && !isOptionsObject(options)
    const timed = isWrong ? options : { ...options, ...timeOption(parsed.ok, when) }
    return { registered, payload, options: timed, problems }
  }

  #bulk(job: Enqueueable, payloads: readonly unknown[], asked: BulkItemOptions): Bulk {
    const registered = this.#lookUp(job)
    if (!Array.isArray(payloads)) throw badPayloads(`must be an array, got ${show(payloads)}`)
    if (payloads.length > BULK_MAX) throw badPayloads(`must be at most ${BULK_MAX}, got ${payloads.length}`)
    return {
      registered,
      payloads,
      options: asked,
      newId: () => this.#newId(),
      captured: this.#parts.capture?.capture(),
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

function insertOptions(registered: Registered, onDuplicate: OnDuplicate, under: Claim | undefined): InsertOptions {
  return { onDuplicate, keepCancelledMs: registered.keepMs.cancelled, under }
}

function withoutProblems(taken: CaptureResult | undefined): CaptureResult | undefined {
  return taken === undefined ? undefined : { ...taken, problems: [] }
}

function toWhenDone(item: Item, made: Prepared): WhenDone {
  const { onDuplicate, keepCancelledMs } = insertOptions(
    item.registered,
    item.options?.onDuplicate ?? 'return',
    undefined,
  )
  return { job: rowOrThrow(item, made), options: { onDuplicate, keepCancelledMs } }
}

/** What means nothing for a job that the store enqueues by itself: nobody is there to be told, and no transaction is open. */
function whenDoneProblems(options: EnqueueOptions | undefined, registered: Registered): Problem[] {
  const wrong: Problem[] = []
  if (options?.tx !== undefined) wrong.push({ path: 'options.tx', message: 'belongs to seal({ tx }), not to whenDone' })
  if (options?.group !== undefined) wrong.push({ path: 'options.group', message: 'cannot be given to whenDone' })
  if (options?.onDuplicate === 'reject')
    wrong.push({ path: 'options.onDuplicate', message: 'must be "return" or "replace": nobody is there to be told' })
  const unique = options?.unique
  const own = unique === false ? 'ignore' : unique?.onDuplicate
  if ((own ?? registered.unique?.onDuplicate) === 'reject') {
    const message = `must be "ignore", "replace" or "reschedule"${own === undefined ? ', and its job says "reject"' : ''}: nobody is there to be told`
    wrong.push({ path: 'options.unique.onDuplicate', message })
  }
  return wrong
}

function isNew(one: Inserted): boolean {
  return one.isNew
}

function rowOrThrow(item: Item, made: Prepared): NewJob {
  if ('wrong' in made) refuse(item.registered.job.name, [made.wrong])
  return made.row
}

function timeOption(isRight: boolean, when: unknown): EnqueueOptions {
  if (!isRight) return {}
  return 'inMs' in whenOf(when) ? { in: when as never } : { at: when as never }
}

function badPayloads(message: string): InvalidOptionsError {
  return new InvalidOptionsError('enqueueMany()', [{ path: 'payloads', message }])
}
