import { expect, test } from 'vitest'
import { dashboard } from '../src/dashboard/index.js'
import type { FailureFields, JobFields, SearchAnswer, ShownValue, Snapshot } from '../src/dashboard/protocol.js'
import { Abort, job } from '../src/index.js'
import { browser, inApp } from './dashboard/browser.js'
import { Events } from './dashboard/events.js'
import { openedMills } from './support/opened-mills.js'

/** Values that attack the page that shows them, and values that must not be shown. */

const { open } = openedMills('dashboard-hostile')

const VECTORS: readonly string[] = [
  '<script>window.canary=1</script>',
  '<img src=x onerror=canary=1>',
  '<svg/onload=canary=1>',
  '"><script>canary=1</script>',
  "'-alert(1)-'",
  '</script><script>canary=1</script>',
  '</title><script>canary=1</script>',
  '<iframe src="javascript:canary=1">',
  '<a href="javascript:canary=1">x</a>',
  'javascript:canary=1',
  'data:text/html,<script>canary=1</script>',
  '<style>@import "//evil.example"</style>',
  '<base href="//evil.example/">',
  '<meta http-equiv=refresh content="0;url=//evil.example">',
  '<form action="//evil.example"><input name=x></form>',
  '<math><mtext></p><script>canary=1</script>',
  '<template><script>canary=1</script></template>',
  '<details open ontoggle=canary=1>',
  '<body onload=canary=1>',
  '<input autofocus onfocus=canary=1>',
  '<video><source onerror=canary=1>',
  '<object data="javascript:canary=1">',
  '<embed src="javascript:canary=1">',
  '<link rel=stylesheet href=//evil.example>',
  '<!--<script>canary=1</script>-->',
  '<![CDATA[<script>canary=1</script>]]>',
  '{{constructor.constructor("canary=1")()}}',
  '${canary=1}',
  '#{canary=1}',
  '<%= canary %>',
  '\u202Etxt.exe',
  '\u2066abc\u2069',
  '\u0000null',
  '\u0007\u001B[31mred\u001B[0m',
  '\u001B]52;c;Y2FuYXJ5\u0007',
  '\r\nSet-Cookie: canary=1',
  '\n\nevent: bye\ndata: {}\n\n',
  '\r\rdata: canary',
  '\u2028canary()\u2029',
  '\uFEFFcanary',
  '\uD800',
  '=HYPERLINK("http://evil.example")',
  '+cmd|calc',
  '@SUM(1)',
  "'; drop table jobs; --",
  '" or 1=1 --',
  '$1',
  '%00',
  '%2e%2e%2f',
  '../../etc/passwd',
  '..\\..\\windows',
  '__proto__',
  'constructor',
  'toString',
  'hasOwnProperty',
  '{"$":"Date","v":"x"}',
  '&lt;script&gt;',
  '＜script＞',
  'a'.repeat(180),
  '🧨'.repeat(50),
]

