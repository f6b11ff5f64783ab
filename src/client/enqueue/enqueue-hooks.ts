import { isPlainObject } from '../../codec/options-object.js'
import { show } from '../../codec/show.js'
import { InvalidOptionsError } from '../../errors.js'
import type { Problem } from '../../errors.js'
import { runThroughHook } from '../../job/attempt/run-hooks.js'
import { checkEnqueueOptions } from '../../job/definition/check-options.js'
import type { EnqueueOptions, Enqueueable, Handle } from '../../job/enqueue.js'
import type { EnqueueCall, EnqueueItem, EnqueueNext, HookLists } from '../../job/attempt/hooks.js'
import type { Registered, Registry } from '../../job/definition/registry.js'
import { isThenable, ignoreRejection } from '../../job/definition/schema.js'
import { allOrUnknown, thenOrRetry } from '../../store/unknown-outcome.js'
import type { CalledBy } from '../../job/definition/stored-options.js'
import type { InsertedBy, InsertOptions, NewJob, Store } from '../../store/store.js'
import { readBulkOptions, BULK_MAX, copyPayloads } from './bulk.js'
import type { BulkOptions } from './bulk.js'
import type { FlowGraph } from '../flow/flow.js'
import { ITEMS_MAX } from '../sequence/items.js'
import type { SequenceOptions } from '../sequence/write-sequence.js'
import { FlowGate } from '../flow/flow-gate.js'
import { copyValue, copyOptions, PayloadSnapshot } from './call-snapshot.js'
import { txOf } from './in-transaction.js'
import { encodePayload } from './prepare.js'

/** The calls that enqueue. */
export interface EnqueueVerbs {
  enqueue(
    job: Enqueueable,
    payload: unknown,
    options: EnqueueOptions | undefined,
    by?: InsertedBy,
  ): Promise<Handle<unknown>>
  enqueueMany(job: Enqueueable, payloads: readonly unknown[], options: BulkOptions): Promise<Handle<unknown>[]>
  schedule(
    job: Enqueueable,
    payload: unknown,
    when: unknown,
    options: EnqueueOptions | undefined,
  ): Promise<Handle<unknown>>
  flow(graph: FlowGraph): Promise<Handle<unknown>[]>
  sequence(job: Enqueueable, items: readonly unknown[], options: SequenceOptions | undefined): Promise<Handle<unknown>>
  /** A job that a workflow calls: it is checked and encoded, and inserted later with the row of the call. */
  child(
    job: Enqueueable,
    payload: unknown,
    options: EnqueueOptions | undefined,
    calledBy: CalledBy,
  ): Promise<PreparedJob>
}

export interface PreparedJob {
  readonly job: NewJob
  readonly options: InsertOptions
}

type HookedClient = EnqueueVerbs & { handle(id: string): Handle<unknown> }

export interface HookedParts {
  readonly store: Pick<Store, 'transactions'>
  /** Receives the error of a hook that failed too late to change the result of the call. */
  readonly events: { hookFailed(which: 'enqueue', job: { readonly name: string }, error: unknown): void }
}

/**
 * The verbs with the enqueue hooks around them; without hooks, the client's own. Where the store's transactions are asynchronous
 * no verb throws synchronously.
 */
export function enqueueThroughHooks(
  client: HookedClient,
  registry: Registry,
  hooks: HookLists['enqueue'],
  parts: HookedParts,
): EnqueueVerbs {
  const verbs = hooks.length === 0 ? client : verbsThroughHooks(client, registry, hooks, parts)
  return parts.store.transactions.answersLater ? asyncVerbs(verbs) : verbs
}

/** Every refusal is a rejection, also with `tx`: an asynchronous transaction callback rolls back by awaiting it. */
function asyncVerbs(verbs: EnqueueVerbs): EnqueueVerbs {
  return {
    enqueue: async (...call) => verbs.enqueue(...call),
    enqueueMany: async (...call) => verbs.enqueueMany(...call),
    schedule: async (...call) => verbs.schedule(...call),
    flow: async (graph) => verbs.flow(graph),
    sequence: async (...call) => verbs.sequence(...call),
    child: async (...call) => verbs.child(...call),
  }
}

