import assert from 'node:assert/strict'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { only } from './contract/fixture.js'
import type { ContractFixture } from './contract/fixture.js'
import {
  addresses,
  answer,
  append,
  CALL,
  child,
  claimOne,
  command,
  inHand,
  log,
  promote,
  send,
  suspend,
  WAIT,
  workflow,
} from './contract/workflow-fixture.js'
import { freshDatabase } from './postgres/shared-postgres.js'
import { TwoStores } from './postgres/two-stores.js'
import type { ClaimedJob } from '../src/store/store.js'

/**
 * A workflow is suspended while another process sends to it, cancels it, or ends the job that it called; and its worker
 * appends to its log while another process takes it for dead. The other process acts before each statement of the first,
 * and the other way round.
 */
let database: Awaited<ReturnType<typeof freshDatabase>>
let both: TwoStores
beforeAll(async () => {
  database = await freshDatabase()
  both = await TwoStores.open(database.url, 'workflow_races')
}, 60_000)
afterAll(async () => {
  await both?.close()
  await database?.drop()
})

type Act = (b: ContractFixture, job: ClaimedJob) => Promise<unknown>

/** Runs both acts on a new workflow in hand, in every interleaving and in both roles, and checks what is left. */
async function race(prepare: Act, one: Act, other: Act, check: (b: ContractFixture, job: ClaimedJob) => Promise<void>) {
  for (const [first, second] of [
    [one, other],
    [other, one],
  ] as const)
    for (let [n, statements] = [1, 1]; n <= statements; n += 1) {
      await both.empty()
      const job = await inHand(both.second)
      await prepare(both.second, job)
      if (n === 1) ({ statements } = await both.count(() => first(both.first, job)))
      if (n === 1) {
        await second(both.second, job)
      } else
        await both.between(
          () => first(both.first, job),
          () => second(both.second, job),
          n,
        )
      await check(both.second, job)
    }
}

const nothing: Act = async () => undefined
const suspends: Act = (b, job) => suspend(b, job, 'blocked', { waits: ['event:go'] }, { rows: [WAIT] })

/** It was suspended, so it must have been woken. */
async function isWoken(b: ContractFixture, job: ClaimedJob): Promise<void> {
  await promote(b)
  expect(await b.state(job.id)).toBe('ready')
}

test('a suspension and an event that it waits for never miss each other', async () => {
  await race(nothing, suspends, (b, { id }) => send(b, id), isWoken)
})

test('a suspension and a cancel never miss each other', async () => {
  await race(nothing, suspends, (b, { id }) => command(b, id, 'cancel'), isWoken)
})

test('a suspension and an event in a transaction of the caller never miss each other', async () => {
  const sends: Act = async (b, { id }) => {
    await both.client.query('begin')
    const event = { to: { id }, name: 'go', eventId: null, payload: '1' }
    await b.store.transactions.sendEventIn(both.client, event)
    await both.client.query('commit')
  }
  await race(nothing, suspends, sends, isWoken)
})

test('the end of a called job and the suspension of its caller never miss each other', async () => {
  let called = ''
  const calls: Act = async (b, job) => {
    const { children } = await append(b, job, { rows: [CALL], children: [child(b)] })
    called = children[0]?.id ?? ''
  }
  const waits: Act = (b, job) => suspend(b, job, 'blocked', { waits: [`call:${called}`] })
  const ends: Act = async (b) => {
    const running = only(await b.claim(await b.worker(), { names: ['child'] }))
    await b.settle(running, { result: '1' })
    await promote(b)
  }
  await race(calls, waits, ends, isWoken)
})

test('a call that finds a running job and the end of that job never miss each other', async () => {
  let running: ClaimedJob
  const runs: Act = async (b) => {
    await b.insert([b.job({ name: 'child', key: 'k' })])
    running = only(await b.claim(await b.worker(), { names: ['child'] }))
  }
  const calls: Act = (b, job) =>
    suspend(b, job, 'blocked', { waits: [`call:${running.id}`] }, { rows: [CALL], children: [child(b, { key: 'k' })] })
  const ends: Act = (b) => b.settle(running, { result: '1' })
  await race(runs, calls, ends, async (b, job) => {
    await promote(b)
    // When the job had ended before, its key was free and the call made a new one.
    const jobs = await b.found({ names: ['child'] })
    expect(await b.state(job.id)).toBe(jobs.length === 1 ? 'ready' : 'blocked')
  })
})

test('no row is appended by a claim that a rescue has ended', async () => {
  let worker = ''
  const begins: Act = async (b) => {
    worker = await b.worker()
    await workflow(b)
  }
  let mine: ClaimedJob
  const prepare: Act = async (b, job) => {
    await b.settle(job)
    await begins(b, job)
    mine = await claimOne(b, worker)
  }
  let isHeld = false
  const appends: Act = async (b) => {
    isHeld = (await append(b, mine, { rows: [answer(0)] })).held
  }
  const rescues: Act = async (b) => {
    for (let left = 50; left > 0; left -= 1)
      if ((await b.store.leases.rescueJobs(worker, 0, [b.settled(mine, { to: 'ready', streak: 1 })])) !== null) return
    assert.fail('the rescue found the worker alive')
  }
  await race(prepare, appends, rescues, async (b) => {
    const next = await claimOne(b, await b.worker())
    expect(next.id).toBe(mine.id)
    expect(addresses((await log(b, next)).rows)).toEqual(isHeld ? ['/step:s0#0'] : [])
  })
})

test('a retry of a workflow and its prune never leave a log without its job', async () => {
  const fails: Act = (b, job) => b.settle(job, { to: 'failed', error: '{}', keepMs: 1, workflow: undefined })
  const prepare: Act = async (b, job) => {
    await append(b, job, { rows: [answer(0)] })
    await fails(b, job)
    both.clock.now += 10
  }
  await race(
    prepare,
    (b, { id }) => command(b, id, 'retry'),
    (b) => b.prune(10),
    async (b, job) => {
      for (let left = 20; left > 0; left -= 1) await b.store.jobs.sweepRows(10)
      const { long } = await b.store.readCensus()
      const isThere = (await b.state(job.id)) !== 'gone'
      expect([long.steps, long.leftovers]).toEqual([isThere ? 1 : 0, 0])
    },
  )
})
