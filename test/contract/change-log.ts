import assert from 'node:assert/strict'
import type { ChangePage } from '../../src/store/observing/change-log.js'
import { contract } from './fixture.js'
import type { ContractCase, ContractFixture } from './fixture.js'

/** Everything that a consumer has not read, page by page. */
async function read(b: ContractFixture, consumer: string, limit = 100): Promise<string[]> {
  const { changeLog } = b.store
  const changes: string[] = []
  let page: ChangePage | undefined
  do {
    const request = { consumer, reader: 'r', limit, after: page?.after, bound: page?.bound }
    page = (await changeLog.readChanges(request)) ?? undefined
    if (page === undefined) return ['lost']
    changes.push(...page.rows.map(({ id, state }) => `${id.slice(-2)} ${state}`))
  } while (page.bound !== undefined)
  await changeLog.saveRead(consumer, 'r', page.after)
  return changes
}

/** The change log. */
export const changeLogCases: readonly ContractCase[] = [
  contract(
    'every change of a job is logged in order, while the log is on, and a consumer reads each once',
    async (b) => {
      const { changeLog } = b.store
      const worker = await b.worker()
      const early = await b.one()
      await changeLog.switchLog(true)
      await changeLog.switchLog(true)
      await changeLog.openReader('mirror', 'r')
      const retried = b.job()
      await b.insert([retried])
      const name = retried.id.slice(-2)
      const take = async (): Promise<void> => {
        const jobs = (await b.claim(worker, { names: undefined, max: 9, starting: 9 })).jobs
        for (const job of jobs)
          await b.settle(job, job.id === retried.id && job.attempt === 0 ? { to: 'retrying', delayMs: 1_000 } : {})
      }
      await take()
      b.clock.now += 2_000
      await b.store.jobs.promoteJobs(100)
      await take()
      const mine = (changes: readonly string[]): string[] => changes.filter((change) => change.startsWith(name))
      const all = await read(b, 'mirror', 2)
      assert.deepEqual(
        mine(all).map((change) => change.slice(3)),
        ['ready', 'running', 'retrying', 'ready', 'running', 'done'],
      )
      assert.deepEqual(
        all
          .filter((change) => change.startsWith(early.slice(-2)))
          .at(-1)
          ?.slice(3),
        'done',
      )
      assert.deepEqual(await read(b, 'mirror'), [])
      const paused = b.job({ due: { inMs: 60_000 } })
      await b.insert([paused])
      await b.store.jobs.changeJob({ id: paused.id, from: 'scheduled', to: 'paused', keepMs: Infinity })
      assert.deepEqual(
        (await read(b, 'mirror')).map((change) => change.slice(3)),
        ['scheduled', 'paused'],
      )
      await changeLog.switchLog(false)
      await b.one()
      assert.deepEqual(await read(b, 'mirror'), [])
    },
  ),

  contract(
    'changes are kept until every consumer has read them, and a consumer belongs to its last reader',
    async (b) => {
      const { changeLog } = b.store
      await changeLog.switchLog(true)
      await changeLog.openReader('slow', 'r')
      await changeLog.openReader('fast', 'r')
      await b.insert([b.job(), b.job(), b.job()])
      assert.equal((await read(b, 'fast')).length, 3)
      assert.equal(await changeLog.trimChanges(100), 0)
      assert.equal((await read(b, 'slow', 2)).length, 3)
      assert.ok((await changeLog.trimChanges(100)) >= 2)
      await b.one()
      await changeLog.openReader('late', 'r')
      assert.deepEqual(await read(b, 'late'), [], 'a new consumer begins with the next change')
      await changeLog.openReader('slow', 'other')
      assert.deepEqual(await read(b, 'slow'), ['lost'])
      assert.equal(await changeLog.saveRead('slow', 'r', 1_000_000), false)
      assert.deepEqual([await changeLog.dropConsumer('slow'), await changeLog.dropConsumer('slow')], [true, false])
      await changeLog.switchLog(false)
    },
  ),
]