test(`${VECTORS.length} hostile texts in every field come through as text, in views, streams and searches`, async () => {
  expect(VECTORS).toHaveLength(60)
  const hostile = job('hostile', {
    retry: { limit: 0 },
    run: async (p: { text: string }) => Promise.reject(Object.assign(new Error(p.text), { code: p.text })),
  })
  const mill = await open({ jobs: [hostile] })
  const page = browser(inApp(dashboard(mill, { authorize: () => ({ role: 'admin', actor: 'ada' }) })))
  await page.session()
  const ids: string[] = []
  for (const text of VECTORS) {
    const safe = text.replaceAll(/[\p{Cc}\p{Cs}]/gu, '?')
    const { id } = await mill.enqueue(
      hostile,
      { text, [text]: text },
      { title: safe, labels: [safe.slice(0, 100)], key: `${safe}!`, meta: { [text]: text } },
    )
    ids.push(id)
  }
  await mill.start()
  await expect.poll(async () => (await mill.count({ state: 'failed' })).count).toBe(VECTORS.length)
  for (const [i, id] of ids.entries()) {
    const text = VECTORS[i] as string
    const response = await page.post('api/view', { topic: `job:${id}` })
    expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8')
    expect(response.headers.get('x-content-type-options')).toBe('nosniff')
    const { fields } = (await response.json()) as Snapshot<JobFields>
    expect([text, fields.lastError?.message]).toEqual([text, expect.stringContaining(text.slice(0, 10))])
    const payload = (await (await page.get(`api/job/${id}/payload`)).json()) as ShownValue
    expect(JSON.stringify(payload.value)).toContain(JSON.stringify(text).slice(1, -1))
    const events = new Events(await page.post('api/stream', { topics: [`job:${id}`] }))
    expect(await events.next()).toMatchObject({ event: 'snapshot', data: { fields: { id } } })
    await events.cancel()
  }
  const found = (await (await page.post('api/search', { query: 'canary' })).json()) as SearchAnswer
  expect(found.order.length).toBeGreaterThan(20)
  for (const text of VECTORS) {
    const query = `"${text.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`
    for (const [path, body] of [
      ['api/search', { query }],
      ['api/search', { query: text }],
      ['api/complete', { text, caret: text.length }],
      ['api/view', { topic: `queue:1h:${text}` }],
      ['api/view', { topic: `list:newest:${query}` }],
      ['api/view', { topic: `group:${text}` }],
      ['api/view', { topic: `recurring:${text}` }],
      ['api/view', { topic: `failure:${text}` }],
      ['api/view', { topic: `sequence:${text}` }],
      ['api/view', { topic: `audit:${query}` }],
      ['api/view', { topic: 'groups', cursor: text }],
    ] as const) {
      const response = await page.post(path, body)
      expect([path, body, response.status < 500]).toEqual([path, body, true])
      expect(response.headers.get('content-security-policy')).toContain("default-src 'none'")
    }
  }
  expect(({} as { canary?: unknown }).canary).toBeUndefined()
})

const SECRET = 'hunter2-4111-1111'

test('a hidden value is in no byte that a viewer gets, and no search finds it', async () => {
  const talks = job('talks', {
    retry: { limit: 0 },
    run: async (p: { card: string; order: number }, ctx) => {
      ctx.log(`paying card=${p.card}`)
      throw Object.assign(new Error(`declined card=${p.card}`), { card: p.card })
    },
  })
  const mill = await open({ jobs: [talks], redact: ['card'] })
  const page = browser(inApp(dashboard(mill, { authorize: () => ({ role: 'viewer', actor: 'eve' }) })))
  await page.session()
  const { id } = await mill.enqueue(
    talks,
    { card: SECRET, order: 1 },
    { title: `Pays card=${SECRET}`, meta: { deep: { card: SECRET } } },
  )
  await mill.start()
  await expect.poll(async () => (await mill.get(id))?.state).toBe('failed')
  const [group] = (await mill.stats.errorGroups()).rows
  const seen: string[] = []
  for (const topic of [
    `job:${id}`,
    'list:newest:',
    'overview:1h',
    'failures:24h',
    `failure:${group?.fingerprint}`,
    'health',
    'workers',
    'upcoming:24h',
    'queue:1h:default',
    'queues',
  ]) {
    const view = await page.post('api/view', { topic })
    expect([topic, view.status]).toEqual([topic, 200])
    seen.push(await view.text())
  }
  for (const part of ['payload', 'result', 'meta', 'captured', 'log', 'graph', 'lately'])
    seen.push(await (await page.get(`api/job/${id}/${part}?all=1`)).text())
  for (const part of ['json', 'test']) expect((await page.get(`api/job/${id}/${part}`)).status).toBe(403)
  const queries = [
    `payload.card:${SECRET}`,
    `payload.card:hunter*`,
    SECRET,
    `error:hunter2`,
    `log:hunter2`,
    `title:hunter2`,
    `meta.deep.card:${SECRET}`,
  ]
  for (const query of queries) {
    const found = (await (await page.post('api/search', { query })).json()) as SearchAnswer
    expect([query, found.order]).toEqual([query, []])
    seen.push(JSON.stringify(found))
  }
  // What is negated must not tell it either: the job matches, whatever the card is.
  for (const query of [`-payload.card:${SECRET}`, `-payload.card:other`]) {
    const found = (await (await page.post('api/search', { query })).json()) as SearchAnswer
    expect([query, found.order]).toEqual([query, [id]])
  }
  for (const text of ['payload.', 'meta.', 'payload.card:'])
    seen.push(await (await page.post('api/complete', { text, caret: text.length })).text())
  expect(seen.join('\n')).not.toContain('hunter2')
  expect(seen.join('\n')).toContain('‹redacted›')
})

