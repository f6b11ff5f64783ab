import { h } from 'preact'
import { renderToString } from 'preact-render-to-string'
import { signal } from '@preact/signals'
import { expect, test } from 'vitest'
import { AppContext } from './app-context.js'
import { RETRYING, RUNNING, WORKFLOW } from './demo/frames.js'
import { demoApp } from './demo/demo-app.js'
import { parseRoute } from './route.js'
import type { Router } from './router.js'
import { VIEWS } from './views/registry.js'

/** Every page on recorded frames: what it shows is kept as text, so that a change of it is seen in a review. */
const PAGES: Readonly<Record<string, string>> = {
  overview: '#/',
  jobs: '#/jobs',
  'jobs-no-match': '#/jobs?q=state%3Afailed%20label%3Abilling',
  'job-retrying': `#/job/${RETRYING.id}`,
  'job-running': `#/job/${RUNNING.id}`,
  workflow: `#/job/${WORKFLOW.id}`,
  workflows: '#/workflows',
  queues: '#/queues',
  queue: '#/queues/billing',
  failures: '#/failures',
  failure: '#/failures/a1b2c3',
  recurring: '#/recurring/daily-digest',
  groups: '#/groups',
  group: '#/groups/campaign-42',
  sequence: '#/sequences/01980f2c-seq2',
  workers: '#/workers',
  upcoming: '#/upcoming',
  health: '#/health',
  audit: '#/audit',
  enqueue: '#/enqueue?job=charge',
  unknown: '#/blah',
  'worker-unknown': '#/workers/none',
}

for (const [name, fragment] of Object.entries(PAGES))
  test(`the page ${name} shows what it showed`, async () => {
    const html = await pageOf(fragment)
    await expect(textOf(html)).toMatchFileSnapshot(`demo/golden/${name}.txt`)
  })

test('no page has an unknown number as 0, a broken date or a wrong plural', async () => {
  const texts = await Promise.all(Object.values(PAGES).map(async (fragment) => textOf(await pageOf(fragment))))
  const wrong = texts.flatMap(
    (text) => text.match(/.*(?:NaN|undefined|Invalid Date|\[object|\b1 jobs\b|-1 s).*/g) ?? [],
  )
  expect(wrong).toEqual([])
})

test('a stored script is text on every page that shows it', async () => {
  const htmls = await Promise.all(Object.values(PAGES).map((fragment) => pageOf(fragment)))
  expect(htmls.some((html) => html.includes('&lt;script>alert(1)'))).toBe(true)
  expect(htmls.filter((html) => html.includes('<script'))).toEqual([])
})

test('a viewer sees the buttons, disabled, with the role that they need', async () => {
  const html = await pageOf(`#/job/${RETRYING.id}`, 'viewer')
  expect(html).toContain('A viewer cannot do this. Ask for the role operator.')
  expect(html).toContain('A viewer cannot do this. Ask for the role admin.')
})

async function pageOf(fragment: string, role: 'viewer' | 'admin' = 'admin'): Promise<string> {
  const route = parseRoute(fragment)
  const router: Router = { route: signal(route), go: () => undefined, set: () => undefined }
  const page = await VIEWS[route.page].load()
  return renderToString(h(AppContext.Provider, { value: demoApp(router, { role }) }, h(page, null)))
}

/** The texts of a page, a line for each row, heading or paragraph. */
function textOf(html: string): string {
  const lines = html
    .replace(/<(?:\/tr|\/h1|\/h2|\/p|\/li|\/div|\/summary|\/option|\/figcaption|\/thead)>/g, '\n')
    .replace(/<(?:td|th|b|span|a|button|dd)[^>]*>/g, ' ')
    .replace(/<[^>]*>/g, '')
    .replaceAll('&lt;', '<')
    .replaceAll('&amp;', '&')
    .replaceAll('&quot;', '"')
    .split('\n')
    .map((line) => line.replace(/[\s\u202f\u00a0\u200b]+/g, ' ').trim())
  return `${lines.filter((line) => line !== '').join('\n')}\n`
}
