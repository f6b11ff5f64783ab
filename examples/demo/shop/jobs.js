import { Abort, Snooze, event, job, workflow } from 'millrace'
import { declineCard, descend, refuseMarkup, waitForMailServer } from './failures.js'

/** 180 characters: rows must hold it. */
export const LONG_NAME = `synchronise-${'the-catalogue-of-every-warehouse-with-'.repeat(4)}the-shop`.slice(0, 180)

export const approved = event('approved', {
  '~standard': {
    version: 1,
    vendor: 'shop',
    validate: (value) =>
      typeof value?.by === 'string'
        ? { value }
        : { issues: [{ path: ['by'], message: 'must be the name of who approves' }] },
  },
})

/**
 * The jobs of the shop. `pace` decides how long work takes: `pace.work(ms, signal)`, and whether Norway's bank is down:
 * `pace.isBankDown()`. For pictures nothing takes time, except what takes more than a quarter of a minute: that never ends.
 */
export function shopJobs(pace) {
  const work = (ms, { signal }) => pace.work(ms, signal)
  return [
    ...orders(work, pace),
    ...mails(work),
    ...files(work),
    ...upkeep(work),
    ...refused(work),
    ...lists(work),
    ...workflows(pace),
  ]
}

function orders(work, pace) {
  const title = ({ order }) => `Order ${order}`
  return [
    job('reserve-stock', { queue: 'default', title, run: async (order, ctx) => work(300, ctx) }),
    job('charge', {
      description: 'Charges a card once',
      queue: 'billing',
      title,
      limit: { max: 2, key: ({ tenant }) => tenant },
      retry: { limit: 10, backoff: { start: '2s', factor: 2, max: '5m' } },
      run: async ({ country, amount, ms = 250 }, ctx) => {
        await work(ms, ctx)
        ctx.log('gateway answered', { amount })
        if (country === 'NO' && pace.isBankDown()) declineCard()
        return { receipt: ctx.id.slice(-6), amount }
      },
    }),
    job('ship', { queue: 'default', title, run: async (order, ctx) => work(200, ctx) }),
  ]
}

function mails(work) {
  return [
    job('send-email', {
      queue: 'mail',
      title: ({ to }) => `Mail to ${to}`,
      retry: { limit: 5, backoff: { start: '5s', factor: 2 } },
      run: async ({ to, isSlow }, ctx) => {
        await work(isSlow ? 1_500 : 200, ctx)
        if (isSlow && ctx.attempt < 3) waitForMailServer()
        return to
      },
    }),
    job('newsletter', { queue: 'mail', priority: -5, run: async ({ to }, ctx) => work(100, ctx).then(() => to) }),
    job('campaign-report', { queue: 'reports', run: async () => 'sent' }),
  ]
}

function files(work) {
  return [
    job('thumbs', {
      queue: 'media',
      title: ({ photo }) => photo,
      run: async ({ photo, ms = 400 }, ctx) => {
        for (let done = 1; done <= 10; done += 1) {
          ctx.progress(done, 10)
          ctx.log(`${photo}: size ${done} of 10`)
          await work(done === 4 ? ms : Math.min(ms, 400), ctx)
        }
      },
    }),
    job('export-pdf', {
      queue: 'media',
      slowAfter: '20s',
      title: ({ catalogue }) => `Catalogue ${catalogue}`,
      run: async (catalogue, ctx) => {
        ctx.log('layout of 400 pages')
        await work(200_000, ctx)
      },
    }),
    job('import-row', { queue: 'default', run: async ({ row }, ctx) => work(20, ctx).then(() => row) }),
    job('index-catalogue', { queue: 'default', run: async ({ text }, ctx) => work(100, ctx).then(() => text.length) }),
  ]
}

function upkeep(work) {
  return [
    job('daily-digest', { queue: 'mail', run: async (p, ctx) => work(400, ctx) }),
    job('sync-stock', { queue: 'default', timeout: '20m', run: async (p, ctx) => work(6 * 60_000, ctx) }),
    job('invoice-run', { queue: 'billing', run: async (p, ctx) => work(900, ctx) }),
    job('cleanup', { queue: 'default', run: async () => {} }),
    job('heartbeat', { queue: 'default', run: async () => 'alive' }),
    job('weekly-report', {
      queue: 'reports',
      title: ({ week }) => `Week ${week}`,
      run: async (p, ctx) => work(500, ctx),
    }),
    job('secret-sync', {
      queue: 'default',
      encrypt: true,
      run: async (p, ctx) => work(300, ctx).then(() => ({ token: 'x' })),
    }),
    job(LONG_NAME, { queue: 'default', run: async (p, ctx) => work(100, ctx) }),
  ]
}

