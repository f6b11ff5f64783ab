import { setTimeout as sleep } from 'node:timers/promises'
import { LONG_NAME, approved } from './jobs.js'
import { SEED, TENANTS, randomOf } from './random.js'

/*
 * What is in the shop besides its history: each of the less frequent states, written with the verbs that an app calls. The waiting
 * and recurring part is written before a worker runs; `settleInto` waits until workers have brought the rest into its state.
 */

const PERSON = { actor: 'ada@shop.example', role: 'operator' }
const HOSTILE = `<script>alert('title')</script>`
const BULK = 2_000

/** The newsletter's group: large, and worked off at the rate of its queue. */
export async function enqueueNewsletter(mill, members) {
  const group = mill.group('campaign-42', { whenDone: ['campaign-report', { campaign: 42 }] })
  for (let from = 0; from < members; from += BULK) {
    const payloads = Array.from({ length: Math.min(BULK, members - from) }, (_, i) => ({
      to: `reader-${from + i}@example.com`,
    }))
    await mill.enqueueMany('newsletter', payloads, { group: 'campaign-42', labels: ['campaign'] })
  }
  await group.seal()
}

export async function enqueueState(mill, { now, newsletter, itemMs = 800 }) {
  const { between } = randomOf(SEED)
  await recurring(mill, now)
  await mill.enqueueMany(
    'import-row',
    Array.from({ length: 640 }, (_, row) => ({ row })),
    { group: 'import-nov' },
  )
  await mill.group('import-nov').seal()
  await pausedQueue(mill, now)
  await graph(mill)
  const sequences = await lists(mill, itemMs)
  const flows = {
    onboard: await mill.enqueue('onboard', { user: 'grace' }, { key: 'grace' }),
    refund: await mill.enqueue('refund', { order: 977 }, { key: 'order-977' }),
    order: await mill.enqueue('order', { order: 1042 }, { key: 'order-1042' }),
    month: await mill.enqueue('close-month', { month: '2026-10' }),
  }
  const odd = await oddities(mill, now, between)
  await enqueueNewsletter(mill, newsletter)
  return { sequences, flows, ...odd }
}

async function recurring(mill, now) {
  await mill.recurring('daily-digest', 'daily-digest', {}, '0 9 * * *', { timezone: 'Europe/Oslo' })
  await mill.recurring('sync-stock', 'sync-stock', {}, { every: '5m' }, { overlap: 'skip', missed: 'skip' })
  await mill.recurring('invoice-run', 'invoice-run', {}, '0 6 LW * *', { timezone: 'Europe/Oslo' })
  await mill.recurring('cleanup', 'cleanup', {}, '0 3 * * SUN')
  await mill.recurring('heartbeat', 'heartbeat', {}, { every: '10s' }, { missed: 'skip' })
  await mill.schedules.pause('cleanup', { ...PERSON, reason: 'the disk is being moved' })
  await mill.schedules.runNow('daily-digest', PERSON)
  const hour = 3_600_000
  await mill.recurring('hourly-prices', 'heartbeat', {}, '0 * * * *', { from: new Date(now - 30 * hour) })
  await mill.schedules.backfill('hourly-prices', new Date(now - 3 * hour), new Date(now - 10_000))
}

async function pausedQueue(mill, now) {
  const until = new Date(now)
  until.setUTCHours(18, 0, 0, 0)
  if (until.getTime() - now < 600_000) until.setUTCDate(until.getUTCDate() + 1)
  await mill.queue('reports').pauseUntil(until, { ...PERSON, reason: 'the data warehouse is being moved' })
  await mill.enqueueMany(
    'weekly-report',
    Array.from({ length: 41 }, (_, week) => ({ week: week + 1 })),
  )
}

/** 121 jobs: one stock, one charge, and 119 parcels that wait for it. */
async function graph(mill) {
  await mill.flow((f) => {
    const order = { order: 4711, tenant: 'nordic', country: 'SE', amount: 990 }
    const reserve = f.add('reserve-stock', order)
    const charge = f.add('charge', order, { after: [reserve], in: '6h', key: 'order-4711', labels: ['billing', 'vip'] })
    for (let parcel = 1; parcel <= 119; parcel += 1) f.add('ship', { ...order, parcel }, { after: [charge] })
  })
}

