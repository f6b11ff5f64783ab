import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, test, vi } from 'vitest'
import { dashboard, toNodeHandler } from '../src/dashboard/index.js'
import { event, job, workflow } from '../src/index.js'
import { openedMills } from './support/opened-mills.js'
import { browser, HOST, inApp, TOKEN } from './dashboard/browser.js'
import { Events } from './dashboard/events.js'

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

test('on a port of its own, the link signs in, and pages, streams and a body that is too long pass through the socket', async () => {
  const mill = await open({ jobs: [charge] })
  const { url, port, close } = await mill.dashboard({ port: 0 })
  const [base = '', token = ''] = url.split('#token=')
  expect(base).toBe(`http://127.0.0.1:${port}/`)
  const page = browser((request) => fetch(request), { base, headers: { 'sec-fetch-site': 'same-origin' } })
  const signIn = await page.get('')
  expect([signIn.status, signIn.headers.get('content-type')]).toEqual([401, 'text/html; charset=utf-8'])
  expect((await page.login(token)).status).toBe(204)
  await page.session()
  expect((await page.get('')).status).toBe(200)
  const events = new Events(await page.post('api/stream', { topics: ['queues'] }))
  await events.until('queues', () => true)
  await mill.enqueue(charge, { order: 1 })
  await events.until('queues', ({ order }) => order.length === 1)
  expect((await page.post('api/view', { topic: 'health', more: 'x'.repeat(2_000_000) })).status).toBe(413)
  await close()
  await expect(fetch(base)).rejects.toThrow()
})

test('a port that is taken is an error with its number, and the mill goes on', async () => {
  const mill = await open({ jobs: [charge] })
  const { port } = await mill.dashboard({ port: 0 })
  await expect(mill.dashboard({ port })).rejects.toMatchObject({
    code: 'E_DASHBOARD_PORT',
    message: expect.stringContaining(String(port)),
  })
  expect((await mill.enqueue(charge, { order: 1 })).isNew).toBe(true)
})

