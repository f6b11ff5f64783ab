import type { Page } from 'playwright-core'
import { beforeAll, describe, expect, test, vi } from 'vitest'
import { expectFault, hasBrowser, inBrowser, usePages } from './pages.js'
import { STORES, settled, textOf, useShop, visitor } from './shop.js'
import type { Shop } from './shop.js'
import { VECTORS } from './vectors.js'
import { violations } from './violations.js'
import type { MillOptions } from '../../src/index.js'

/** Each page of the dashboard, in a browser, on the demo's shop with a short history. */
interface Demo {
  readonly fill: (store: string, given: { count: number; now: number }) => Promise<void>
  readonly enqueueState: (mill: unknown, given: { now: number; newsletter: number }) => Promise<unknown>
  readonly shopJobs: (pace: unknown) => object[]
  readonly encryption: MillOptions['encryption']
}

const PAGES = [
  '',
  'jobs',
  'jobs?q=state%3Afailed',
  'workflows',
  'failures?span=7d',
  'queues',
  'queues/mail',
  'recurring/daily-digest',
  'groups',
  'groups/campaign-42',
  'workers',
  'upcoming',
  'health',
  'audit',
  'enqueue?job=charge',
] as const

inBrowser('in a browser', () => {
  describe.each(STORES)('on %s', (kind) => {
    const openPage = usePages()
    const shop = useShop(kind, openPage, options)
    let ids: Record<'failed' | 'refund' | 'graph' | 'migrate' | 'hostile', string>

    beforeAll(async () => {
      if (hasBrowser) ids = await filled(shop())
    })

    test('the overview says what is wrong, and counts what there is', async () => {
      const { mill, visit } = shop()
      const page = await visit('')
      const text = await textOf(page)
      for (const queue of ['mail', 'billing', 'reports', 'default']) expect(text).toContain(queue)
      expect(text).toMatch(/paused until/)
      // The newest five error groups.
      const { rows: groups } = await mill.stats.errorGroups({ days: 1, limit: 5 })
      for (const { error } of groups) expect(text).toContain(error)
      const { rows } = await mill.workers()
      expect(text).toMatch(new RegExp(`of ${rows.reduce((all, { slots = 0 }) => all + slots, 0)} busy`))
    })

    test('a list has exactly the jobs that the search finds', async () => {
      const { mill, visit } = shop()
      const page = await visit(`jobs?q=${encodeURIComponent('state:parked')}`)
      const { rows } = await mill.findPage({ state: 'parked' }, { limit: 50 })
      await expect.poll(() => hrefs(page)).toEqual(rows.map(({ id }) => id))
      await page.locator('[data-search]').fill('job:weekly-report state:ready')
      await expect.poll(async () => (await hrefs(page)).length).toBe(41)
      await page.locator('[data-search]').fill('payload.week:7 state:ready')
      await expect.poll(() => textOf(page)).toContain('Week 7')
      await expect.poll(async () => (await hrefs(page)).length).toBe(1)
    })

    test('the page of a job shows its error, payload, attempts and what waits for it', async () => {
      const { mill, visit } = shop()
      const page = await visit(`job/${ids.failed}`)
      const record = await mill.get(ids.failed)
      await page.getByText('card declined').first().waitFor()
      expect(await page.locator('h1').textContent()).toBe(`charge · ${record?.title}`)
      await page.getByText('"NO"').or(page.getByText('"SE"')).first().waitFor()
      await page.goto(page.url().replace(ids.failed, ids.graph))
      await page
        .getByText(/reserve-stock/)
        .first()
        .waitFor()
    })

    test('a workflow shows its steps, and what it waits for', async () => {
      const page = await shop().visit(`job/${ids.refund}`)
      for (const step of ['load order', 'stock', 'card check', 'approved'])
        await page.getByText(step, { exact: true }).first().waitFor()
    })

    test('groups, sequences, recurring jobs, workers, failures and the audit trail are as the mill says', async () => {
      const { mill, visit } = shop()
      const groups = await textOf(await visit('groups'))
      for (const word of ['campaign-42', 'import-nov', '640', 'archive-42', 'migrate-eu', 'reindex'])
        expect(groups).toContain(word)
      const recurring = await textOf(await visit('recurring/sync-stock'))
      for (const word of ['daily-digest', 'every 5 m', 'Europe/Oslo', 'skipped']) expect(recurring).toContain(word)
      const failures = await visit('failures?span=7d')
      const { rows } = await mill.stats.errorGroups({ days: 7 })
      const shown = await textOf(failures)
      for (const { error } of rows) expect(shown).toContain(error)
      const audit = await textOf(await visit('audit'))
      expect(audit).toContain('ada@shop.example')
      const workers = await textOf(await visit('workers'))
      for (const { host } of (await mill.workers()).rows) expect(workers).toContain(host)
    })

    test('no text of a job, a queue, a group or a schedule is more than text', async () => {
      const { mill, visit } = shop()
      const made = await hostile(mill)
      const routes = [
        ...PAGES.filter((page) => !/workers|health|upcoming|campaign/.test(page)),
        ...made.ids.map((id) => `job/${id}`),
        ...VECTORS.slice(0, 2).map((text) => `queues/${encodeURIComponent(text)}`),
        `groups/${encodeURIComponent(VECTORS[0] as string)}`,
        `recurring/${encodeURIComponent(VECTORS[2] as string)}`,
        `jobs?q=${encodeURIComponent(VECTORS[0] as string)}`,
      ]
      const page = await visit('')
      page.on('dialog', (dialog) => void dialog.dismiss().then(() => page.evaluate('window.hit = 1')))
      for (const route of routes) {
        await page.evaluate(`location.hash = ${JSON.stringify(`#/${route}`)}`)
        await settled(page)
        expect(await page.evaluate('window.hit'), route).toBeUndefined()
        expect(
          await page
            .locator('#main script, #main iframe, #main img, #main object, #main [onclick], #main [onerror]')
            .count(),
        ).toBe(0)
        expect(await page.locator('#main a[href^="javascript:" i], #main a[href^="data:" i]').count()).toBe(0)
      }
      // The text itself is there, to read.
      await page.evaluate(`location.hash = ${JSON.stringify(`#/job/${made.ids[0]}`)}`)
      await page
        .getByText(VECTORS[0] as string)
        .first()
        .waitFor()
    })

    test('what does not exist is said in words', async () => {
      const { mill, visit } = shop()
      const page = await visit('job/01980f2c-0000-7000-8000-000000000000')
      await page.getByText(/pruned or never existed/).waitFor()
      const { id } = await mill.enqueue(
        'charge',
        { order: 1, tenant: 'nordic', country: 'SE', amount: 1 },
        { in: '1h' },
      )
      const other = await visit(`job/${id}`)
      expectFault(other, /404.*api\/job/)
      await mill.delete(id)
      await other
        .getByText(/deleted|pruned or never existed/)
        .first()
        .waitFor()
      for (const route of [
        'job/nonsense',
        'queues/no-such-queue',
        'groups/none',
        'sequences/none',
        'failures/0000',
        'recurring/none',
        'no-such-page',
        'job/%zz',
        'jobs?q=%',
      ]) {
        expectFault(page, /40[04].*api\//)
        await page.evaluate(`location.hash = ${JSON.stringify(`#/${route}`)}`)
        await expect.poll(() => textOf(page), { message: route }).toMatch(/\w{4}/)
        expect(await textOf(page), route).not.toMatch(/undefined|NaN|\[object/)
      }
    })

    test('a wrong search keeps the rows, marks the wrong part and says what to write', async () => {
      const page = await shop().visit('jobs?q=state%3Aparked')
      const before = await hrefs(page)
      expect(before.length).toBeGreaterThan(0)
      for (const [text, said] of [
        ['stat:failed', /no qualifier stat.*Did you mean state/i],
        ['state:fail', /No state fail.*Did you mean failed/i],
        ['since:1mo', /A duration is a number/i],
        ['payload.a:"x', /quote is not closed/i],
      ] as const) {
        await page.locator('[data-search]').fill(text)
        await page.getByText(said).first().waitFor()
      }
    })
  })
})

inBrowser('for every reader', () => {
  const openPage = usePages()
  const shop = useShop('sqlite', openPage, options)
  let job = ''
  beforeAll(async () => {
    if (hasBrowser) job = (await filled(shop())).refund
  })

  test.each(['light', 'dark'] as const)('axe finds nothing on any page in the %s theme', async (colorScheme) => {
    const page = await shop().visit('', { colorScheme })
    for (const route of [...PAGES, `job/${job}`]) {
      await page.evaluate(`location.hash = ${JSON.stringify(`#/${route}`)}`)
      await settled(page)
      expect(await violations(page), route).toEqual([])
    }
  })

  test.each([390, 1024])('no page scrolls sideways at %i px', async (width) => {
    const page = await shop().visit('', { viewport: { width, height: 800 } })
    for (const route of [...PAGES, `job/${job}`]) {
      await page.evaluate(`location.hash = ${JSON.stringify(`#/${route}`)}`)
      await settled(page)
      expect(await page.evaluate('document.documentElement.scrollWidth'), route).toBeLessThanOrEqual(width)
    }
  })

  test('rows stay where they are while new jobs come, until the reader asks for them', async () => {
    const { mill, visit } = shop()
    const page = await visit('jobs?q=job%3Aledger')
    const before = await hrefs(page)
    const where = await page.locator('main tr[data-row]').first().boundingBox()
    for (let n = 0; n < 3; n += 1) await mill.enqueue('ledger', { balance: n }, { in: '1h' })
    await page.locator('[data-key=newer]').waitFor()
    expect(await hrefs(page)).toEqual(before)
    expect(await page.locator('main tr[data-row]').first().boundingBox()).toEqual(where)
    await page.keyboard.press('.')
    await expect.poll(async () => (await hrefs(page)).length).toBe(before.length + 3)
  })

  test('when the server goes away the page keeps its data, says since when, and comes back by itself', async () => {
    const { mill, serve } = shop()
    const served = await serve({ token: 'a-token-of-forty-characters-for-this-test', title: 'shop' })
    const visit = visitor(openPage, `${served.url}#token=a-token-of-forty-characters-for-this-test`)
    const page = await visit('queues')
    expectFault(page, /Failed to fetch|ERR_|401|503/)
    const rows = await page.locator('main tr[data-row]').count()
    expect(rows).toBeGreaterThan(0)
    await served.close()
    await expect.poll(() => page.locator('.live-word').innerText()).toMatch(/as of \d\d:\d\d/)
    expect(await page.locator('main tr[data-row]').count()).toBe(rows)
    await page.getByText(/No connection since/).waitFor({ timeout: 40_000 })
    await mill.dashboard({ port: served.port, token: 'a-token-of-forty-characters-for-this-test', title: 'shop' })
    await expect.poll(() => page.locator('#main').innerText(), { timeout: 40_000 }).not.toMatch(/No connection since/)
  })
})

/** The ids of the rows, from the top. */
async function hrefs(page: Page): Promise<string[]> {
  const links = await page.locator('main tr[data-row] a.row-link').all()
  const found = await Promise.all(links.map((link) => link.getAttribute('href')))
  return found.map((href) => (href ?? '').split('/').at(-1) ?? '')
}

const demo = async (): Promise<Demo> => {
  const load = (name: string): Promise<object> =>
    import(new URL(`../../examples/demo/shop/${name}.js`, import.meta.url).href) as Promise<object>
  return Object.assign({}, ...(await Promise.all(['fill', 'state', 'jobs'].map(load)))) as Demo
}

async function options(): Promise<MillOptions> {
  const { shopJobs, encryption } = await demo()
  const work = (ms: number, signal: AbortSignal): Promise<void> =>
    new Promise((resolve, reject) => {
      const timer = setTimeout(resolve, ms > 2_000 ? 600_000 : 5)
      signal.addEventListener('abort', () => (clearTimeout(timer), reject(signal.reason as Error)), { once: true })
    })
  return { jobs: shopJobs({ work, isBankDown: () => true }), encryption, concurrency: 20, redact: ['card'] }
}

/** A process that crashes three times, on a busy machine. */
const STATE_MAX = { timeout: 60_000, interval: 100 }

async function filled({
  mill,
  store,
}: Shop): Promise<Record<'failed' | 'refund' | 'graph' | 'migrate' | 'hostile', string>> {
  const { fill, enqueueState } = await demo()
  await fill(store, { count: 2_500, now: Date.now() })
  await enqueueState(mill, { now: Date.now(), newsletter: 300 })
  await mill.start()
  const one = async (filter: object): Promise<string> => (await mill.findPage(filter, { limit: 1 })).rows[0]?.id ?? ''
  await vi.waitFor(async () => expect(await one({ job: 'crasher', state: 'parked' })).not.toBe(''), STATE_MAX)
  await vi.waitFor(async () => expect(await one({ job: 'refund', state: 'blocked' })).not.toBe(''), STATE_MAX)
  await vi.waitFor(async () => expect(await one({ job: 'markup', state: 'failed' })).not.toBe(''), STATE_MAX)
  return {
    failed: await one({ job: 'charge', state: 'failed' }),
    refund: await one({ job: 'refund' }),
    graph: await one({ job: 'charge', key: 'order-4711' }),
    migrate: await one({ job: 'migrate' }),
    hostile: await one({ job: 'markup' }),
  }
}

/** Each text in every field that a caller may fill. */
async function hostile(mill: Shop['mill']): Promise<{ ids: string[] }> {
  const ids: string[] = []
  const label = (text: string): string => text.slice(0, 100)
  for (const [n, text] of VECTORS.entries()) {
    const { id } = await mill.enqueue(
      'markup',
      { title: text, html: text, [text]: [text, { nested: text }] },
      {
        title: text,
        key: `${n} ${text}`.slice(0, 300),
        labels: [label(text)],
        meta: { note: text },
        ...(n < 6 ? { queue: text.slice(0, 200) } : {}),
      },
    )
    // Four of them are looked at one by one; all of them are in the lists.
    if (n % 16 === 0) ids.push(id)
  }
  await mill.enqueue('import-row', { row: 1 }, { group: VECTORS[0] as string })
  await mill.recurring(VECTORS[2] as string, 'import-row', { row: 2 }, '0 3 * * *')
  const { id } = await mill.enqueue('import-row', { row: 3 }, { in: '1h' })
  await mill.cancel(id, { actor: VECTORS[0] as string, reason: VECTORS[2] as string })
  await expect.poll(async () => (await mill.get(ids[0] as string))?.state).toBe('failed')
  return { ids }
}
