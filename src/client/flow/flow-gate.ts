import type { Handle } from '../../job/enqueue.js'
import { followed } from '../../store/followed.js'
import type { FlowGraph, GraphNode } from './flow.js'

/** Where the nodes of a flow wait for each other: it is written whole, by the last that comes, or not at all. */
export class FlowGate {
  readonly #graph: FlowGraph
  readonly #writer: { flow(graph: FlowGraph): Promise<Handle<unknown>[]> }
  readonly #nodes: GraphNode[]
  readonly #written: Promise<Handle<unknown>[]>
  #resolve: (handles: Promise<Handle<unknown>[]>) => void = () => undefined
  #reject: (error: unknown) => void = () => undefined
  #missing: number
  #failed = false

  constructor(graph: FlowGraph, writer: { flow(graph: FlowGraph): Promise<Handle<unknown>[]> }) {
    this.#graph = graph
    this.#writer = writer
    this.#nodes = [...graph.nodes]
    this.#missing = graph.nodes.length
    this.#written = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
    // Those who wait have the error from their own place in it.
    this.#written.catch(() => undefined)
  }

  arrive(index: number, node: GraphNode): Promise<Handle<unknown>[]> {
    this.#nodes[index] = node
    this.#missing -= 1
    if (this.#missing === 0 && !this.#failed) this.#resolve(this.#writer.flow({ ...this.#graph, nodes: this.#nodes }))
    return followed(this.#written, (handles) => [handles[index] as Handle<unknown>])
  }

  /** One was refused before it came: nothing is written, and nobody waits for it. */
  fail(error: unknown): void {
    this.#failed = true
    this.#reject(error)
  }
}
