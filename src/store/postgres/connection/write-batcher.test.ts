import { expect, test } from 'vitest'
import { StoreError } from '../../../errors.js'
import type { NewJob } from '../../store.js'
import { WriteBatcher } from './write-batcher.js'
import { INSERT_MAX, weightOf } from '../verbs/write.js'

const job = (id: string, payload = '{}'): NewJob => ({
  id,
  name: 'mail',
  queue: 'default',
  priority: 0,
  key: null,
  payload,
  options: null,
  due: { inMs: 0 },
  expires: null,
})

/** Each write is answered a moment later, so that calls which arrive meanwhile share the next write. */
function makeBatcher(answer: (ids: readonly string[]) => Error | undefined = () => undefined) {
  const writes: string[][] = []
  const write = async (lists: readonly (readonly NewJob[])[]): Promise<readonly string[]> => {
    const ids = lists.flat().map(({ id }) => id)
    writes.push(ids)
    await new Promise<void>((next) => setImmediate(next))
    const error = answer(ids)
    if (error !== undefined) throw error
    return ids
  }
  const batcher = new WriteBatcher({ write, weigh: weightOf, max: INSERT_MAX })
  return { batcher, writes }
}

test('calls that arrive while a write is in flight share the next one', async () => {
  const { batcher, writes } = makeBatcher()
  const answers = await Promise.all(['a', 'b', 'c', 'd'].map((id) => batcher.add([job(id)])))
  expect(writes).toEqual([['a'], ['b', 'c', 'd']])
  expect(answers).toEqual(['a', 'b', 'c', 'd'])
})

test('a batch is not larger than one statement may be', async () => {
  const { batcher, writes } = makeBatcher()
  const large = 'x'.repeat(600_000)
  await Promise.all(['a', 'b', 'c', 'd'].map((id) => batcher.add([job(id, large)])))
  expect(writes).toEqual([['a'], ['b'], ['c'], ['d']])
})

test('a refused call does not fail the other calls of its batch', async () => {
  const { batcher, writes } = makeBatcher((ids) => (ids.includes('c') ? new StoreError('E_STORE', 'no') : undefined))
  const added = await Promise.allSettled(['a', 'b', 'c', 'd'].map((id) => batcher.add([job(id)])))
  expect(added.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'fulfilled'])
  expect(writes).toEqual([['a'], ['b', 'c', 'd'], ['b'], ['c'], ['d']])
})

test('a write whose answer was lost is not written again', async () => {
  const lost = new StoreError('E_STORE_UNREACHABLE', 'gone')
  const { batcher, writes } = makeBatcher((ids) => (ids.includes('c') ? lost : undefined))
  const added = await Promise.allSettled(['a', 'b', 'c', 'd'].map((id) => batcher.add([job(id)])))
  expect(added.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected', 'rejected'])
  expect(writes).toEqual([['a'], ['b', 'c', 'd']])
})
