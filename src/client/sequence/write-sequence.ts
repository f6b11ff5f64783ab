import { InvalidOptionsError } from '../../errors.js'
import { isOptionsObject } from '../../codec/options-object.js'
import { show } from '../../codec/show.js'
import { TransactionError } from '../../errors.js'
import type { Problem } from '../../errors.js'
import type { EnqueueOptions, Enqueueable, Handle } from '../../job/enqueue.js'
import type { Encoded } from '../../job/rules/outcome.js'
import { isFinal } from '../../job/rules/states.js'
import { isThenable } from '../../job/definition/schema.js'
import type { Registered } from '../../job/definition/registry.js'
import { isSequence, readOptions, writeOptions } from '../../job/definition/stored-options.js'
import { ITEMS_PER_WRITE } from '../../store/sequences.js'
import type { NewSequence } from '../../store/sequences.js'
import { thenOrRetry } from '../../store/unknown-outcome.js'
import type { Inserted, NewJob } from '../../store/store.js'
import type { EnqueuerParts } from '../enqueue/enqueuer.js'
import { copyOptions, PayloadSnapshot } from '../enqueue/call-snapshot.js'
import { requireSync, thenSync, txOf } from '../enqueue/in-transaction.js'
import { prepare, withCaptured } from '../enqueue/prepare.js'
import type { Prepared } from '../enqueue/prepare.js'
import { refuseAs } from '../enqueue/refuse.js'
import { checkItems, copyItems, encodeItems } from './items.js'

/** The options of `mill.sequence`: those of an enqueue, except those that say when a single job runs. */
export interface SequenceOptions extends Omit<EnqueueOptions, 'after' | 'onParentFailure' | 'in' | 'at'> {
  /** Default true. False: it waits for `start()`. */
  readonly start?: boolean | undefined
}

/** A checked call: the row of its job, and its items as they are stored. */
interface Draft {
  readonly registered: Registered
  readonly row: NewJob
  readonly items: readonly Encoded[]
  readonly options: SequenceOptions
}

/** Checks, encodes and writes sequences. Like `Enqueuer`: with `tx` it is synchronous and throws what it refuses. */
export class SequenceWriter {
  readonly #parts: EnqueuerParts

  constructor(parts: EnqueuerParts) {
    this.#parts = parts
  }

  write(job: Enqueueable, items: unknown, callerOptions: SequenceOptions | undefined): Promise<Handle<unknown>> {
    const options = copyOptions(callerOptions as EnqueueOptions | undefined) as SequenceOptions | undefined
    const tx = isOptionsObject(options) ? txOf(options) : undefined
    if (tx === undefined) return this.#writeAsync(job, items, options)
    const { registered, encoded, copy } = this.#encoded(job, items)
    if (isThenable(checkItems(registered, copy))) throw asyncCheck(registered)
    const draft = this.#draft(registered, requireSync(registered, this.#prepare(registered, options, encoded)), {
      items: encoded,
      options: options ?? {},
    })
    const inserting = this.#parts.store.transactions.insertSequenceIn(tx, sequenceOf(draft, 0))
    return thenSync(inserting, ({ id, isNew }) => this.#parts.toHandle(id, isNew))
  }

  async #writeAsync(job: Enqueueable, items: unknown, options: SequenceOptions | undefined): Promise<Handle<unknown>> {
    const { registered, encoded, copy } = this.#encoded(job, items)
    const preparing = this.#prepare(registered, options, encoded)
    await checkItems(registered, copy)
    const draft = this.#draft(registered, await preparing, { items: encoded, options: options ?? {} })
    const held = await this.#holder(draft)
    return held ?? this.#writeFrom(draft, 0)
  }

  #encoded(
    job: Enqueueable,
    given: unknown,
  ): { readonly registered: Registered; readonly copy: readonly unknown[]; readonly encoded: readonly Encoded[] } {
    const registered = this.#parts.registry.lookUp(job)
    const { name } = registered.job
    if (registered.workflow !== undefined)
      throw new InvalidOptionsError('sequence()', [
        { path: 'job', message: `must be a job, and ${JSON.stringify(name)} is a workflow: use w.each in a workflow` },
      ])
    refuseUnbounded(registered)
    if (!this.#parts.registry.has(name)) this.#parts.unregistered(name)
    const copy = copyItems(given)
    const items = copy.map((item) => (item instanceof PayloadSnapshot ? item.read() : item))
    return { registered, copy: items, encoded: encodeItems(registered, copy) }
  }

  /** The row of its job. A sequence has items and no payload, so what a definition derives from a payload does not apply. */
  #prepare(
    registered: Registered,
    options: SequenceOptions | undefined,
    items: readonly Encoded[],
  ): Prepared | Promise<Prepared> {
    const { world, capture } = this.#parts
    const problems = optionProblems(options)
    const own = isOptionsObject(options) ? withoutRefused(options) : {}
    const { title, ...definition } = registered.job.options
    const without = { ...definition, input: undefined, accepts: undefined, after: undefined, unique: undefined }
    const kept = typeof title === 'string' && !title.includes('{') ? { title } : {}
    const plain = {
      ...registered,
      unique: undefined,
      limit: undefined,
      rate: undefined,
      job: { ...registered.job, options: { ...without, ...kept } },
    } as Registered
    const item = withCaptured({ registered: plain, payload: undefined, options: own, problems }, capture?.capture())
    const prepared = prepare(item, world.ids.jobId(world.clock.now()), world.clock.now())
    const marked = (one: Prepared): Prepared =>
      'wrong' in one ? one : { row: { ...one.row, options: markedOptions(one.row.options, items.length) } }
    return prepared instanceof Promise ? prepared.then(marked) : marked(prepared)
  }

  #draft(registered: Registered, prepared: Prepared, given: Pick<Draft, 'items' | 'options'>): Draft {
    if ('wrong' in prepared) refuseAs('sequence()', [prepared.wrong])
    return { registered, row: prepared.row, ...given }
  }

  /** The unfinished sequence of its key: then no item is written in vain. The insert decides all the same. */
  async #holder({ row, items, options }: Draft): Promise<Handle<unknown> | undefined> {
    if (row.key === null || items.length <= ITEMS_PER_WRITE || (options.onDuplicate ?? 'return') !== 'return')
      return undefined
    const holder = await this.#parts.store.jobs.readKeyed(row.name, row.key)
    if (holder === undefined || isFinal(holder.state) || !isSequence(holder.options)) return undefined
    return this.#parts.toHandle(holder.id, false)
  }

  /** Writes the items in slices, each in a transaction; the last one with the job of the sequence. */
  #writeFrom(draft: Draft, from: number): Promise<Handle<unknown>> {
    const { row, items } = draft
    const { sequences } = this.#parts.store
    const next = from + ITEMS_PER_WRITE
    if (next >= items.length)
      return thenOrRetry(sequences.insertSequence(sequenceOf(draft, from)), (inserted) => this.#inserted(row, inserted))
    const slice = { id: row.id, name: row.name, total: items.length, from, payloads: items.slice(from, next) }
    return thenOrRetry(sequences.addItems(slice), () => this.#writeFrom(draft, next))
  }

  #inserted(row: NewJob, { id, isNew }: Inserted): Handle<unknown> {
    if (isNew) this.#parts.enqueued([row])
    return this.#parts.toHandle(id, isNew)
  }
}

