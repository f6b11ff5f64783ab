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
import { allKnown, followed } from '../../store/followed.js'
import type { Claim, Store } from '../../store/store.js'
import { readBulkOptions, BULK_MAX, copyPayloads } from './bulk.js'
import type { BulkOptions } from './bulk.js'
import type { FlowGraph } from '../flow/flow.js'
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
    under?: Claim,
  ): Promise<Handle<unknown>>
  enqueueMany(job: Enqueueable, payloads: readonly unknown[], options: BulkOptions): Promise<Handle<unknown>[]>
  schedule(
    job: Enqueueable,
    payload: unknown,
    when: unknown,
    options: EnqueueOptions | undefined,
  ): Promise<Handle<unknown>>
  flow(graph: FlowGraph): Promise<Handle<unknown>[]>
}

export interface HookedParts {
  readonly store: Pick<Store, 'transactions'>
  /** Told of a hook's fault that changes nothing any more. */
  readonly events: { hookFailed(which: 'enqueue', job: { readonly name: string }, error: unknown): void }
}

/** The same calls through the hooks; without hooks, the calls themselves. Where none can be synchronous, all of them reject. */
export function enqueueThroughHooks(
  client: EnqueueVerbs,
  registry: Registry,
  hooks: HookLists['enqueue'],
  parts: HookedParts,
): EnqueueVerbs {
  const verbs = hooks.length === 0 ? client : verbsThroughHooks(client, registry, hooks, parts)
  return parts.store.transactions.answersLater ? asyncVerbs(verbs) : verbs
}

/** What would be thrown within a call with tx, so that a synchronous callback rolls back, is a rejection as without it. */
function asyncVerbs(verbs: EnqueueVerbs): EnqueueVerbs {
  return {
    enqueue: async (...call) => verbs.enqueue(...call),
    enqueueMany: async (...call) => verbs.enqueueMany(...call),
    schedule: async (...call) => verbs.schedule(...call),
    flow: async (graph) => verbs.flow(graph),
  }
}

function verbsThroughHooks(
  client: EnqueueVerbs,
  registry: Registry,
  hooks: HookLists['enqueue'],
  parts: HookedParts,
): EnqueueVerbs {
  const pass = (call: EnqueueCall, insert: Insert): Promise<Handle<unknown>[]> => passAll(hooks, call, insert, parts)
  return {
    enqueue: (job, payload, options, under) => {
      const own = copyOrEmpty(options)
      return rejectUnlessInTransaction(txOf(own) !== undefined, () => {
        const taken = readCall(registry.lookUp(job), [payload], () => own)
        const insert: Insert = ([one]) =>
          followed(client.enqueue(job, taken.payloads[0], one?.options, under), (handle) => [handle])
        return firstHandle(pass({ verb: 'enqueue', ...taken.call }, insert))
      })
    },
    enqueueMany: (job, payloads, options) => {
      if (!Array.isArray(payloads) || payloads.length > BULK_MAX) return client.enqueueMany(job, payloads, options)
      const own = copyPayloads(payloads)
      const each = readBulkOptions(own, options)
      return rejectUnlessInTransaction(each.tx !== undefined, () => {
        const taken = readCall(registry.lookUp(job), own, (index) => copyOrEmpty(each.of(index)))
        const insert: Insert = (all) =>
          client.enqueueMany(job, taken.payloads, (_, i) => (all[i] as EnqueueItem).options)
        return pass({ verb: 'enqueueMany', ...taken.call }, insert)
      })
    },
    schedule: (job, payload, when, options) => {
      const own = copyOrEmpty(options)
      const at = copyValue(when)
      return rejectUnlessInTransaction(txOf(own) !== undefined, () => {
        const taken = readCall(registry.lookUp(job), [payload], () => own)
        const insert: Insert = ([one]) =>
          followed(client.schedule(job, taken.payloads[0], at, one?.options), (handle) => [handle])
        return firstHandle(pass({ verb: 'schedule', ...taken.call, when: at }, insert))
      })
    },
    flow: (graph) => rejectUnlessInTransaction(graph.tx !== undefined, () => passFlow(graph, client, pass)),
  }
}