test('what is different about failed jobs is said of their payloads, and not of what is hidden or encrypted', async () => {
  const run = async ({ country }: { country: string; card: string }): Promise<void> => {
    if (country === 'NO') throw new Abort('declined')
  }
  const [pay, sealed] = [job('pay', run), job('sealed', { run, encrypt: true })]
  const mill = await open({
    jobs: [pay, sealed],
    encryption: { keys: { k1: new Uint8Array(32).fill(1) }, current: 'k1' },
  })
  const payloads = Array.from({ length: 40 }, (_, i) => ({
    country: i < 20 ? 'NO' : 'SE',
    card: i < 20 ? 'visa-no' : 'visa-se',
  }))
  await mill.enqueueMany(pay, payloads)
  await mill.enqueueMany(sealed, payloads)
  await mill.start()
  await expect.poll(async () => (await mill.count({ state: ['done', 'failed'] })).count).toBe(80)
  const pages = dashboard(mill, {
    authorize: (request) => ({ role: request.headers.get('x-role') as 'viewer', actor: 'ada' }),
    redact: [({ path, role }) => role === 'viewer' && path.startsWith('payload.card')],
  })
  const { rows } = await mill.stats.errorGroups()
  const differences = async (name: string, role: string): Promise<unknown> => {
    const page = browser(inApp(pages), { headers: { 'x-role': role } })
    await page.session()
    const print = rows.find((group) => group.job === name)?.fingerprint
    const view = (await (await page.post('api/view', { topic: `failure:${print}` })).json()) as Snapshot<FailureFields>
    expect(view.fields.differencesOf).toEqual({ failed: 20, done: 20 })
    return view.fields.differences
  }
  const all = { failedPercent: 100, donePercent: 0 }
  const country = { what: 'payload.country', value: 'NO', ...all }
  expect(await differences('pay', 'viewer')).toEqual([country])
  expect(await differences('pay', 'admin')).toEqual([country, { what: 'payload.card', value: 'visa-no', ...all }])
  expect(await differences('sealed', 'admin')).toEqual([])
})

test('what an encrypted job stores is shown to no role, and found by no search', async () => {
  const sealed = job('sealed', {
    encrypt: true,
    retry: { limit: 0 },
    run: async (p: { text: string }, ctx) => {
      ctx.log(p.text)
      throw new Error(p.text)
    },
  })
  const mill = await open({ jobs: [sealed], encryption: { keys: { k1: new Uint8Array(32).fill(7) }, current: 'k1' } })
  const page = browser(inApp(dashboard(mill, { authorize: () => ({ role: 'admin', actor: 'ada' }) })))
  await page.session()
  const { id } = await mill.enqueue(sealed, { text: SECRET })
  await mill.start()
  await expect.poll(async () => (await mill.get(id))?.state).toBe('failed')
  const seen: string[] = []
  for (const topic of [`job:${id}`, 'list:newest:', 'overview:1h', 'failures:24h', 'enqueue:sealed'])
    seen.push(await (await page.post('api/view', { topic })).text())
  for (const part of ['payload', 'result', 'log', 'json', 'test'])
    seen.push(await (await page.get(`api/job/${id}/${part}`)).text())
  for (const query of [`payload.text:${SECRET}`, SECRET, 'error:hunter2', 'log:hunter2']) {
    const found = (await (await page.post('api/search', { query })).json()) as SearchAnswer
    expect([query, found.order]).toEqual([query, []])
  }
  expect(seen.join('\n')).not.toContain('hunter2')
  expect(seen[0]).toContain('"encrypted":true')
})
