import { expect, test } from 'vitest'
import { dashboard } from '../src/dashboard/index.js'
import type { DashboardOptions, DashboardRole } from '../src/dashboard/index.js'
import { canDo, VERBS } from '../src/dashboard/protocol.js'
import type { ErrorBody, Verb } from '../src/dashboard/protocol.js'
import { job } from '../src/index.js'
import { browser, HOST, inApp, TOKEN } from './dashboard/browser.js'
import { openedMills } from './support/opened-mills.js'

/** Who gets what: every route for a stranger, another host, another site, and a viewer. */

const { open } = openedMills('dashboard-guards')
const charge = job('charge', async (p: { order: number }) => p.order)
const NONCE = 'a-nonce-of-16-or-more'

const ROUTES: readonly (readonly [method: string, path: string, body?: unknown])[] = [
  ['GET', 'assets/theme-x.css'],
  ['GET', 'api/session'],
  ['POST', 'api/logout', {}],
  ['POST', 'api/view', { topic: 'health' }],
  ['POST', 'api/stream', { topics: ['health'] }],
  ['POST', 'api/search', { query: '' }],
  ['POST', 'api/complete', { text: '', caret: 0 }],
  ['POST', 'api/preview', { verb: 'bulk.retry', of: { query: 'state:failed' } }],
  ['POST', 'api/act', { verb: 'queue.pause', target: 'mail', nonce: NONCE }],
  ['GET', 'api/job/01890a5d-ac96-774b-bcce-b302099a8057/payload'],
  ['GET', 'api/nothing'],
  ['GET', '..%2f..%2fpackage.json'],
  ['GET', 'assets/..%2f..%2fpackage.json'],
  ['GET', 'assets/%2e%2e/%2e%2e/package.json'],
  ['GET', 'assets/constructor'],
]

async function pages(options: Partial<DashboardOptions> = {}, role: DashboardRole = 'admin') {
  const mill = await open({ jobs: [charge] })
  const pagesOf = dashboard(mill, {
    authorize: (request) => (request.headers.get('x-user') === null ? null : { role, actor: 'ada' }),
    ...options,
  })
  return { mill, send: inApp(pagesOf) }
}

function request(method: string, path: string, body: unknown, headers: Record<string, string>): Request {
  const given = body === undefined ? {} : { body: JSON.stringify(body) }
  const type = method === 'POST' ? { 'content-type': 'application/json' } : {}
  return new Request(`http://${HOST}/${path}`, { method, ...given, headers: { host: HOST, ...type, ...headers } })
}

const OURS = { 'x-millrace': '1', 'sec-fetch-site': 'same-origin' }

function isSecured({ headers }: Response): void {
  expect(headers.get('content-security-policy')).toContain("default-src 'none'")
  expect(headers.get('content-security-policy')).toContain("frame-ancestors 'none'")
  expect(headers.get('x-frame-options')).toBe('DENY')
  expect(headers.get('x-content-type-options')).toBe('nosniff')
  expect(headers.get('cross-origin-resource-policy')).toBe('same-origin')
  expect(headers.get('referrer-policy')).toBe('no-referrer')
  expect([...headers.keys()].filter((name) => name.startsWith('access-control'))).toEqual([])
}

test.each(ROUTES.map(([method, path, body]) => ({ method, path, body })))(
  '$method $path: a stranger gets 401 without a body',
  async ({ method, path, body }) => {
    const { send } = await pages()
    const response = await send(request(method, path, body, OURS))
    expect([response.status, await response.text()]).toEqual([401, ''])
    isSecured(response)
  },
)

test.each([
  'evil.example',
  'evil.example:8080',
  'localhost.evil.example',
  '127.0.0.1.evil.example:8080',
  '[::2]:8080',
  '',
  'localhost:8080@evil.example',
])('every route refuses the host %j without a body', async (host) => {
  const { send } = await pages()
  const all: typeof ROUTES = [...ROUTES, ['GET', ''], ['POST', 'api/login', { token: TOKEN }]]
  for (const [method, path, body] of all) {
    const response = await send(request(method, path, body, { ...OURS, 'x-user': 'ada', host }))
    expect([path, response.status, await response.text()]).toEqual([path, 421, ''])
    isSecured(response)
  }
})

test('a host that was given is accepted, on any port, and on its port only when it has one', async () => {
  const { send } = await pages({ hosts: ['jobs.example.com', 'other.example:8443'] })
  const status = async (host: string): Promise<number> =>
    (await send(request('GET', 'api/session', undefined, { ...OURS, 'x-user': 'ada', host }))).status
  expect(await status('jobs.example.com')).toBe(200)
  expect(await status('JOBS.example.com:444')).toBe(200)
  expect(await status('other.example:8443')).toBe(200)
  expect(await status('other.example')).toBe(421)
  for (const host of ['localhost', '127.0.0.1:1', '[::1]:3000']) expect(await status(host)).toBe(200)
})

