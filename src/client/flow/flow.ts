import { isOptionsObject } from '../../codec/options-object.js'
import { show } from '../../codec/show.js'
import { InvalidOptionsError } from '../../errors.js'
import type { Problem } from '../../errors.js'
import { isAfter } from '../../job/definition/check-after.js'
import type { After, EnqueueOptions, Enqueueable, Handle } from '../../job/enqueue.js'
import type { Job } from '../../job/definition/define.js'
import type { Registered, Registry } from '../../job/definition/registry.js'
import { isThenable, ignoreRejection } from '../../job/definition/schema.js'
import { toParents } from '../enqueue/parent-links.js'
import { copyOptions } from '../enqueue/call-snapshot.js'
import { thenOrRetry } from '../../store/unknown-outcome.js'
import type { Parent } from '../../store/links.js'

/** The most jobs in one flow. */
export const FLOW_MAX = 100_000

/** A job of a flow that is being built. `after` takes it like a handle; `mill.flow` returns a handle for it. */
export interface FlowNode<Result, Payload = unknown> {
  /** The id the job will have. */
  readonly id: string
  /** Adds parents: nodes of this flow, handles, ids or [job, key]. */
  after(...parents: readonly After[]): FlowNode<Result, Payload>
  /** Never set: `result` and `payload` only carry types. */
  readonly result?: Result
  readonly payload?: Payload
}

/** The argument of the function that builds the graph of `mill.flow`. */
export interface FlowBuilder {
  add<Payload = unknown, Result = unknown>(
    job: Job<Payload, Result> | string,
    ...rest: FlowArguments<NoInfer<Payload>>
  ): FlowNode<Result, Payload>
}

/** The options of a node: those of an enqueue without `tx`, which belongs to the whole flow. */
export type FlowOptions = Omit<EnqueueOptions, 'tx'>
type FlowArguments<Payload> = undefined extends Payload
  ? [payload?: Payload, options?: FlowOptions]
  : [payload: Payload, options?: FlowOptions]

/** The return value of `build` with each node replaced by its handle; all handles in the order of `add` when it returned nothing. */
export type FlowHandles<Built> = Built extends void
  ? Handle<unknown>[]
  : Built extends FlowNode<infer Result, infer Payload>
    ? Handle<Result, Payload>
    : Built extends readonly unknown[] | Readonly<Record<string, unknown>>
      ? { [Key in keyof Built]: FlowHandles<Built[Key]> }
      : Built

/** A flow that `build` has finished. */
export interface FlowGraph {
  readonly nodes: readonly GraphNode[]
  readonly tx: unknown
}

export interface GraphNode {
  readonly id: string
  readonly job: Enqueueable
  readonly registered: Registered
  readonly payload: unknown
  readonly options: EnqueueOptions | undefined
  /** Parents that `node.after()` added. */
  readonly addedParents: readonly Parent[]
}

export interface FlowParts {
  readonly registry: Registry
  readonly newId: () => string
  readonly writer: { flow(graph: FlowGraph): Promise<Handle<unknown>[]> }
}

/**
 * Calls `build`, inserts the graph, and returns what `build` returned with each node replaced by its handle. A refusal rejects;
 * with `tx` it is thrown synchronously, so that the caller's transaction rolls back.
 */
export function runFlow(build: unknown, options: unknown, parts: FlowParts): Promise<unknown> {
  try {
    const tx = txOf(options)
    const draft = new FlowDraft(parts)
    const built = callBuild(build, draft)
    const nodes = draft.close()
    // Read before the insert: a getter in the returned object may throw.
    const toHandles = readBuilt(built, new Map(nodes.map(({ id }, index) => [id, index])), [])
    return thenOrRetry(parts.writer.flow({ nodes, tx }), (handles) =>
      built === undefined ? handles : toHandles(handles),
    )
  } catch (error) {
    if ((options as { readonly tx?: unknown } | undefined)?.tx !== undefined) throw error
    return Promise.reject(error as Error)
  }
}

function callBuild(build: unknown, draft: FlowBuilder): unknown {
  if (typeof build !== 'function')
    throw wrongFlow([{ path: 'build', message: `must be a function, got ${show(build)}` }])
  const built: unknown = (build as (f: FlowBuilder) => unknown)(draft)
  if (!isThenable(built)) return built
  ignoreRejection(built)
  throw wrongFlow([{ path: 'build', message: 'must be synchronous, and returned a promise; await before the flow' }])
}