/** Jobs that end in one of the less frequent ways. */
function refused(work) {
  return [
    job('crasher', { executor: 'process', module: new URL('crash.js', import.meta.url), queue: 'media' }),
    job('old-order', {
      queue: 'default',
      accepts: ({ lines }) => Array.isArray(lines),
      run: async ({ lines }) => lines.length,
    }),
    job('deep-tree', { queue: 'default', retry: { limit: 0 }, run: async () => descend() }),
    job('markup', {
      queue: 'default',
      retry: { limit: 0 },
      title: ({ title }) => title,
      run: async () => refuseMarkup(),
    }),
    job('no-such-address', {
      queue: 'mail',
      run: async ({ to }) => {
        throw new Abort(`${to} is no address`)
      },
    }),
    job('poll-carrier', {
      queue: 'default',
      run: async () => {
        throw new Snooze('3h')
      },
    }),
    job('ledger', { queue: 'default', run: async ({ balance }, ctx) => work(50, ctx).then(() => balance) }),
  ]
}

/** The jobs of sequences. */
function lists(work) {
  return [
    job('archive', {
      queue: 'default',
      retry: { limit: 0 },
      run: async ({ name, ms = 800 }, ctx) => work(ms, ctx).then(() => name),
    }),
    job('migrate', {
      queue: 'default',
      retry: { limit: 0 },
      run: async ({ account }, ctx) => {
        await work(100, ctx)
        if (account === 8) throw new Error('Timeout after 30 s')
      },
    }),
    job('reindex', { queue: 'default', run: async ({ shard }, ctx) => work(100, ctx).then(() => shard) }),
  ]
}

function workflows(pace) {
  const act = (ms) => (s) => pace.work(ms, s.signal)
  return [
    workflow('onboard', async ({ user }, w) => {
      await w.step('create account', act(200))
      await w.step('welcome', act(150))
      await w.sleep('3d')
      await w.step('ask how it goes', act(100))
      return user
    }),
    workflow('refund', {
      title: ({ order }) => `Order ${order}`,
      events: [approved],
      run: async ({ order }, w) => {
        await w.step('load order', act(210))
        await w.all({
          stock: (b) => b.step('stock', act(900)),
          card: (b) => b.step('card check', act(500)),
        })
        const answer = await w.waitFor(approved, { timeout: '7d' })
        await w.step('pay', act(300))
        return { order, by: answer.by }
      },
    }),
    workflow('order', {
      title: ({ order }) => `Order ${order}`,
      run: async ({ order }, w) => {
        await w.step('reserve', act(200))
        await w.all({
          pack: async (b) => {
            await b.step('pick', act(400))
            await b.step('pack', act(60_000))
          },
          bill: async (b) => {
            await b.step('invoice', act(300))
            await b.sleep('2h')
          },
        })
        return order
      },
    }),
    workflow('renew', async ({ contract }, w) => {
      await w.step('read the contract', act(100))
      await w.sleep('3s')
      await w.step('charge the year', act(100))
      return contract
    }),
    workflow('close-month', async ({ month }, w) => {
      for (let step = 1; step <= 14; step += 1) await w.step(`account ${step}`, act(60))
      return month
    }),
  ]
}

/** As the release before had them: what they have left behind no longer fits. */
export function oldJobs() {
  return [
    job('old-order', { queue: 'default', run: async () => {} }),
    job('legacy-sync', { queue: 'legacy', run: async () => {} }),
    workflow('renew', async ({ contract }, w) => {
      await w.step('look up the contract', async () => contract)
      await w.sleep('3s')
    }),
  ]
}

/** For `secret-sync`. A real app reads its keys from where it keeps secrets. */
export const encryption = {
  keys: { k1: Buffer.alloc(32, 'millrace demo 1'), k2: Buffer.alloc(32, 'millrace demo 2') },
  current: 'k2',
}
export const redact = ['card', /token$/i]