const SITES: readonly (readonly [what: string, headers: Record<string, string>])[] = [
  ['another site', { 'sec-fetch-site': 'cross-site' }],
  ['a sibling', { 'sec-fetch-site': 'same-site' }],
  ['the address bar', { 'sec-fetch-site': 'none' }],
  ['another origin, of an old browser', { origin: 'https://evil.example' }],
  ['an opaque origin', { origin: 'null' }],
  ['an origin that is no URL', { origin: 'x' }],
]

test.each(SITES)('calls from %s are refused, with the right cookie and token too', async (_what, site) => {
  const { send } = await pages()
  const csrf = await csrfOf(send)
  for (const [method, path, body] of ROUTES.filter(([, each]) => each.startsWith('api/') && each !== 'api/nothing')) {
    const response = await send(
      request(method, path, body, { 'x-millrace': '1', 'x-user': 'ada', 'x-millrace-csrf': csrf, ...site }),
    )
    expect([path, response.status, await response.text()]).toEqual([path, 403, ''])
  }
})

async function csrfOf(send: ReturnType<typeof inApp>): Promise<string> {
  const response = await send(request('GET', 'api/session', undefined, { ...OURS, 'x-user': 'ada' }))
  return ((await response.json()) as { csrf: string }).csrf
}

test('a POST needs our header, a JSON type, and the token of its user', async () => {
  const { send } = await pages()
  const csrf = await csrfOf(send)
  const all = { ...OURS, 'x-user': 'ada', 'x-millrace-csrf': csrf }
  const status = async (headers: Record<string, string>): Promise<number> =>
    (await send(request('POST', 'api/view', { topic: 'health' }, headers))).status
  expect(await status(all)).toBe(200)
  expect(await status({ ...all, 'x-millrace': '0' })).toBe(403)
  expect(await status({ ...all, 'content-type': 'text/plain' })).toBe(403)
  expect(await status({ ...all, 'content-type': 'application/x-www-form-urlencoded' })).toBe(403)
  expect(await status({ ...all, 'content-type': 'application/json; charset=utf-8' })).toBe(200)
  expect(await status({ ...all, 'x-millrace-csrf': '' })).toBe(403)
  expect(await status({ ...all, 'x-millrace-csrf': `${csrf}x` })).toBe(403)
  const { 'sec-fetch-site': _site, ...old } = all
  expect(await status(old)).toBe(403)
  expect(await status({ ...old, origin: `http://${HOST}` })).toBe(200)
  expect((await send(request('OPTIONS', 'api/view', undefined, all))).status).toBe(403)
})

test('the token of one user is refused for another', async () => {
  const { send } = await pages({ authorize: (each) => ({ role: 'admin', actor: each.headers.get('x-user') ?? 'eve' }) })
  const csrf = await csrfOf(send)
  const response = await send(
    request('POST', 'api/view', { topic: 'health' }, { ...OURS, 'x-user': 'bob', 'x-millrace-csrf': csrf }),
  )
  expect(response.status).toBe(403)
})

test.each(['viewer', 'operator', 'admin'] as const)(
  'a %s may use the verbs of the role, and no other',
  async (role) => {
    const { send, mill } = await pages({}, role)
    const page = browser(send, { headers: { 'x-user': 'ada' } })
    await page.session()
    for (const verb of Object.keys(VERBS) as Verb[]) {
      const response = await page.post('api/act', { verb, target: 'mail', nonce: `${NONCE}-${verb}` })
      if (canDo(role, verb)) expect([verb, response.status]).not.toEqual([verb, 403])
      else
        expect([verb, response.status, ((await response.json()) as ErrorBody).error.code]).toEqual([
          verb,
          403,
          'not-allowed',
        ])
    }
    if (role === 'viewer') expect((await mill.audit()).rows).toEqual([])
    for (const topic of ['audit:', 'enqueue', 'enqueue:charge'])
      expect((await page.post('api/view', { topic })).status).toBe(role === 'admin' ? 200 : 403)
  },
)

test('readOnly makes every user a viewer', async () => {
  const { send } = await pages({ readOnly: true })
  const page = browser(send, { headers: { 'x-user': 'ada' } })
  expect(await page.session()).toMatchObject({ role: 'viewer', verbs: [] })
  expect((await page.post('api/act', { verb: 'queue.pause', target: 'mail', nonce: NONCE })).status).toBe(403)
})

test('a user whom authorize does not name well is an error of the server, and no user', async () => {
  for (const wrong of [{ role: 'root', actor: 'ada' }, { role: 'admin', actor: '' }, { role: 'admin' }]) {
    const { send } = await pages({ authorize: () => wrong as never })
    const response = await send(request('GET', 'api/session', undefined, OURS))
    expect(response.status).toBe(500)
    expect(await response.text()).not.toContain('authorize')
  }
})

test('authorize may answer by itself', async () => {
  const { send } = await pages({ authorize: () => Response.redirect('https://example.com/sign-in', 302) })
  const response = await send(request('GET', '', undefined, {}))
  expect([response.status, response.headers.get('location')]).toEqual([302, 'https://example.com/sign-in'])
})