function txOf(options: unknown): unknown {
  if (options === undefined) return undefined
  if (!isOptionsObject(options)) throw wrongFlow([{ path: 'options', message: `must be { tx }, got ${show(options)}` }])
  const problems = Object.keys(options)
    .filter((name) => name !== 'tx')
    .map((name) => ({ path: `options.${name}`, message: 'is not an option of a flow; give it to f.add()' }))
  if (problems.length > 0) throw wrongFlow(problems)
  const { tx } = options as { readonly tx?: unknown }
  if (tx !== undefined && (tx === null || (typeof tx !== 'object' && typeof tx !== 'function')))
    throw wrongFlow([{ path: 'options.tx', message: `must be the handle of your open transaction, got ${show(tx)}` }])
  return tx
}

class FlowDraft implements FlowBuilder {
  readonly #parts: FlowParts
  readonly #nodes: (GraphNode & { readonly addedParents: Parent[] })[] = []
  #isClosed = false

  constructor(parts: FlowParts) {
    this.#parts = parts
  }

  add(job: Enqueueable, payload?: unknown, options?: FlowOptions): FlowNode<never, never> {
    this.#refuseClosed()
    if (this.#nodes.length >= FLOW_MAX)
      throw wrongFlow([{ path: 'add()', message: `was called more than ${FLOW_MAX} times` }])
    const at = `nodes[${this.#nodes.length}]`
    if ((options as EnqueueOptions | undefined)?.tx !== undefined)
      throw wrongFlow([{ path: `${at}.tx`, message: 'is the whole flow’s: give it as mill.flow(build, { tx })' }])
    const addedParents: Parent[] = []
    const id = this.#parts.newId()
    const registered = this.#parts.registry.lookUp(job)
    this.#nodes.push({ id, job, registered, payload, options: copyOptions(options), addedParents })
    const node: FlowNode<never, never> = {
      id,
      after: (...parents) => {
        this.#refuseClosed()
        const wrong = isAfter(parents)
        const problems = typeof wrong === 'string' ? [{ path: '', message: wrong }] : (wrong ?? [])
        if (problems.length > 0)
          throw wrongFlow(problems.map((p) => ({ path: `${at}.after()${p.path}`, message: p.message })))
        addedParents.push(...toParents(parents))
        return node
      },
    }
    return node
  }

  close(): readonly GraphNode[] {
    this.#isClosed = true
    return this.#nodes
  }

  #refuseClosed(): void {
    if (this.#isClosed)
      throw wrongFlow([{ path: 'build', message: 'has returned: a node can be added only while it runs' }])
  }
}

/** A function that replaces the nodes in the value that `build` returned by their handles. `above` are the objects that contain it. */
function readBuilt(value: unknown, nodes: ReadonlyMap<string, number>, above: readonly object[]): ToHandles {
  const unchanged = (): unknown => value
  if (typeof value !== 'object' || value === null) return unchanged
  const { id } = value as { readonly id?: unknown }
  const index = typeof id === 'string' ? nodes.get(id) : undefined
  if (index !== undefined) return (handles) => handles[index]
  if (!Array.isArray(value) && Object.getPrototypeOf(value) !== Object.prototype) return unchanged
  if (above.includes(value))
    throw wrongFlow([
      { path: 'build', message: 'returned an object that contains itself; return nodes, or lists of them' },
    ])
  const read = (one: unknown): ToHandles => readBuilt(one, nodes, [...above, value])
  if (Array.isArray(value)) {
    const items = value.map(read)
    return (handles) => items.map((toHandles) => toHandles(handles))
  }
  const fields = Object.entries(value).map(([name, one]) => [name, read(one)] as const)
  return (handles) => Object.fromEntries(fields.map(([name, toHandles]) => [name, toHandles(handles)]))
}
type ToHandles = (handles: readonly Handle<unknown>[]) => unknown

export function wrongFlow(problems: readonly Problem[]): InvalidOptionsError {
  return new InvalidOptionsError('flow()', problems)
}
