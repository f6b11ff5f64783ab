import { expect, test } from 'vitest'
import { dashboard } from '../src/dashboard/index.js'
import type {
  ActAnswer,
  ActRequest,
  BulkFields,
  ErrorBody,
  PreviewAnswer,
  SearchAnswer,
  Snapshot,
} from '../src/dashboard/protocol.js'
import { event, job, workflow } from '../src/index.js'
import type { Mill } from '../src/index.js'
import { browser, inApp } from './dashboard/browser.js'
import { openedMills } from './support/opened-mills.js'

/** What users do: once, in the state that they saw, and with a row of the audit trail. */

const { open } = openedMills('dashboard-acts')
const charge = job('charge', async (p: { order: number }) => p.order)

async function users(mill: Mill) {
  const pages = dashboard(mill, {
    authorize: (request) => ({ role: 'admin', actor: request.headers.get('x-user') ?? '' }),
  })
  const userOf = async (actor: string) => {
    const page = browser(inApp(pages), { headers: { 'x-user': actor } })
    await page.session()
    let nonces = 0
    const act = async (request: Omit<ActRequest, 'nonce'> & { readonly nonce?: string }): Promise<ActAnswer> => {
      const response = await page.post('api/act', { nonce: `${actor}-nonce-number-${(nonces += 1)}`, ...request })
      expect([response.status, await response.clone().text()]).toMatchObject([200, expect.anything()])
      return (await response.json()) as ActAnswer
    }
    const search = async (query: string, cursor?: string): Promise<SearchAnswer> =>
      (await (await page.post('api/search', { query, cursor })).json()) as SearchAnswer
    return { ...page, act, search }
  }
  return { ada: await userOf('ada'), bob: await userOf('bob') }
}

test('of two users who cancel one job, the second learns what the first did, and there is one row', async () => {
  const mill = await open({ jobs: [charge] })
  const { ada, bob } = await users(mill)
  const { id } = await mill.enqueue(charge, { order: 1 })
  const cancel = { verb: 'job.cancel', target: id, expect: 'ready', reason: 'by mistake' } as const
  expect(await ada.act(cancel)).toMatchObject({ changed: true, state: 'cancelled', link: `#/job/${id}` })
  const second = await bob.act(cancel)
  expect(second).toMatchObject({ changed: false, state: 'cancelled' })
  expect(second.text).toMatch(/^ada called cancel .* ago\. Nothing was changed\.$/)
  const { rows } = await mill.audit()
  expect(rows).toMatchObject([
    {
      actor: 'ada',
      role: 'admin',
      verb: 'cancel',
      target: `job ${id}`,
      before: 'ready',
      after: 'cancelled',
      reason: 'by mistake',
    },
  ])
})

test('of two users who act at the same moment, one changes the job', async () => {
  const mill = await open({ jobs: [charge] })
  const { ada, bob } = await users(mill)
  for (let i = 0; i < 10; i += 1) {
    const { id } = await mill.enqueue(charge, { order: i })
    const cancel = { verb: 'job.cancel', target: id, expect: 'ready' } as const
    const both = await Promise.all([ada.act(cancel), bob.act(cancel)])
    expect(both.filter(({ changed }) => changed)).toHaveLength(1)
    expect((await mill.audit({ target: `job ${id}` })).rows).toHaveLength(1)
  }
})

test('a request that is sent twice acts once, and its nonce is of no use for another', async () => {
  const mill = await open({ jobs: [charge] })
  const { ada } = await users(mill)
  const enqueue = {
    verb: 'enqueue',
    target: 'charge',
    nonce: 'the-same-nonce-twice',
    args: { payload: '{"order":7}' },
  } as const
  const [first, again] = await Promise.all([ada.act(enqueue), ada.act(enqueue)])
  expect(again).toEqual(first)
  expect(await mill.count({ job: charge })).toEqual({ count: 1, exact: true })
  const other = await ada.post('api/act', { ...enqueue, target: 'other' })
  expect([other.status, ((await other.json()) as ErrorBody).error.text]).toEqual([
    400,
    'This nonce was used for another request.',
  ])
})

