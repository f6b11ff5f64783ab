import { expect, test } from 'vitest'
import type { EnqueueOptions } from '../../job/enqueue.js'
import type { FlowGraph } from './flow.js'
import { flowOptions } from './flow-rows.js'

const graph = (...options: readonly (EnqueueOptions | undefined)[]): FlowGraph =>
  ({ nodes: options.map((each) => ({ options: each })) }) as unknown as FlowGraph

test('the nodes of a flow with a key share one policy for duplicates, which is return by default', () => {
  expect(flowOptions(graph()).onDuplicate).toBe('return')
  expect(flowOptions(graph(undefined, { key: 'a' })).onDuplicate).toBe('return')
  const rejecting = graph({ key: 'a', onDuplicate: 'reject' }, {}, { key: 'b', onDuplicate: 'reject' })
  expect(flowOptions(rejecting).onDuplicate).toBe('reject')
})

test('two policies in one flow are refused with the node that differs', () => {
  const mixed = graph({ key: 'a', onDuplicate: 'reject' }, {}, { key: 'b' })
  expect(() => flowOptions(mixed)).toThrow(/nodes\[2\]\.options\.onDuplicate must be the same for all nodes with a key/)
})