/** Every node goes through the hooks by itself; the flow is written when the last of them has called next(). */
function passFlow(
  graph: FlowGraph,
  client: EnqueueVerbs,
  pass: (call: EnqueueCall, insert: Insert) => Promise<Handle<unknown>[]>,
): Promise<Handle<unknown>[]> {
  const gate = new FlowGate(graph, client)
  const handles = graph.nodes.map((node, index) => {
    const options = { ...node.options, ...(graph.tx === undefined ? {} : { tx: graph.tx }) }
    const taken = readCall(node.registered, [node.payload], () => options)
    const insert: Insert = ([one]) => {
      const { tx: _, ...own } = one?.options ?? {}
      return gate.arrive(index, { ...node, payload: taken.payloads[0], options: own })
    }
    const passing = pass({ verb: 'flow', ...taken.call }, insert)
    passing.catch((error: unknown) => gate.fail(error))
    return firstHandle(passing)
  })
  return graph.nodes.length === 0 ? client.flow(graph) : allKnown(handles)
}

type Insert = (items: readonly EnqueueItem[]) => Promise<Handle<unknown>[]>

interface HookedCall {
  readonly call: Pick<EnqueueCall, 'job' | 'items'>
  /** What is written, whatever becomes of the objects that the hooks are shown. */
  readonly payloads: readonly unknown[]
}

function readCall(
  registered: Registered,
  payloads: readonly unknown[],
  optionsOf: (index: number) => EnqueueOptions,
): HookedCall {
  const shown = new Map<EnqueueOptions, EnqueueOptions>()
  const items = payloads.map((payload, index) => {
    const own = optionsOf(index)
    const options = shown.get(own) ?? frozen(registered, own)
    shown.set(own, options)
    return { payload, options }
  })
  return {
    call: { job: registered.job.name, items },
    payloads: payloads.map((payload, index) => snapshot(registered, payload, index)),
  }
}

/** What cannot be written is passed on as it is, to be refused. */
function snapshot(registered: Registered, payload: unknown, index: number): unknown {
  try {
    return new PayloadSnapshot(registered, payload, encodePayload(registered, payload, index))
  } catch {
    return payload
  }
}

/** Fresh for each call. What is no object at all is passed on as it is, to be refused. */
const copyOrEmpty = (options: EnqueueOptions | undefined): EnqueueOptions =>
  options === undefined ? {} : copyOptions(options)

/** A hook changes options by what it gives to next(), never in place: the items of a bulk may share them. */
function frozen({ codec }: Registered, options: EnqueueOptions): EnqueueOptions {
  if (!isPlainObject(options)) return options
  try {
    return Object.freeze(
      options.meta === undefined ? { ...options } : { ...options, meta: codec.decode(codec.encode(options.meta)) },
    )
  } catch {
    // What cannot be read or written is refused where it is checked.
    return options
  }
}

/** One hook inside the other. A call whose options are wrong in themselves is refused as ever, and no hook sees it. */
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
  // What a hook throws after next() must not leave in the transaction what next() wrote.
  return tx === undefined ? start(false) : parts.store.transactions.guarded(tx, start)
}

type OptionsChange = NonNullable<Parameters<EnqueueNext>[0]>

function applyChange(items: readonly EnqueueItem[], change: OptionsChange): EnqueueItem[] {
  return items.map((item, index) => {
    const laid: unknown = typeof change === 'function' ? change(item, index) : change
    const wrong = wrongChange(laid, item)
    if (wrong !== undefined) throw new InvalidOptionsError('hooks.enqueue', [wrong])
    return { payload: item.payload, options: { ...item.options, ...(laid as EnqueueOptions) } }
  })
}

function wrongChange(laid: unknown, item: EnqueueItem): Problem | undefined {
  if (isThenable(laid)) {
    ignoreRejection(laid)
    return { path: 'next()', message: 'takes options, and got a promise of them; await it before you call next()' }
  }
  if (!isPlainObject(laid))
    return {
      path: 'next()',
      message: `takes options to lay over the job’s own, or a function of them, got ${show(laid)}`,
    }
  // To pass on the item's own is no change: `next((item) => ({ ...item.options, queue: 'slow' }))`.
  if ('tx' in laid && laid.tx !== item.options.tx)
    return { path: 'next().tx', message: 'cannot be changed by a hook: the transaction is the caller’s to choose' }
  return undefined
}

/** As from an async function: what is refused rejects. In a caller's transaction it is thrown, so that it rolls back. */
function rejectUnlessInTransaction<T>(inTransaction: boolean, call: () => Promise<T>): Promise<T> {
  if (inTransaction) return call()
  try {
    return call()
  } catch (error) {
    return Promise.reject(error as Error)
  }
}

function firstHandle(asked: Promise<Handle<unknown>[]>): Promise<Handle<unknown>> {
  return followed(asked, ([handle]) => handle as Handle<unknown>)
}