test.each(['/jobs', '/jobs/', '/deep/er/jobs'])(
  'mounted at %s as Express does it, the page finds its files, and a parsed body is read',
  async (given) => {
    const mount = given.replace(/\/$/, '')
    const mill = await open({ jobs: [charge] })
    const handle = toNodeHandler(dashboard(mill, { token: TOKEN }))
    const server = createServer((request, response) => {
      const originalUrl = request.url ?? ''
      if (!originalUrl.startsWith(mount)) return void response.writeHead(404).end()
      const rest = originalUrl.slice(mount.length)
      void parsed(request).then((body) =>
        handle(Object.assign(request, { originalUrl, url: rest.startsWith('/') ? rest : `/${rest}`, body }), response),
      )
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}${mount}/`
    const page = browser((request) => fetch(request), { base })
    const response = await page.login(TOKEN)
    expect([response.status, response.headers.get('set-cookie')]).toEqual([
      204,
      expect.stringContaining(`Path=${mount};`),
    ])
    await page.session()
    expect((await page.post('api/view', { topic: 'queues' })).status).toBe(200)
    for (const path of ['', `${base.slice(0, -1)}`]) {
      const html = await (await page.get(path)).text()
      for (const [, file] of html.matchAll(/(?:src|href)="([^"]+)"/g))
        expect(file).toMatch(new RegExp(`^${mount}/assets/`))
    }
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  },
)

/** What `express.json()` does: the body is read before the handler has the request. */
async function parsed(request: AsyncIterable<Buffer>): Promise<unknown> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  return chunks.length === 0 ? undefined : JSON.parse(Buffer.concat(chunks).toString())
}

test.each([
  ['strips the mount', (path: string) => path.replace('/jobs', '')],
  ['keeps the mount', (path: string) => path],
])('a Fetch host that %s serves the same pages', async (_what, rewrite) => {
  const mill = await open({ jobs: [charge] })
  const pages = dashboard(mill, { token: TOKEN, basePath: '/jobs' })
  const send = (request: Request): Promise<Response> => {
    const url = new URL(request.url)
    url.pathname = rewrite(url.pathname) || '/'
    return pages.fetch(new Request(url, request))
  }
  const page = browser(send, { base: `http://${HOST}/jobs/` })
  expect((await page.login(TOKEN)).status).toBe(204)
  await page.session()
  expect((await page.post('api/view', { topic: 'queues' })).status).toBe(200)
  expect((await page.get('')).status).toBe(200)
})

test('the option dashboard serves it from the start until the close', async () => {
  const mill = await open({ jobs: [charge], dashboard: { port: 0 } })
  const lines = vi.spyOn(process.stderr, 'write').mockReturnValue(true)
  try {
    await mill.start()
    await mill.stop()
    await mill.start()
    const [line, ...more] = lines.mock.calls.map(([text]) => String(text)).filter((text) => text.includes('dashboard:'))
    const [, url = ''] = /^dashboard: (http:\/\/127\.0\.0\.1:\d+\/)#token=\S{40,}$/m.exec(line ?? '') ?? []
    expect(more).toEqual([])
    expect((await fetch(url)).status).toBe(401)
    await mill.close()
    await expect(fetch(url)).rejects.toThrow()
  } finally {
    lines.mockRestore()
  }
})

test('a page of a job or a sequence that does not exist says so, and the other topics of its stream live', async () => {
  const mill = await open({ jobs: [charge] })
  const page = browser(inApp(dashboard(mill, { token: TOKEN })))
  await page.login(TOKEN)
  await page.session()
  const response = await page.post('api/stream', { topics: ['job:nope', 'sequence:none', 'workers'] })
  expect(response.status).toBe(200)
  const events = new Events(response)
  const gone: string[] = []
  let isLive = false
  while (gone.length < 2 || !isLive) {
    const frame = await events.next()
    if (frame?.event === 'gone') gone.push(`${frame.data.topic}: ${frame.data.text}`)
    isLive ||= frame?.event === 'snapshot' && frame.data.topic === 'workers'
  }
  expect(gone.toSorted()).toEqual([
    'job:nope: "nope" is not the id of a job: an id is a UUID.',
    'sequence:none: There is no sequence "none": the id of a sequence is a UUID.',
  ])
  await events.cancel()
})

test('the list of workflows has no counts of all jobs, and a search has none either', async () => {
  const mill = await open({ jobs: [charge] })
  await mill.enqueue(charge, { order: 1 })
  const page = browser(inApp(dashboard(mill, { token: TOKEN })))
  await page.login(TOKEN)
  await page.session()
  const countsOf = async (topic: string): Promise<unknown> => {
    const { fields } = (await (await page.post('api/view', { topic })).json()) as { fields: { counts: unknown } }
    return fields.counts
  }
  expect(await countsOf('workflows:newest:')).toBeNull()
  expect(await countsOf('list:newest:job:charge')).toBeNull()
  expect(await countsOf('list:newest:')).toMatchObject({ ready: { n: 1, exact: true } })
})

test('the list of workflows has the step that each is in, and how many are done', async () => {
  const approved = event<{ by: string }>('approved')
  const refund = workflow('refund', {
    events: [approved],
    run: async (_: null, w) => {
      await w.step('load', async () => 1)
      await w.waitFor(approved)
    },
  })
  const mill = await open({ jobs: [refund] })
  const page = browser(inApp(dashboard(mill, { token: TOKEN })))
  await page.login(TOKEN)
  await page.session()
  const { id } = await mill.enqueue(refund, null)
  await mill.start()
  await expect.poll(async () => (await mill.get(id))?.state).toBe('blocked')
  const view = await (await page.post('api/view', { topic: 'workflows:newest:' })).json()
  expect(view).toMatchObject({ rows: { [id]: { step: { name: 'approved', done: 1 } } } })
})
