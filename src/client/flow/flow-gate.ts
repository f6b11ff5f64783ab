import type { Handle } from '../../job/enqueue.js'
import { thenOrRetry } from '../../store/unknown-outcome.js'
import type { FlowGraph, GraphNode } from './flow.js'

/** Collects the nodes of a flow as the hooks pass them on. The last arrival inserts the whole flow; a failure inserts nothing. */
export class FlowGate {
  readonly #graph: FlowGraph
  readonly #writer: { flow(graph: FlowGraph): Promise<Handle<unknown>[]> }
  /** Each is set when it arrives. */
  readonly #nodes: GraphNode[] = []
  readonly #written: Promise<Handle<unknown>[]>
  #resolve: (handles: Promise<Handle<unknown>[]>) => void = () => undefined
  #reject: (error: unknown) => void = () => undefined
  #missing: number
  #failed = false

  constructor(graph: FlowGraph, writer: { flow(graph: FlowGraph): Promise<Handle<unknown>[]> }) {
    this.#graph = graph
    this.#writer = writer
    this.#missing = graph.nodes.length
    this.#written = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
    // Each node's own promise reports the error; this one must not be an unhandled rejection.
    this.#written.catch(() => undefined)
  }

  arrive(index: number, node: GraphNode): Promise<Handle<unknown>[]> {
    this.#nodes[index] = node
    this.#missing -= 1
    if (this.#missing === 0 && !this.#failed) this.#resolve(this.#writer.flow({ ...this.#graph, nodes: this.#nodes }))
    return thenOrRetry(this.#written, (handles) => [handles[index] as Handle<unknown>])
  }

  /** The hooks refused a node: nothing is inserted, and every waiting node rejects. */
  fail(error: unknown): void {
    this.#failed = true
    this.#reject(error)
  }
}