function sequenceOf({ registered, row, items, options }: Draft, from: number): NewSequence {
  const total = items.length
  return {
    job: row,
    options: { onDuplicate: options.onDuplicate ?? 'return', keepCancelledMs: registered.keepMs.cancelled },
    last: { id: row.id, total, from, payloads: items.slice(from) },
    start: options.start ?? true,
    empty: { result: registered.codec.encode({ done: 0, total: 0 }), keepMs: registered.keepMs.done },
  }
}

function markedOptions(options: string | null, total: number): string | null {
  return writeOptions({ ...readOptions(options), sequence: { total } })
}

const NO_TIME = 'a sequence begins at once, or with start() if it is given start: false'
const REFUSED: Readonly<Record<string, string>> = {
  in: NO_TIME,
  at: NO_TIME,
  after: 'let a job start it: call mill.sequence(id).start() in a job that comes after the others',
  onParentFailure: 'a sequence has no parents',
}

/** A value that holds no options is refused together with the other problems. */
function optionProblems(options: unknown): Problem[] {
  if (options === undefined) return []
  if (!isOptionsObject(options)) return [{ path: 'options', message: `must be an object, got ${show(options)}` }]
  const given = options as Readonly<Record<string, unknown>>
  const refused = Object.entries(REFUSED).filter(([name]) => given[name] !== undefined)
  const { start } = given
  const wrong = start === undefined || typeof start === 'boolean' ? [] : [startProblem(start)]
  return [
    ...refused.map(([name, why]) => ({ path: `options.${name}`, message: `is no option of a sequence: ${why}` })),
    ...wrong,
  ]
}

/** The options of its job: the others are reported once. */
function withoutRefused(options: object): EnqueueOptions {
  const kept = Object.entries(options).filter(([name]) => name !== 'start' && !Object.hasOwn(REFUSED, name))
  return Object.fromEntries(kept)
}

function startProblem(start: unknown): Problem {
  return { path: 'options.start', message: `must be true or false, got ${show(start)}` }
}

function asyncCheck({ job }: Registered): TransactionError {
  return new TransactionError(
    'E_TX_ASYNC_CHECK',
    `job ${JSON.stringify(job.name)}: its check of the items is asynchronous, and with tx a sequence is checked and written within the ` +
      'call; make the schema or accepts() synchronous, or call sequence() without tx',
  )
}

/** A sequence is claimed once for many items: a rate, or a limit for each key, could not hold for them. */
function refuseUnbounded({ job, limit, rate }: Registered): void {
  const problems = [
    ...(rate === undefined ? [] : ['has a rate']),
    ...(limit?.key === undefined ? [] : ['has a limit with a key']),
  ].map((what) => ({
    path: 'job',
    message: `must be a job without a rate and without a limit by key, and ${JSON.stringify(job.name)} ${what}, which would not hold for single items: enqueue the items as jobs of a group, or wait in the handler`,
  }))
  if (problems.length > 0) throw new InvalidOptionsError('sequence()', problems)
}
