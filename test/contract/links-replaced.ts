import assert from 'node:assert/strict'
import type { InsertOptions, NewJob } from '../../src/store/store.js'
import { contract } from './fixture.js'
import type { ContractFixture, ContractCase } from './fixture.js'
import { promote } from './links.js'

/** A job whose parent is ended by its own call, or by its own bulk. */
export const replacedParentCases: readonly ContractCase[] = [
  contract('a job that replaces its own parent is cancelled or runs, by its policy', async (b) => {
    const was = await replaced(b, Infinity, ['cancel', 'run'])
    assert.deepEqual(was.parents, ['cancelled', 'cancelled'])
    assert.deepEqual(was.children, ['cancelled', 'ready'])
    assert.match((await b.read(was.ids[0] as string)).reason ?? '', /parent mail .* was cancelled/)
  }),

  contract('a job that waits for the retry of a parent with its own key is a cycle, and is refused', async (b) => {
    const parent = await b.one({ key: 'k' })
    const after = [{ id: parent }]
    const ring = { code: 'E_CYCLE', message: /has the same key.*onParentFailure: 'run' or 'cancel'/ }
    const instead = b.job({ key: 'k', after })
    await assert.rejects(b.store.jobs.insertJobs([instead], replacing(Infinity)), ring)
    assert.deepEqual([await b.state(parent), await b.state(instead.id)], ['ready', 'gone'])
    await b.store.jobs.changeJob({ id: parent, from: 'ready', to: 'cancelled', keepMs: Infinity })
    await assert.rejects(b.insert([instead]), ring)
    const late = await b.one({ key: 'k' })
    const edit = { after: { parents: after, onFailure: 'wait', keepMs: Infinity } } as const
    await assert.rejects(b.store.jobs.changeJob({ id: late, from: 'ready', to: 'ready', keepMs: 0, edit }), ring)
    assert.equal(await b.state(await b.one({ key: 'other', after })), 'blocked')
    assert.equal(await b.state(await b.one({ name: 'other', key: 'k', after })), 'blocked')
  }),

  contract('a replaced parent with no keep time leaves no child blocked', async (b) => {
    const was = await replaced(b, 0, POLICIES)
    assert.deepEqual(was.parents, ['gone', 'gone', 'gone'])
    assert.deepEqual(was.children, ['gone', 'gone', 'ready'], 'cancelled children are not kept either')
  }),

  contract('a parent that a later item of the same bulk replaces has ended for its children', async (b) => {
    for (const [keepCancelledMs, seen] of [
      [Infinity, ['blocked', 'cancelled', 'ready']],
      [0, ['cancelled', 'cancelled', 'ready']],
    ] as const) {
      const parent = b.job({ key: `k${keepCancelledMs}`, keepCancelledMs })
      const children = POLICIES.map((onParentFailure) => b.job({ after: [{ id: parent.id }], onParentFailure }))
      const instead = b.job({ key: parent.key, keepCancelledMs })
      await b.store.jobs.insertJobs([parent, ...children, instead], replacing(keepCancelledMs))
      await promote(b)
      assert.deepEqual(await Promise.all(children.map(({ id }) => b.state(id))), seen, `kept for ${keepCancelledMs}`)
      assert.equal(await b.state(instead.id), 'ready')
    }
  }),

  contract(
    'a child that a later item of the same bulk replaces has ended, whatever happens to its parent',
    async (b) => {
      for (const keepCancelledMs of [Infinity, 0]) {
        const parent = b.job({ name: 'parent' })
        const key = `k${keepCancelledMs}`
        const child = b.job({ key, after: [{ id: parent.id }], onParentFailure: 'cancel', keepCancelledMs })
        const instead = b.job({ key, keepCancelledMs })
        await b.store.jobs.insertJobs([parent, child, instead], replacing(keepCancelledMs))
        const over = keepCancelledMs === 0 ? 'gone' : 'cancelled'
        assert.deepEqual([await b.state(child.id), await b.state(instead.id)], [over, 'ready'])
        if (over === 'cancelled') assert.deepEqual((await b.read(child.id)).after, [parent.id])
        await b.store.jobs.changeJob({ id: parent.id, from: 'ready', to: 'cancelled', keepMs: Infinity })
        await promote(b)
        assert.deepEqual([await b.state(child.id), await b.state(instead.id)], [over, 'ready'])
      }
    },
  ),
]

const POLICIES = ['wait', 'cancel', 'run'] as const

const replacing = (keepCancelledMs: number): InsertOptions => ({ onDuplicate: 'replace', keepCancelledMs })

/** One child of each policy, each replacing its own parent: by id, by key, and by its unique slot. */
async function replaced(
  b: ContractFixture,
  keepCancelledMs: number,
  policies: readonly (typeof POLICIES)[number][],
): Promise<{ ids: string[]; parents: string[]; children: string[] }> {
  const rows: { parent: string; child: string }[] = []
  for (const [index, onParentFailure] of policies.entries()) {
    const key = `held ${index}`
    const parent = await b.one({ key })
    const after: NewJob['after'] = index === 1 ? [{ name: 'mail', key }] : [{ id: parent }]
    const child = b.job({ key, after, onParentFailure, keepCancelledMs })
    await b.store.jobs.insertJobs([child], replacing(keepCancelledMs))
    rows.push({ parent, child: child.id })
  }
  await promote(b)
  return {
    ids: rows.map(({ child }) => child),
    parents: await Promise.all(rows.map(({ parent }) => b.state(parent))),
    children: await Promise.all(rows.map(({ child }) => b.state(child))),
  }
}