test('queues, schedules, groups, sequences and workflows take their verbs', async () => {
  const approved = event<{ by: string }>('approved')
  const refund = workflow('refund', {
    events: [approved],
    run: async (_: { order: number }, w) => (await w.waitFor(approved)).by,
  })
  const mill = await open({ jobs: [charge, refund] })
  const { ada } = await users(mill)
  await mill.enqueue(charge, { order: 1 }, { group: 'spring', queue: 'mail' })
  expect(await ada.act({ verb: 'queue.pause', target: 'mail', expect: 'open' })).toMatchObject({
    changed: true,
    state: 'paused',
    undo: 'queue.resume',
  })
  expect(await ada.act({ verb: 'queue.pause', target: 'mail', expect: 'open' })).toMatchObject({
    changed: false,
    state: 'paused',
  })
  expect((await mill.queue('mail').get()).paused).toBe(true)
  expect(await ada.act({ verb: 'queue.resume', target: 'mail', expect: 'paused' })).toMatchObject({
    changed: true,
    state: 'open',
  })
  await mill.recurring('digest', charge, { order: 2 }, '0 9 * * *')
  expect(await ada.act({ verb: 'recurring.runNow', target: 'digest' })).toMatchObject({
    changed: true,
    id: expect.any(String),
  })
  expect(await ada.act({ verb: 'recurring.pause', target: 'digest', expect: 'running' })).toMatchObject({
    state: 'paused',
  })
  expect(await ada.act({ verb: 'recurring.delete', target: 'digest', expect: 'paused' })).toMatchObject({
    changed: true,
  })
  expect(await ada.act({ verb: 'group.pause', target: 'spring' })).toMatchObject({ changed: true, count: 1 })
  expect(await ada.act({ verb: 'group.seal', target: 'spring' })).toMatchObject({ changed: true })
  const sequence = await mill.sequence(charge, [{ order: 1 }, { order: 2 }], { start: false })
  expect(await ada.act({ verb: 'sequence.start', target: sequence.id, expect: 'waiting' })).toMatchObject({
    changed: true,
    state: 'running',
  })
  const { id } = await mill.enqueue(refund, { order: 3 })
  await mill.start()
  await expect.poll(async () => (await mill.get(id))?.state).toBe('blocked')
  expect(
    await ada.act({
      verb: 'job.send',
      target: id,
      expect: 'blocked',
      args: { event: 'approved', payload: '{"by":"ada"}' },
    }),
  ).toMatchObject({ changed: true })
  await expect.poll(async () => (await mill.get(id))?.result).toBe('ada')
  const verbs = (await mill.audit()).rows.map(({ verb }) => verb)
  for (const verb of ['pause', 'resume', 'runNow', 'deleteRecurring', 'seal', 'start']) expect(verbs).toContain(verb)
  expect((await mill.audit({ verb: 'send' })).rows).toMatchObject([
    { actor: 'ada', role: 'admin', target: `job ${id}`, before: 'blocked', after: 'blocked, event approved' },
  ])
})

test('what a user gives wrongly is refused in a sentence, and changes nothing', async () => {
  const mill = await open({ jobs: [charge] })
  const { ada } = await users(mill)
  const { id } = await mill.enqueue(charge, { order: 1 })
  const refused = async (request: object): Promise<unknown> => {
    const response = await ada.post('api/act', { nonce: 'a-nonce-of-16-or-more', ...request })
    return [response.status, ((await response.json()) as ErrorBody).error.text]
  }
  expect(await refused({ verb: 'job.eat', target: id })).toEqual([400, 'verb must be a verb of the dashboard.'])
  expect(await refused({ verb: 'job.edit', target: id, expect: 'ready', args: { payload: '{' } })).toMatchObject([
    400,
    /^The payload is no JSON/,
  ])
  expect(await refused({ verb: 'job.edit', target: id, expect: 'ready', args: { queue: 'a\nb' } })).toMatchObject([
    400,
    /queue must/,
  ])
  expect(await refused({ verb: 'job.cancel', target: 'x', expect: 'ready' })).toEqual([
    404,
    'This job was pruned or never existed.',
  ])
  expect(await refused({ verb: 'enqueue', target: 'unknown' })).toEqual([
    404,
    'No job unknown is registered in this process.',
  ])
  expect(await mill.get(id)).toMatchObject({ state: 'ready', payload: { order: 1 } })
})

