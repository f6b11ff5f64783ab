import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { expectFault, inBrowser, usePages } from './pages.js'
import { STORES, textOf, useShop } from './shop.js'
import type { Built } from './shop.js'
import type { Mill, MillOptions } from '../../src/index.js'

/** Every act of the dashboard, clicked in a browser, with jobs that really run. */
inBrowser('in a browser', () => {
  describe.each(STORES)('on %s', (kind) => {
    const openPage = usePages()
    const shop = useShop(kind, openPage, shopOptions)

    test('a failed job is retried, and its page follows it to its end', async () => {
      const { mill, visit } = shop()
      const { id } = await failed(mill, { order: 1 })
      const page = await visit(`job/${id}`)
      expect(await page.locator('h1').textContent()).toBe('charge · Order 1')
      expect(await textOf(page)).toContain('card declined')
      isDown = false
      await press(page, 'Retry now')
      await expect.poll(() => stateOn(page)).toBe('done')
      expect((await mill.get(id))?.state).toBe('done')
      expect((await mill.audit({ target: `job ${id}` })).rows.map(({ verb }) => verb)).toContain('retry')
    })

    test('a waiting job is paused, resumed, edited, cancelled and deleted', async () => {
      const { mill, visit } = shop()
      const { id } = await mill.enqueue('charge', { order: 2 }, { in: '1h' })
      const page = await visit(`job/${id}`)
      await press(page, 'Pause')
      await expect.poll(() => stateOn(page)).toBe('paused')
      await press(page, 'Resume')
      await expect.poll(() => stateOn(page)).toBe('scheduled')
      await press(page, 'Edit')
      const dialog = page.getByRole('dialog')
      await dialog.getByLabel(/^Priority/).fill('7')
      await dialog.getByRole('button', { name: /^(Save|Change)/ }).click()
      await expect.poll(async () => (await mill.get(id))?.priority).toBe(7)
      await press(page, 'Cancel')
      await confirm(page, 'Cancel')
      await expect.poll(() => stateOn(page)).toBe('cancelled')
      await press(page, 'Delete')
      await confirm(page, 'Delete')
      await expect.poll(() => mill.get(id)).toBeUndefined()
    })

    test('Enter never confirms what cannot be taken back', async () => {
      const { mill, visit } = shop()
      const { id } = await mill.enqueue('charge', { order: 3 }, { in: '1h' })
      const page = await visit(`job/${id}`)
      await page.getByRole('button', { name: 'Delete', exact: true }).focus()
      await page.keyboard.press('Enter')
      await page.getByRole('dialog').waitFor()
      await page.keyboard.press('Enter')
      await page.getByRole('dialog').waitFor({ state: 'detached' })
      expect((await mill.get(id))?.state).toBe('scheduled')
      // The focus is where it was before the dialog.
      expect(await page.evaluate('document.activeElement.textContent')).toBe('Delete')
    })

    test('a running job is cancelled, and its handler is asked to stop', async () => {
      const { mill, visit } = shop()
      const { id } = await mill.enqueue('slow', {})
      await expect.poll(async () => (await mill.get(id))?.state).toBe('running')
      const page = await visit(`job/${id}`)
      await press(page, 'Cancel')
      await confirm(page, 'Cancel')
      await expect.poll(() => stateOn(page)).toBe('cancelled')
    })

    test('a queue is paused and resumed', async () => {
      const { mill, visit } = shop()
      await mill.enqueue('charge', { order: 4 }, { queue: 'spare', in: '1h' })
      const page = await visit('queues')
      await page.getByRole('button', { name: 'Pause spare' }).click()
      await page.getByRole('button', { name: 'Resume spare' }).waitFor()
      expect((await mill.queue('spare').get()).paused).toBe(true)
      await page.getByRole('button', { name: 'Resume spare' }).click()
      await page.getByRole('button', { name: 'Pause spare' }).waitFor()
      expect((await mill.queue('spare').get()).paused).toBe(false)
    })

    test('a recurring job runs now, is paused, resumed and deleted', async () => {
      const { mill, visit } = shop()
      await mill.recurring('nightly', 'charge', { order: 5 }, '0 3 * * *')
      const page = await visit('recurring/nightly')
      await page.getByRole('button', { name: 'Run nightly now' }).click()
      await expect.poll(async () => (await mill.schedules.ticks('nightly'))[0]?.outcome).toBe('run now')
      await page.getByRole('button', { name: 'Pause nightly' }).click()
      await page.getByRole('button', { name: 'Resume nightly' }).click()
      await page.getByRole('button', { name: 'Pause nightly' }).waitFor()
      await press(page, 'Delete')
      await confirm(page, 'Delete')
      await expect.poll(() => mill.schedules.get('nightly')).toBeUndefined()
    })

    test('all that match are retried after a preview, and only those', async () => {
      const { mill, visit } = shop()
      isDown = true
      const mine = await Promise.all([11, 12, 13].map((order) => failed(mill, { order }, ['bulk'])))
      const other = await failed(mill, { order: 14 })
      const page = await visit(`jobs?q=${encodeURIComponent('label:bulk')}`)
      await page.getByRole('button', { name: /^Bulk/ }).click()
      await page.getByRole('menuitem', { name: /^Retry/ }).click()
      const dialog = page.getByRole('dialog')
      await dialog
        .getByText(/Order 1[123]/)
        .first()
        .waitFor()
      isDown = false
      await dialog.getByRole('button', { name: /^Retry 3/ }).click()
      for (const { id } of mine) await expect.poll(async () => (await mill.get(id))?.state).toBe('done')
      expect((await mill.get(other.id))?.state).toBe('failed')
    })

    test('an event is sent to the workflow that waits for it', async () => {
      const { mill, visit } = shop()
      const { id } = await mill.enqueue('refund', { order: 977 })
      await expect.poll(async () => (await mill.get(id))?.state).toBe('blocked')
      const page = await visit(`job/${id}`)
      expect(await textOf(page)).toContain('load order')
      await press(page, 'Send approved')
      const dialog = page.getByRole('dialog')
      await dialog.getByRole('textbox').first().fill('{"by":"ann"}')
      await dialog.getByRole('button', { name: /^Send/ }).last().click()
      await expect.poll(() => stateOn(page)).toBe('done')
      expect((await mill.get(id))?.result).toEqual({ by: 'ann' })
    })

    test('a job is enqueued by its form, and a payload that does not fit is refused in words', async () => {
      const { mill, visit } = shop()
      isDown = false
      const page = await visit('enqueue?job=charge')
      await page.locator('#main textarea').fill('{ "order": ')
      await page.getByRole('button', { name: 'Enqueue charge' }).click()
      expect((await mill.findPage({ key: 'typed' }, { limit: 1 })).rows).toEqual([])
      expectFault(page, /400 .*api\/act/)
      await page.locator('#main textarea').fill('{"order":"many"}')
      await page.getByRole('button', { name: 'Enqueue charge' }).click()
      await page
        .getByText(/was not accepted/)
        .first()
        .waitFor()
      await page.locator('#main textarea').fill('{"order":501}')
      await page.getByRole('button', { name: 'Enqueue charge' }).click()
      await page.getByRole('heading', { name: 'charge · Order 501' }).waitFor()
      await expect.poll(() => stateOn(page)).toBe('done')
    })

    test('a sequence is paused, resumed, cancelled and reset', async () => {
      const { mill, visit } = shop()
      const sequence = await mill.sequence(
        'item',
        Array.from({ length: 2_000 }, (_, n) => ({ n })),
        { key: `list-${kind}` },
      )
      const page = await visit(`sequences/${sequence.id}`)
      await canPress(page, 'Pause')
      await press(page, 'Pause')
      await canPress(page, 'Resume')
      await press(page, 'Resume')
      await canPress(page, 'Pause')
      await press(page, 'Cancel')
      await confirm(page, 'Cancel')
      await expect.poll(async () => (await sequence.progress()).state).toBe('cancelled')
      await expect.poll(() => textOf(page)).toContain('cancelled')
      await press(page, 'Reset')
      await confirm(page, 'Reset')
      await expect.poll(async () => sequence.progress()).toMatchObject({ state: 'waiting', done: 0 })
    })

    test('of two people who act at once one succeeds, and the other learns what happened', async () => {
      const { mill, visit } = shop()
      isDown = true
      const { id } = await failed(mill, { order: 21 })
      const [one, other] = [await visit(`job/${id}`), await visit(`job/${id}`)]
      // The second page keeps showing the state of before.
      await other.keyboard.press('f')
      isDown = false
      await press(one, 'Retry now')
      await expect.poll(async () => (await mill.get(id))?.state).toBe('done')
      await press(other, 'Retry now')
      await other
        .getByText(/Nothing was changed/)
        .first()
        .waitFor()
      expect((await mill.get(id))?.state).toBe('done')
    })

    test('a viewer sees the same job without its secrets, and can change nothing', async () => {
      const { mill, serve } = shop()
      isDown = true
      const { id } = await failed(mill, { order: 31 })
      const { url } = await serve({ authorize: () => ({ role: 'viewer', actor: 'vera' }) })
      const { page } = await openPage()
      await page.goto(`${url}#/job/${id}`)
      await page.getByRole('heading', { name: /charge/ }).waitFor()
      const retry = page.getByRole('button', { name: 'Retry now', exact: true })
      expect(await retry.getAttribute('aria-disabled')).toBe('true')
      await retry.click({ force: true })
      expect((await mill.get(id))?.state).toBe('failed')
      expect(await page.content()).not.toContain('4111')
    })
  })
})

