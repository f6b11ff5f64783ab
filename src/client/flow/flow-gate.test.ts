import { expect, test } from 'vitest'
import type { Handle } from '../../job/enqueue.js'
import { FlowGate } from './flow-gate.js'
import type { FlowGraph, GraphNode } from './flow.js'

const node = (id: string, payload: unknown = null): GraphNode => ({ id, payload }) as GraphNode

function gateOf(...ids: readonly string[]) {
  const written: FlowGraph[] = []
  const graph: FlowGraph = { nodes: ids.map((id) => node(id)), tx: 'tx' }
  const gate = new FlowGate(graph, {
    flow: async (whole) => {
      written.push(whole)
      return whole.nodes.map(({ id }) => ({ id }) as Handle<unknown>)
    },
  })
  return { gate, graph, written }
}

test('the last node that the hooks pass on writes the whole flow once, as they passed it', async () => {
  const { gate, graph, written } = gateOf('a', 'b')
  const second = gate.arrive(1, node('b', 'changed'))
  expect(written).toEqual([])
  const first = gate.arrive(0, node('a', 'too'))
  expect(written).toEqual([{ nodes: [node('a', 'too'), node('b', 'changed')], tx: 'tx' }])
  expect(await Promise.all([first, second])).toEqual([[{ id: 'a' }], [{ id: 'b' }]])
  expect(graph.nodes).toEqual([node('a'), node('b')])
})

test('a node that the hooks refuse writes nothing, and the others reject with its error', async () => {
  const { gate, written } = gateOf('a', 'b')
  const first = gate.arrive(0, node('a'))
  gate.fail(new Error('refused'))
  await expect(first).rejects.toThrow('refused')
  await expect(gate.arrive(1, node('b'))).rejects.toThrow('refused')
  expect(written).toEqual([])
})