async function lists(mill, itemMs) {
  const named = (count, of) => Array.from({ length: count }, (_, i) => of(i))
  const archive = await mill.sequence(
    'archive',
    named(500, (i) => ({ name: `contact ${i + 1}`, ms: i < 312 ? 5 : itemMs })),
    { key: 'archive-42' },
  )
  const migrate = await mill.sequence(
    'migrate',
    named(80, (account) => ({ account })),
    { key: 'migrate-eu' },
  )
  const reindex = await mill.sequence(
    'reindex',
    named(200, (shard) => ({ shard })),
    { key: 'reindex' },
  )
  await reindex.pause(PERSON)
  const empty = await mill.sequence('reindex', [], { key: 'empty' })
  return { archive, migrate, reindex, empty }
}

async function oddities(mill, now, between) {
  const cancelled = await mill.enqueue('send-email', { to: 'twice@example.com' }, { in: '2h' })
  await mill.cancel(cancelled.id, { ...PERSON, reason: 'ordered twice' })
  await mill.enqueue('weekly-report', { week: 52 }, { expires: '1s' })
  await mill.enqueue('poll-carrier', { carrier: 'north' })
  await mill.enqueue('ledger', { balance: 1n }, { key: 'ledger', in: '1h' })
  const ledger = await mill.enqueue(
    'ledger',
    { balance: 2n ** 63n - 1n, at: new Date(now) },
    { key: 'ledger', onDuplicate: 'replace' },
  )
  const tomorrow = await mill.schedule('send-email', { to: 'tomorrow@example.com' }, '1d', { key: 'reminder' })
  await mill.enqueueMany(
    'secret-sync',
    [1, 2, 3, 4].map((shop) => ({ shop, card: '4111 1111 1111 1111' })),
  )
  const crasher = await mill.enqueue('crasher', { image: 'broken.tiff' })
  const deep = await mill.enqueue('deep-tree', { root: 'shoes' })
  const large = await mill.enqueue('index-catalogue', {
    text: 'a catalogue of shoes, '.repeat(37_000).slice(0, 800_000),
  })
  await mill.enqueue('index-catalogue', { text: 'שלום 👟 عربي' }, { title: '👟 سعر جديد — מבצע' })
  await mill.enqueue(LONG_NAME, { shelf: 7 }, { labels: ['nightly'] })
  await mill.enqueue('no-such-address', { to: 'nowhere' })
  const hostile = await mill.enqueue(
    'markup',
    { title: HOSTILE, html: `<img src=x onerror=alert('payload')>`, [`<b>key</b>`]: HOSTILE },
    { key: `<script>alert('key')</script>`, labels: [`<script>alert('label')</script>`], meta: { note: HOSTILE } },
  )
  await mill.enqueue('export-pdf', { catalogue: 'winter' })
  for (let i = 0; i < 8; i += 1)
    await mill.enqueue(
      'send-email',
      { to: `slow-${i}@example.com`, isSlow: true },
      { labels: [TENANTS[between(0, 5)]] },
    )
  return { ledger, tomorrow, crasher, deep, large, hostile }
}

/** Jobs of the release before, which today's code refuses: a payload that no longer fits, a workflow whose steps were renamed. */
export async function enqueueOldWork(mill, { advance = () => {} } = {}) {
  const old = await mill.enqueue('old-order', { sku: 'A1', count: 2 })
  await mill.pause(old.id)
  const renewal = await mill.enqueue('renew', { contract: 'C-17' })
  await mill.start()
  while ((await mill.steps(renewal.id)).length < 2) await sleep(20) // until it sleeps
  await mill.stop({ deadline: '2s' })
  advance()
  await mill.resume(old.id)
  await mill.enqueueMany('legacy-sync', [{ shelf: 1 }, { shelf: 2 }, { shelf: 3 }])
  return { old, renewal }
}

/** An event that came before it was waited for is kept: this one is sent twice, and the second time does nothing. */
export function approve(mill, refund) {
  return mill.send(refund.id, approved, { by: 'ann' }, { id: 'click-1' })
}
