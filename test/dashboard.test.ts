import { expect, test } from 'vitest'
import { dashboard } from '../src/dashboard/index.js'
import { job } from '../src/index.js'
import { openedMills } from './support/opened-mills.js'
import { browser, inApp, TOKEN } from './dashboard/browser.js'

const { open } = openedMills('dashboard')
const charge = job('charge', async (p: { order: number }) => p.order)

test('a user signs in by the token, and reads every page', async () => {
  const mill = await open({ jobs: [charge] })
  const handle = await mill.enqueue(charge, { order: 1042 }, { title: 'Order 1042', labels: ['vip'] })
  const page = browser(inApp(dashboard(mill, { token: TOKEN })))
  expect((await page.get('')).status).toBe(401)
  expect((await page.get('api/session')).status).toBe(401)
  expect((await page.login('wrong')).status).toBe(401)
  expect((await page.login(TOKEN)).status).toBe(204)
  const session = await page.session()
  expect(session).toMatchObject({ role: 'admin', title: 'Millrace', canSignOut: true })
  const topics = [
    'health',
    'overview:1h',
    'queues',
    'queue:1h:default',
    'list:newest:',
    `job:${handle.id}`,
    'failures:24h',
    'recurring',
    'groups',
    'sequences',
    'workers',
    'upcoming:24h',
    'audit:',
    'enqueue',
    'enqueue:charge',
    'workflows:newest:',
  ]
  for (const topic of topics) {
    const view = await page.post('api/view', { topic })
    expect([topic, view.status, await view.clone().text()]).toMatchObject([topic, 200, /^\{"topic"/])
    expect(await view.json()).toMatchObject({ topic, fields: {}, rows: {}, order: expect.any(Array) })
  }
})