function verbsThroughHooks(
  client: HookedClient,
  registry: Registry,
  hooks: HookLists['enqueue'],
  parts: HookedParts,
): EnqueueVerbs {
  const pass = (call: EnqueueCall, insert: Insert): Promise<Handle<unknown>[]> => passAll(hooks, call, insert, parts)
  return {
    enqueue: (job, payload, options, by) => {
      const own = copyOrEmpty(options)
      return rejectUnlessInTransaction(txOf(own) !== undefined, () => {
        const hookedCall = readCall(registry.lookUp(job), [payload], () => own)
        const insert: Insert = ([one]) =>
          thenOrRetry(client.enqueue(job, hookedCall.payloads[0], one?.options, by), (handle) => [handle])
        return firstHandle(pass({ verb: 'enqueue', ...hookedCall.call }, insert))
      })
    },
    enqueueMany: (job, payloads, options) => {
      if (!Array.isArray(payloads) || payloads.length > BULK_MAX) return client.enqueueMany(job, payloads, options)
      const own = copyPayloads(payloads)
      const each = readBulkOptions(own, options)
      return rejectUnlessInTransaction(each.tx !== undefined, () => {
        const hookedCall = readCall(registry.lookUp(job), own, (index) => copyOrEmpty(each.of(index)))
        const insert: Insert = (all) =>
          client.enqueueMany(job, hookedCall.payloads, (_, i) => (all[i] as EnqueueItem).options)
        return pass({ verb: 'enqueueMany', ...hookedCall.call }, insert)
      })
    },
    schedule: (job, payload, when, options) => {
      const own = copyOrEmpty(options)
      const at = copyValue(when)
      return rejectUnlessInTransaction(txOf(own) !== undefined, () => {
        const hookedCall = readCall(registry.lookUp(job), [payload], () => own)
        const insert: Insert = ([one]) =>
          thenOrRetry(client.schedule(job, hookedCall.payloads[0], at, one?.options), (handle) => [handle])
        return firstHandle(pass({ verb: 'schedule', ...hookedCall.call, when: at }, insert))
      })
    },
    child: (...call) => passChild(client, registry, pass, call),
    flow: (graph) => rejectUnlessInTransaction(graph.tx !== undefined, () => passFlow(graph, client, pass)),
    sequence: (job, items, given) => {
      const { start, ...own } = copyOrEmpty(given as EnqueueOptions | undefined) as SequenceOptions
      // The insert refuses what is no list.
      if (!Array.isArray(items) || items.length > ITEMS_MAX) return client.sequence(job, items, given)
      return rejectUnlessInTransaction(txOf(own) !== undefined, () => {
        const hookedCall = readCall(registry.lookUp(job), copyPayloads(items), () => own)
        // One call with one item: the list. So a hook sees the options that it may override once.
        const item = { payload: items, options: hookedCall.call.items[0]?.options ?? own }
        const insert: Insert = ([one]) =>
          thenOrRetry(client.sequence(job, hookedCall.payloads, { ...one?.options, start }), (handle) => [handle])
        return firstHandle(pass({ verb: 'sequence', ...hookedCall.call, items: [item] }, insert))
      })
    },
  }
}

/** To the hooks it is enqueued when it is ready to be inserted: the row of the call is written with it. */
async function passChild(
  client: HookedClient,
  registry: Registry,
  pass: (call: EnqueueCall, insert: Insert) => Promise<Handle<unknown>[]>,
  [job, payload, options, calledBy]: Parameters<EnqueueVerbs['child']>,
): Promise<PreparedJob> {
  const own = copyOrEmpty(options)
  const hookedCall = readCall(registry.lookUp(job), [payload], () => own)
  const made: PreparedJob[] = []
  const insert: Insert = async ([one]) => {
    made.push(await client.child(job, hookedCall.payloads[0], one?.options, calledBy))
    return [client.handle((made[0] as PreparedJob).job.id)]
  }
  await pass({ verb: 'enqueue', ...hookedCall.call }, insert)
  return made[0] as PreparedJob
}

/** The hooks are called once for each node. The flow is inserted when the hooks of the last node have called next(). */
function passFlow(
  graph: FlowGraph,
  client: EnqueueVerbs,
  pass: (call: EnqueueCall, insert: Insert) => Promise<Handle<unknown>[]>,
): Promise<Handle<unknown>[]> {
  const gate = new FlowGate(graph, client)
  const handles = graph.nodes.map((node, index) => {
    const options = { ...node.options, ...(graph.tx === undefined ? {} : { tx: graph.tx }) }
    const hookedCall = readCall(node.registered, [node.payload], () => options)
    const insert: Insert = ([one]) => {
      const { tx: _, ...own } = one?.options ?? {}
      return gate.arrive(index, { ...node, payload: hookedCall.payloads[0], options: own })
    }
    const passing = pass({ verb: 'flow', ...hookedCall.call }, insert)
    passing.catch((error: unknown) => gate.fail(error))
    return firstHandle(passing)
  })
  return graph.nodes.length === 0 ? client.flow(graph) : allOrUnknown(handles)
}

type Insert = (items: readonly EnqueueItem[]) => Promise<Handle<unknown>[]>

interface HookedCall {
  readonly call: Pick<EnqueueCall, 'job' | 'queue' | 'items'>
  /** Snapshots for the insert: a hook that mutates the payloads it sees does not change them. */
  readonly payloads: readonly unknown[]
}