test('a bulk acts on the jobs of its preview, tells its progress, and is used once', async () => {
  const mill = await open({ jobs: [charge] })
  const { ada, bob } = await users(mill)
  await mill.enqueueMany(
    charge,
    Array.from({ length: 30 }, (_, order) => ({ order })),
    { labels: ['old'] },
  )
  const preview = async (query: string): Promise<PreviewAnswer> =>
    (await (await ada.post('api/preview', { verb: 'bulk.cancel', of: { query } })).json()) as PreviewAnswer
  const byIndex = await preview('label:old')
  expect(byIndex).toMatchObject({ count: { n: 30, exact: true }, states: { ready: { n: 30 } }, mustType: false })
  expect(byIndex.examples).toHaveLength(5)
  await mill.enqueueMany(charge, [{ order: 100 }], { labels: ['old'] })
  const stolen = await bob.post('api/act', { verb: 'bulk.cancel', target: byIndex.id, nonce: 'a-nonce-of-16-or-more' })
  expect(stolen.status).toBe(404)
  expect(await ada.act({ verb: 'bulk.cancel', target: byIndex.id })).toMatchObject({
    changed: true,
    id: byIndex.id,
    count: 30,
  })
  const bulkOf = async (id: string): Promise<BulkFields> =>
    ((await (await ada.post('api/view', { topic: `bulk:${id}` })).json()) as Snapshot<BulkFields>).fields
  await expect.poll(async () => bulkOf(byIndex.id)).toMatchObject({ state: 'done', changed: 30, actor: 'ada' })
  expect((await mill.count({ state: 'ready' })).count).toBe(1)
  expect(
    (await ada.post('api/act', { verb: 'bulk.cancel', target: byIndex.id, nonce: 'another-nonce-of-16' })).status,
  ).toBe(404)
  const byScan = await preview('payload.order:100')
  expect(byScan).toMatchObject({ count: { n: 1, exact: true }, untouched: { n: 0 } })
  await ada.act({ verb: 'bulk.cancel', target: byScan.id })
  await expect.poll(async () => bulkOf(byScan.id)).toMatchObject({ state: 'done', changed: 1 })
  const summaries = (await mill.audit({ verb: 'cancelAll' })).rows.filter(({ target }) => target.startsWith('jobs '))
  expect(summaries.map(({ count, actor }) => [actor, count])).toEqual([
    ['ada', 1],
    ['ada', 30],
  ])
})

/** Parts of a search of 120 jobs. */
const PARTS_MAX = 20

test('a search finds by payloads, words, times and states, and says how far it came', async () => {
  const mill = await open({ jobs: [charge] })
  const { ada } = await users(mill)
  const handles = await mill.enqueueMany(
    charge,
    Array.from({ length: 120 }, (_, order) => ({ order, user: { name: order % 2 ? 'Ada' : 'Bob' } })),
    (p) => ({
      title: `Order ${p.order}`,
      priority: p.order % 3,
    }),
  )
  const found = async (query: string): Promise<number> => {
    let [count, parts, cursor]: [number, number, string | null | undefined] = [0, 0, undefined]
    do {
      const part: SearchAnswer = await ada.search(query, cursor ?? undefined)
      count += part.order.length
      cursor = part.cursor
      parts += 1
    } while (cursor !== null && parts < PARTS_MAX)
    expect([query, parts < PARTS_MAX]).toEqual([query, true])
    return count
  }
  expect(await found('')).toBe(120)
  expect(await found('payload.order:42')).toBe(1)
  expect(await found('payload.order:>=100')).toBe(20)
  expect(await found('-payload.user.name:Ada')).toBe(60)
  expect(await found('payload.user.name:A* priority:2')).toBe(20)
  expect(await found('"Order 11"')).toBe(11)
  expect(await found('state:ready,failed since:1h')).toBe(120)
  expect(await found('state:failed')).toBe(0)
  expect(await found(handles[5]?.id as string)).toBe(1)
  expect(await found('until:yesterday')).toBe(0)
  const wrong = await ada.post('api/search', { query: 'stat:failed' })
  expect([wrong.status, ((await wrong.json()) as ErrorBody).error]).toMatchObject([
    400,
    { code: 'bad-search', text: 'There is no qualifier stat.', at: { from: 0, to: 4 } },
  ])
})

test('a pause of a running job is a request: the answer and the page say so, and there is nothing to undo', async () => {
  let release: () => void = () => undefined
  const slow = job('slow', () => new Promise<void>((resolve) => (release = resolve)))
  const mill = await open({ jobs: [slow] })
  const { ada } = await users(mill)
  const { id } = await mill.enqueue(slow)
  await mill.start()
  await expect.poll(async () => (await mill.get(id))?.state).toBe('running')
  expect(await ada.act({ verb: 'job.pause', target: id, expect: 'running' })).toMatchObject({
    changed: true,
    text: `Pause of slow ${id.slice(0, 8)} requested; it stops after this attempt.`,
    state: 'running',
    undo: null,
  })
  const view = (await (await ada.post('api/view', { topic: `job:${id}` })).json()) as Snapshot
  expect(view.fields).toMatchObject({ state: 'running', requested: 'pause' })
  release()
})
