import assert from 'node:assert/strict'
import type { JobRow, NewJob } from '../../src/store/store.js'
import { contract, withUniqueSlot } from './fixture.js'
import type { ContractFixture, ContractCase } from './fixture.js'
import { endNext } from './links.js'

/** Jobs that are moved by a call that names parents. */
export const movedLinkCases: readonly ContractCase[] = [
  contract('a job that is moved runs after the parents of that call too, beside those it waits for', async (b) => {
    const [first, second] = [await b.one(), await b.one({ key: 'p' })]
    const child = await b.one({ ...timer, due: { inMs: 60_000 } })
    await b.insert([b.job({ ...timer, after: [{ id: first }] })], 'move')
    assert.deepEqual(await linked(b, child), ['blocked', [first]])
    await b.insert([b.job({ ...timer, after: [{ name: 'mail', key: 'p' }] })], 'move')
    assert.deepEqual(await linked(b, child), ['blocked', [first, second]])
    await b.insert([b.job(timer)], 'move')
    assert.deepEqual(await linked(b, child), ['blocked', [first, second]], 'a call without parents removes none')
    await endNext(b)
    assert.equal(await b.state(child), 'blocked')
    await endNext(b)
    assert.equal(await b.state(child), 'ready')
  }),

  contract('one that is rescheduled in its place does the same, and its group counts it where it is', async (b) => {
    const parent = await b.one()
    const child = await b.one({ ...debounced, group: 'g' })
    assert.equal(await counted(b), 'default ready 1')
    await b.insert([b.job({ ...debounced, queue: 'slow', after: [{ id: parent }] })])
    assert.deepEqual(await linked(b, child), ['blocked', [parent]])
    assert.equal(await counted(b), 'slow blocked 1')
    await endNext(b)
    assert.equal(await counted(b), 'slow ready 1')
  }),

  contract('a moved job treats a failed parent by the policy of the call', async (b) => {
    const parent = await b.one()
    const [cancel, run] = [await b.one({ ...timer, key: 'c' }), await b.one({ ...timer, key: 'r' })]
    const after = { after: [{ id: parent }] }
    await b.insert([b.job({ ...timer, ...after, key: 'c', onParentFailure: 'cancel' })], 'move')
    await b.insert([b.job({ ...timer, ...after, key: 'r', onParentFailure: 'run' })], 'move')
    assert.deepEqual([await b.state(cancel), await b.state(run)], ['blocked', 'blocked'])
    await endNext(b, { to: 'failed' })
    assert.deepEqual([await b.state(cancel), await b.state(run)], ['cancelled', 'ready'])
    await b.insert([b.job({ ...timer, ...after, key: 'r', onParentFailure: 'run' })], 'move')
    assert.deepEqual(await linked(b, run), ['ready', [parent]], 'a failed parent does not block it')
  }),

  contract('a paused job that is moved stays paused, and is blocked when it is resumed', async (b) => {
    const parent = await b.one()
    const child = await b.one(timer)
    await b.pause(child, 'ready')
    await b.insert([b.job({ ...timer, after: [{ id: parent }] })], 'move')
    assert.deepEqual(await linked(b, child), ['paused', [parent]])
    await b.resume(child)
    assert.equal(await b.state(child), 'blocked')
  }),

  contract('a job that is not changed gets no parents', async (b) => {
    const parent = await b.one()
    const [keyed, unique] = [await b.one(timer), await b.one({ ...withUniqueSlot(), name: 'child' })]
    const named = { name: 'child', after: [{ id: parent }] }
    await b.insert([b.job({ ...timer, ...named }), b.job({ ...withUniqueSlot(), ...named })])
    assert.deepEqual([await linked(b, keyed), await linked(b, unique)], Array(2).fill(['ready', []]))
  }),

  contract('a moved job may run after others of the bulk, written or moved', async (b) => {
    const [first, second] = [await b.one({ ...timer, key: '1' }), await b.one({ ...timer, key: '2' })]
    const root = b.job()
    const one = b.job({ ...timer, key: '1', after: [{ id: root.id }] })
    const two = b.job({ ...timer, key: '2', after: [{ id: one.id }] })
    const three = b.job({ ...timer, key: '3' })
    const again = b.job({ ...timer, key: '3', after: [{ id: two.id }] })
    await b.insert([again, two, one, three, root], 'move')
    assert.deepEqual(await linked(b, first), ['blocked', [root.id]])
    assert.deepEqual(await linked(b, second), ['blocked', [first]])
    assert.deepEqual(await linked(b, again.id), ['blocked', [second]], 'the later of two in one bulk moves the earlier')
    await b.insert([b.job({ ...timer, key: '4' }), b.job({ ...timer, key: '4', after: [{ id: second }] })], 'move')
    assert.equal((await b.found({ states: ['blocked'] })).length, 4)
    await endNext(b)
    assert.deepEqual([await b.state(first), await b.state(second)], ['ready', 'blocked'])
  }),

  contract('a job that is moved and then replaced in one bulk has ended, and only the last one waits', async (b) => {
    const parent = await b.one({ due: { inMs: 60_000 } })
    const old = await b.one(debounced)
    const moving = b.job({ ...debounced, after: [{ id: parent }] })
    const last = b.job({
      ...withUniqueSlot({ onDuplicate: 'replace', while: 'waiting' }),
      name: 'child',
      after: moving.after,
    })
    await b.insert([moving, last])
    assert.deepEqual([await b.state(old), await b.state(last.id)], ['cancelled', 'blocked'])
  }),

  contract(
    'a move that would close a cycle, or names a missing parent, is refused and nothing of the bulk is written',
    async (b) => {
      const first = await b.one({ ...timer, due: { inMs: 60_000 } })
      const second = await b.one({ after: [{ id: first }], name: 'second' })
      const refused = async (code: string, ...jobs: NewJob[]): Promise<void> => {
        await assert.rejects(b.insert([b.job(), ...jobs], 'move'), { code })
        const row = await b.read(first)
        assert.deepEqual([row.state, row.after, row.payload], ['scheduled', [], '{"n":1}'])
        assert.equal((await b.found({})).length, 2)
      }
      const moving = (id: string): NewJob => b.job({ ...timer, payload: '{"n":2}', after: [{ id }] })
      await refused('E_CYCLE', moving(second))
      await refused('E_CYCLE', moving(first))
      await refused('E_PARENT_MISSING', moving(b.job().id))
      const between = b.job({ after: [{ id: second }] })
      await refused('E_CYCLE', between, moving(between.id))
    },
  ),
]

const timer = { name: 'child', key: 't' } as const
const debounced = { ...withUniqueSlot({ onDuplicate: 'reschedule', while: 'waiting' }), name: 'child' }

async function linked(b: ContractFixture, id: string): Promise<[JobRow['state'], readonly string[]]> {
  const { state, after } = await b.read(id)
  return [state, after]
}

async function counted(b: ContractFixture): Promise<string> {
  const { counts } = await b.store.groups.readGroup('g')
  return counts.map(({ queue, state, members }) => `${queue} ${state} ${members}`).join()
}