function readCall(
  registered: Registered,
  payloads: readonly unknown[],
  optionsOf: (index: number) => EnqueueOptions,
): HookedCall {
  const frozenByOptions = new Map<EnqueueOptions, EnqueueOptions>()
  const items = payloads.map((payload, index) => {
    const own = optionsOf(index)
    const options = frozenByOptions.get(own) ?? frozen(registered, own)
    frozenByOptions.set(own, options)
    return { payload, options }
  })
  return {
    call: { job: registered.job.name, queue: registered.queue, items },
    payloads: payloads.map((payload, index) => snapshot(registered, payload, index)),
  }
}

/** A payload that cannot be encoded is passed on unchanged, and refused by the insert. */
function snapshot(registered: Registered, payload: unknown, index: number): unknown {
  try {
    return new PayloadSnapshot(registered, payload, encodePayload(registered, payload, index))
  } catch {
    return payload
  }
}

/** A new object for each call. A value that is no object is passed on unchanged, and refused by the check. */
const copyOrEmpty = (options: EnqueueOptions | undefined): EnqueueOptions =>
  options === undefined ? {} : copyOptions(options)

/** Frozen: a hook changes options by the argument of next(), never in place. The items of a bulk may share one object. */
function frozen({ codec }: Registered, options: EnqueueOptions): EnqueueOptions {
  if (!isPlainObject(options)) return options
  try {
    return Object.freeze(
      options.meta === undefined ? { ...options } : { ...options, meta: codec.decode(codec.encode(options.meta)) },
    )
  } catch {
    // A getter threw, or `meta` cannot be encoded. The check of the options reports it.
    return options
  }
}

/** Nests the hooks, the first outermost. A call with invalid options is refused by the insert without calling any hook. */
function passAll(
  hooks: HookLists['enqueue'],
  call: EnqueueCall,
  insert: Insert,
  parts: HookedParts,
): Promise<Handle<unknown>[]> {
  const all = [...new Set(call.items.map(({ options }) => options))]
  if (all.some((options) => checkEnqueueOptions(options, '').length > 0)) return insert(call.items)
  const failed = (error: unknown): void => parts.events.hookFailed('enqueue', { name: call.job }, error)
  const step = (at: number, items: readonly EnqueueItem[], sync: boolean): unknown => {
    const hook = hooks[at]
    if (hook === undefined) return insert(items)
    const inner = (change?: OptionsChange): unknown =>
      step(at + 1, change === undefined ? items : applyChange(items, change), sync)
    return runThroughHook('enqueue', (next) => hook({ ...call, items }, next as EnqueueNext), inner, { sync, failed })
  }
  const start = (sync: boolean): Promise<Handle<unknown>[]> => step(0, call.items, sync) as Promise<Handle<unknown>[]>
  const tx = all.find((options) => options.tx !== undefined)?.tx
  // When a hook throws after next(), the rows that next() inserted are removed from the caller's transaction.
  return tx === undefined ? start(false) : parts.store.transactions.guarded(tx, start)
}

type OptionsChange = NonNullable<Parameters<EnqueueNext>[0]>

function applyChange(items: readonly EnqueueItem[], change: OptionsChange): EnqueueItem[] {
  return items.map((item, index) => {
    const override: unknown = typeof change === 'function' ? change(item, index) : change
    const wrong = overrideProblem(override, item)
    if (wrong !== undefined) throw new InvalidOptionsError('hooks.enqueue', [wrong])
    return { payload: item.payload, options: { ...item.options, ...(override as EnqueueOptions) } }
  })
}

function overrideProblem(override: unknown, item: EnqueueItem): Problem | undefined {
  if (isThenable(override)) {
    ignoreRejection(override)
    return { path: 'next()', message: 'takes options, and got a promise of them; await it before you call next()' }
  }
  if (!isPlainObject(override))
    return {
      path: 'next()',
      message: `takes options that override the job’s own, or a function that returns them, got ${show(override)}`,
    }
  // Passing on the item's own tx is no change: `next((item) => ({ ...item.options, queue: 'slow' }))`.
  if ('tx' in override && override.tx !== item.options.tx)
    return { path: 'next().tx', message: 'cannot be changed by a hook: the transaction is the caller’s to choose' }
  return undefined
}

/** Turns a throw into a rejection, except in the caller's transaction: there the throw makes a synchronous callback roll back. */
function rejectUnlessInTransaction<T>(inTransaction: boolean, call: () => Promise<T>): Promise<T> {
  if (inTransaction) return call()
  try {
    return call()
  } catch (error) {
    return Promise.reject(error as Error)
  }
}

function firstHandle(handles: Promise<Handle<unknown>[]>): Promise<Handle<unknown>> {
  return thenOrRetry(handles, ([handle]) => handle as Handle<unknown>)
}
