import assert from 'node:assert/strict'
import type { Changed, GuardedChange, NewJob } from '../../src/store/store.js'
import type { State } from '../../src/job/rules/states.js'
import { contract } from './fixture.js'
import type { ContractFixture, ContractCase } from './fixture.js'

/** Concurrent commands: a store may batch them, with the same results as one by one. */
export const concurrentCommandCases: readonly ContractCase[] = [
  contract('concurrent pauses, resumes and cancels each do what they would alone', async (b) => {
    const { ids, parent } = await crowd(b)
    assert.deepEqual(await changed(b, ids, 'paused'), Array(ids.length).fill('changed'))
    assert.deepEqual(await counted(b), { paused: ids.length })
    assert.deepEqual((await b.read(ids[0] as string)).reason, 'for a test')
    assert.match((await b.read(ids[0] as string)).log ?? '', /paused/)
    assert.deepEqual(await changed(b, ids, 'ready', 'resumed'), Array(ids.length).fill('changed'))
    assert.deepEqual(await counted(b), { ready: 10, scheduled: 10, blocked: 10 })
    assert.equal((await b.read(ids[0] as string)).reason, null)
    assert.deepEqual(await changed(b, ids, 'cancelled'), Array(ids.length).fill('changed'))
    assert.deepEqual(await counted(b), { cancelled: ids.length })
    assert.equal(await b.state(parent), 'ready')
    assert.deepEqual(
      await b.insert(ids.slice(0, 10).map((_, n) => b.job({ key: `key ${n}` }))).then((all) => all.map((o) => o.isNew)),
      Array(10).fill(true),
      'their keys are free',
    )
  }),

  contract('of concurrent commands on one job only one finds it unchanged', async (b) => {
    const ids = (await b.insert(Array.from({ length: 20 }, () => b.job()))).map((one) => one.id)
    const answers = await changed(b, [...ids, ...ids, ...ids], 'cancelled')
    for (const index of ids.keys())
      assert.deepEqual(
        [0, 20, 40].map((from) => answers[from + index]).sort((one, other) => String(one).localeCompare(String(other))),
        ['changed', 'stale', 'stale'],
      )
  }),

  contract('a command that is refused, locked or too late does not block the others', async (b) => {
    const worker = await b.worker()
    const [running, held] = (await b.insert([b.job(), b.job()])).map((one) => one.id)
    await b.claim(worker, { max: 2, starting: 1 })
    const ids = (await b.insert(Array.from({ length: 9 }, () => b.job()))).map((one) => one.id)
    const late = b.job().id
    assert.deepEqual(
      await changed(b, [running as string, held as string, late, ...ids], 'cancelled', undefined, 'ready'),
      ['stale', 'taken', 'stale', ...Array<string>(9).fill('changed')],
    )
    assert.deepEqual([await b.state(running as string), await b.state(held as string)], ['running', 'cancelled'])
  }),

  contract('concurrent retries take keys and unique slots again, or are refused one by one', async (b) => {
    const unique = { key: 'place', while: 'unfinished', onDuplicate: 'reject', forMs: null } as const
    const kinds: Partial<NewJob>[] = [
      ...Array.from({ length: 5 }, () => ({ group: 'g' })),
      { key: 'free' },
      { key: 'held' },
      { unique, options: JSON.stringify({ unique: { key: 'place', while: 'unfinished' } }) },
    ]
    const ids = (await b.insert(kinds.map((kind) => b.job(kind)))).map((one) => one.id)
    await changed(b, ids, 'cancelled')
    const other = await b.one({ key: 'held' })
    const retry = { from: 'cancelled', to: 'ready', due: { inMs: 0 }, freshRetries: true, keepMs: Infinity } as const
    const answers = await Promise.allSettled(ids.map((id) => b.store.jobs.changeJob({ id, ...retry })))
    assert.deepEqual(
      answers.map((answer) =>
        answer.status === 'fulfilled' ? answer.value : (answer.reason as { code: string }).code,
      ),
      [...Array<string>(6).fill('changed'), 'E_DUPLICATE_KEY', 'changed'],
    )
    assert.equal((await b.store.jobs.readKeyed('mail', 'held'))?.id, other)
    assert.equal((await b.store.jobs.readKeyed('mail', 'free'))?.id, ids[5])
    const { jobs } = await b.claim(await b.worker())
    assert.deepEqual(new Set(jobs.map((job) => job.id)), new Set([...ids.filter((_, index) => index !== 6), other]))
  }),
]

/** Thirty members of one group: ready with a key, scheduled with an end, and blocked by a parent. */
async function crowd(b: ContractFixture): Promise<{ ids: string[]; parent: string }> {
  const parent = await b.one({ name: 'parent' })
  const jobs = Array.from({ length: 10 }, (_, n) => [
    b.job({ group: 'g', key: `key ${n}`, priority: n }),
    b.job({ group: 'g', due: { inMs: 60_000 }, expires: { inMs: 90_000 } }),
    b.job({ group: 'g', after: [{ id: parent }] }),
  ])
  const inserted = await b.insert([0, 1, 2].flatMap((kind) => jobs.map((each) => each[kind] as NewJob)))
  return { ids: inserted.map((one) => one.id), parent }
}

/** Changes all at once, each from its current state unless another is given. */
async function changed(
  b: ContractFixture,
  ids: readonly string[],
  to: GuardedChange['to'],
  exit: string | undefined = to,
  from?: State,
): Promise<Changed[]> {
  const rows = await b.store.jobs.readJobs(ids)
  return Promise.all(
    ids.map((id, index) => {
      const change = {
        id,
        from: from ?? rows[index]?.state ?? 'ready',
        to,
        reason: 'for a test',
        exit,
        keepMs: Infinity,
      }
      return b.store.jobs.changeJob(change)
    }),
  )
}

async function counted(b: ContractFixture): Promise<Record<string, number>> {
  const { counts } = await b.store.groups.readGroup('g')
  return Object.fromEntries(counts.filter((one) => one.members !== 0).map((one) => [one.state, one.members]))
}