let isDown = true

function shopOptions({ job, workflow, event }: Built): MillOptions {
  const approved = event<{ by: string }>('approved')
  const jobs = [
    job('charge', {
      title: 'Order {order}',
      retry: { limit: 0 },
      accepts: ({ order }: { order: number }) => typeof order === 'number',
      run: async () => {
        if (isDown) throw new Error('card declined')
      },
    }),
    job(
      'slow',
      (_, { signal }) =>
        new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error))),
    ),
    job('item', async ({ n }: { n: number }) => new Promise((next) => setTimeout(next, 20, n))),
    workflow('refund', {
      events: [approved],
      run: async (p: { order: number }, w) => {
        await w.step('load order', () => p.order)
        return w.waitFor(approved, { timeout: '7d' })
      },
    }),
  ]
  return { jobs, redact: ['card'] }
}

async function failed(mill: Mill, payload: { order: number }, labels: readonly string[] = []): Promise<{ id: string }> {
  isDown = true
  await mill.start()
  const { id } = await mill.enqueue('charge', { ...payload, card: '4111 1111 1111 1111' }, { labels })
  await expect.poll(async () => (await mill.get(id))?.state).toBe('failed')
  return { id }
}

function press(page: Page, name: string): Promise<void> {
  return page.getByRole('button', { name, exact: true }).click()
}

/** The page has drawn the button for the state in which it applies. */
async function canPress(page: Page, name: string): Promise<void> {
  await expect
    .poll(() => page.getByRole('button', { name, exact: true }).getAttribute('aria-disabled'))
    .not.toBe('true')
}

/** The button at the end of the dialog; the one that opened it has the same name. */
function confirm(page: Page, name: string): Promise<void> {
  return page.getByRole('dialog').getByRole('button', { name, exact: true }).click()
}

/** The state that the head of a job's page shows. */
async function stateOn(page: Page): Promise<string> {
  const text = await page.locator('.job-lead').innerText()
  return text.trim().split(/\s/)[0] ?? ''
}
