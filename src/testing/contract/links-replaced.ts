import assert from 'node:assert/strict'
import type { InsertOptions, NewJob } from '../../store/store.js'
import { contract } from './bench.js'
import type { Bench, ContractCase } from './bench.js'

/** A job that comes after one which its own call, or its own bulk, puts an end to. */
export const replacedParentCases: readonly ContractCase[] = [
  contract('a job that replaces the very one it comes after waits, is called off or runs, as it says', async (b) => {
    const was = await replaced(b, Infinity)
    assert.deepEqual(was.parents, ['cancelled', 'cancelled', 'cancelled'])
    assert.deepEqual(was.children, ['blocked', 'cancelled', 'ready'])
    assert.match((await b.read(was.ids[1] as string)).reason ?? '', /parent mail .* was cancelled/)
  }),

  contract('the same of one that is kept for no time strands nobody', async (b) => {
    const was = await replaced(b, 0)
    assert.deepEqual(was.parents, ['gone', 'gone', 'gone'])
    assert.deepEqual(was.children, ['gone', 'gone', 'ready'], 'those that are called off are kept for no time either')
  }),

  contract('a parent that a later one of the same bulk replaces ends for those that come after it', async (b) => {
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

  contract('a child that a later one of the same bulk replaces is over, whatever becomes of its parent', async (b) => {
    for (const keepCancelledMs of [Infinity, 0]) {
      const parent = b.job({ name: 'parent' })
      const key = `k${keepCancelledMs}`
      const child = b.job({ key, after: [{ id: parent.id }], onParentFailure: 'cancel', keepCancelledMs })
      const instead = b.job({ key, keepCancelledMs })
      await b.store.jobs.insertJobs([parent, child, instead], replacing(keepCancelledMs))
      const over = keepCancelledMs === 0 ? 'gone' : 'cancelled'
      assert.deepEqual([await b.state(child.id), await b.state(instead.id)], [over, 'ready'])
      await b.store.jobs.changeJob({ id: parent.id, from: 'ready', to: 'cancelled', keepMs: Infinity })
      await promote(b)
      assert.deepEqual([await b.state(child.id), await b.state(instead.id)], [over, 'ready'])
    }
  }),
]

const POLICIES = ['wait', 'cancel', 'run'] as const

const replacing = (keepCancelledMs: number): InsertOptions => ({ onDuplicate: 'replace', keepCancelledMs })

/** One of each policy, each in the place of the one it comes after: by id, by key, and by its place. */
async function replaced(
  b: Bench,
  keepCancelledMs: number,
): Promise<{ ids: string[]; parents: string[]; children: string[] }> {
  const rows: { parent: string; child: string }[] = []
  for (const [index, onParentFailure] of POLICIES.entries()) {
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

async function promote(b: Bench): Promise<void> {
  while ((await b.store.jobs.promoteJobs(100)).again);
}