test('tries of the token are bounded, by address and in all', async () => {
  const mill = await open()
  const pagesOf = dashboard(mill, { token: TOKEN })
  const tryFrom = async (address: string, token: string): Promise<Response> =>
    browser(inApp(pagesOf, { address })).login(token)
  for (let i = 0; i < 5; i += 1) expect((await tryFrom('10.0.0.1', 'wrong')).status).toBe(401)
  const late = await tryFrom('10.0.0.1', TOKEN)
  expect([late.status, Number(late.headers.get('retry-after')) > 0]).toEqual([429, true])
  expect((await tryFrom('10.0.0.2', TOKEN)).status).toBe(204)
  for (let i = 0; i < 44; i += 1) await tryFrom(`10.1.0.${i}`, 'wrong')
  expect((await tryFrom('10.2.0.1', TOKEN)).status).toBe(429)
  const { rows } = await mill.audit()
  expect(rows.map(({ verb }) => verb)).toEqual(['sign in', 'sign-in refused: wrong token'])
})

test('a session is a strict cookie of the mount, and is refused when it was changed or has ended', async () => {
  const mill = await open()
  const page = browser(inApp(dashboard(mill, { token: TOKEN, basePath: '/jobs' })))
  const response = await page.login(TOKEN)
  expect(response.headers.get('set-cookie')).toMatch(
    /^millrace_[0-9a-f]{8}=\S+; Path=\/jobs; Max-Age=43200; HttpOnly; SameSite=Strict$/,
  )
  const cookie = page.cookie() ?? ''
  const status = async (given: string): Promise<number> =>
    (await page.call('api/session', { headers: { cookie: given } })).status
  expect(await status(cookie)).toBe(200)
  expect(await status(`a=b; ${cookie}`)).toBe(200)
  const [name, value] = cookie.split('=') as [string, string]
  const [text = '', signature] = value.split('.')
  const forged = Buffer.from(Buffer.from(text, 'base64url').toString().replace('admin', 'owner')).toString('base64url')
  for (const bad of [
    '',
    `${name}=`,
    `${name}=${text}`,
    `${name}=${forged}.${signature}`,
    `${name}=${text}.x`,
    `x${cookie}`,
  ])
    expect(await status(bad)).toBe(401)
  const other = dashboard(mill, { token: TOKEN })
  expect((await browser(inApp(other)).call('api/session', { headers: { cookie } })).status).toBe(401)
})

test('processes with the same secret share sessions', async () => {
  const mill = await open()
  const secret = 'a-secret-of-32-characters-or-more'
  const [one, two] = [dashboard(mill, { token: TOKEN, secret }), dashboard(mill, { token: TOKEN, secret })]
  const page = browser(inApp(one))
  await page.login(TOKEN)
  const { csrf } = await page.session()
  const elsewhere = browser(inApp(two), { headers: { cookie: page.cookie() ?? '', 'x-millrace-csrf': csrf } })
  expect((await elsewhere.post('api/view', { topic: 'health' })).status).toBe(200)
})

test('a body that is too long, too deep or no JSON is refused', async () => {
  const { send } = await pages()
  const csrf = await csrfOf(send)
  const status = async (body: string): Promise<number> => {
    const headers = {
      ...OURS,
      host: HOST,
      'x-user': 'ada',
      'x-millrace-csrf': csrf,
      'content-type': 'application/json',
    }
    return (await send(new Request(`http://${HOST}/api/view`, { method: 'POST', body, headers }))).status
  }
  expect(await status(JSON.stringify({ topic: 'health', more: 'x'.repeat(1_048_576) }))).toBe(413)
  expect(await status(`{"topic":"health","deep":${'['.repeat(31)}${']'.repeat(31)}}`)).toBe(200)
  expect(await status(`{"topic":"health","deep":${'['.repeat(32)}${']'.repeat(32)}}`)).toBe(400)
  for (const wrong of ['', '{', '[]', '"x"', 'null', '{"topic":5}', `{"topic":"${'x'.repeat(1_201)}"}`])
    expect([wrong, await status(wrong)]).toEqual([wrong, 400])
  expect(await status('{"topic":"health:"}')).toBe(404)
  expect(({} as { polluted?: unknown }).polluted).toBeUndefined()
})

test('without authorize and token there is no dashboard, and wrong options are reported all at once', async () => {
  const mill = await open()
  expect(() => dashboard(mill)).toThrow(/authorize is missing/)
  expect(() => dashboard({} as never, { token: TOKEN })).toThrow(/mill must be a mill/)
  const wrong = {
    token: 'short',
    hosts: ['https://x'],
    basePath: 'jobs/',
    links: { trace: 'javascript:alert(1)' },
    theme: { light: { text: 'red' } },
    autorize: 1,
  }
  expect(() => dashboard(mill, wrong as never)).toThrow(/6 problems/)
  expect(() => dashboard(mill, { token: TOKEN, theme: { light: { text: '#DDDDDD' } } })).toThrow(
    /contrast of 1\.\d to its ground, and needs 4\.5/,
  )
  await expect(mill.dashboard({ host: '0.0.0.0', port: 0 })).rejects.toThrow(
    /host must be 127\.0\.0\.1 unless authorize or token is given/,
  )
})
