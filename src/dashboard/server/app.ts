import { reason } from '../../codec/show.js'
import type { ErrorBody, SearchAnswer, SessionAnswer } from '../protocol/calls.js'
import type { JobPart } from '../protocol/jobs.js'
import { canDo, ROLES, VERBS, withArticle } from '../protocol/verbs.js'
import type { ActAnswer, Role, Verb } from '../protocol/verbs.js'
import { Access } from './access/access.js'
import type { Place, User } from './access/access.js'
import { act } from './act/act.js'
import { mounted } from './assets.js'
import {
  readActRequest,
  readCompleteRequest,
  readLogin,
  readPreviewRequest,
  readSearchRequest,
  readStreamRequest,
  readViewRequest,
} from './check-requests.js'
import { complete } from './search/complete.js'
import { errorText } from './error-text.js'
import { readBody } from './guard/body.js'
import { empty, json, secured } from './guard/headers.js'
import { isKnownHost } from './guard/host.js'
import { RateLimit } from './guard/rate.js'
import { crossSiteProblem } from './guard/same-site.js'
import { Hub } from './live/hub.js'
import { inTime } from './live/in-time.js'
import { JOB_PARTS, readJobPart } from './job-part.js'
import { isUuid } from './ids.js'
import { Nonces } from './act/nonces.js'
import { Refusal, ViewGone } from './parts.js'
import type { Parts } from './parts.js'
import { hiddenNotes } from './search/scan.js'
import { Streams } from './live/streams.js'
import { foundRows } from './views/list.js'
import { shortName } from './views/health.js'

/** What the host of the handler knows of a request. */
export interface RequestEnvironment {
  /** The address of the peer. It is used for rate limits only. */
  readonly address?: string | undefined
  /** The path under which the host mounts the handler, where it has stripped it. */
  readonly basePath?: string | undefined
}

/** Requests of one address in a second. */
const REQUESTS_MAX = 200
const REQUESTS_MS = 1_000
const PAGE = 50
const RETRY_S = 5
const ASSET_AGE = 'public, max-age=31536000, immutable'

interface Call {
  readonly request: Request
  /** Below the mount, without the slash at its beginning. */
  readonly path: string
  readonly query: URLSearchParams
  readonly host: string
  readonly place: Place
  readonly user: User
  readonly body: unknown
}

interface Route {
  /** The least role. */
  readonly role: Role
  readonly run: (app: App, call: Call) => Promise<Response>
}

/** Every call of the API. What is not in this table does not exist. */
const ROUTES: Readonly<Record<string, Route>> = {
  'POST api/logout': { role: 'viewer', run: async (app, { place }) => app.access.signOut(place) },
  'GET api/session': { role: 'viewer', run: async (app, { user }) => json(app.session(user)) },
  'POST api/view': { role: 'viewer', run: (app, call) => app.view(call) },
  'POST api/stream': { role: 'viewer', run: async (app, call) => app.stream(call) },
  'POST api/search': { role: 'viewer', run: (app, call) => app.search(call) },
  'POST api/complete': {
    role: 'viewer',
    run: async (app, { body, user }) =>
      json(await complete(app.parts, readCompleteRequest(body), app.parts.showFor(user.role))),
  },
  'POST api/preview': { role: 'operator', run: (app, call) => app.preview(call) },
  'POST api/act': { role: 'operator', run: (app, call) => app.act(call) },
  'GET api/job': { role: 'viewer', run: (app, call) => app.jobPart(call) },
}

/** The server: guards in this order, then a handler. Host, size and rate, identity, role, header and cross-site, handler, headers. */
export class App {
  readonly parts: Parts
  readonly access: Access
  readonly hub: Hub
  readonly #streams: Streams
  readonly #nonces: Nonces<ActAnswer>
  readonly #rate: RateLimit
  readonly #port: () => number | undefined
  readonly #theme: string | undefined
  readonly #refusedHosts = new Set<string>()

  constructor(
    parts: Parts,
    given: {
      readonly token: string | undefined
      readonly secret: string
      readonly port: () => number | undefined
      readonly theme: string | undefined
    },
  ) {
    this.parts = parts
    this.access = new Access(parts, given.token, given.secret)
    this.hub = new Hub(parts)
    this.#streams = new Streams(parts.world)
    this.#nonces = new Nonces(parts.world.clock)
    this.#rate = new RateLimit(parts.world.clock, REQUESTS_MAX, REQUESTS_MS)
    this.#port = given.port
    this.#theme = given.theme
  }

  /** Answers a request. It never throws: an error is a sentence and an id. */
  async fetch(request: Request, environment: RequestEnvironment = {}): Promise<Response> {
    try {
      return secured(await this.#answer(request, environment))
    } catch (error) {
      return secured(this.#failed(error, new URL(request.url).pathname))
    }
  }

  /** Ends streams and bulks. */
  end(): void {
    this.#streams.end()
    this.parts.bulks.end()
    this.hub.end()
  }

  async #answer(request: Request, environment: RequestEnvironment): Promise<Response> {
    const url = new URL(request.url)
    const host = request.headers.get('host') ?? url.host
    if (!isKnownHost(host, this.parts.options.hosts ?? [], this.#port())) return this.#wrongHost(host)
    const place = this.#placeOf(request, url, environment)
    if (place.address !== undefined) {
      const waitMs = this.#rate.use(place.address)
      if (waitMs > 0) return empty(429, { 'retry-after': '1' })
    }
    const path = pathOf(url, this.parts.options.basePath)
    if (request.method === 'OPTIONS') return empty(403)
    if (path === 'api/login') return this.#login(request, { host, place })
    const asset = request.method === 'GET' ? this.#asset(path) : undefined
    if (asset?.isPublic === true) return asset.response
    const user = await this.access.userOf(request)
    if (user instanceof Response) return user
    if (user === undefined) return this.#stranger(request, path, environment)
    if (asset !== undefined) return asset.response
    if (path === '') return request.method === 'GET' ? this.#page(request, environment, place) : empty(404)
    return this.#call(request, { url, path, host, place, user })
  }

  async #call(
    request: Request,
    {
      url,
      path,
      host,
      place,
      user,
    }: { readonly url: URL; readonly path: string; readonly host: string; readonly place: Place; readonly user: User },
  ): Promise<Response> {
    const name = path.startsWith('api/job/') ? 'api/job' : path
    const key = `${request.method} ${name}`
    const route = Object.hasOwn(ROUTES, key) ? ROUTES[key] : undefined
    if (route === undefined) return empty(404)
    if (ROLES.indexOf(user.role) < ROLES.indexOf(route.role))
      throw new Refusal('not-allowed', `${withArticle(user.role)} cannot do this.`, {
        hint: `Ask for the ${route.role} role.`,
      })
    const problem = this.#crossSite(request, host, user)
    if (problem !== undefined) return empty(403)
    const read = request.method === 'POST' ? await readBody(request) : { ok: true as const, value: undefined }
    if (!read.ok) return empty(read.status)
    const response = await route.run(this, {
      request,
      path,
      query: url.searchParams,
      host,
      place,
      user,
      body: read.value,
    })
    const cookie = this.access.renewal(request, place)
    if (cookie !== undefined && !response.headers.has('set-cookie')) response.headers.set('set-cookie', cookie)
    return response
  }

  #crossSite(request: Request, host: string, user: User): string | undefined {
    const problem = crossSiteProblem(request, host)
    if (problem !== undefined || request.method !== 'POST') return problem
    return this.access.sessions.isCsrf(request.headers.get('x-millrace-csrf'), user)
      ? undefined
      : 'its token is not of this session'
  }

  async #login(request: Request, { host, place }: { readonly host: string; readonly place: Place }): Promise<Response> {
    if (request.method !== 'POST') return empty(404)
    if (crossSiteProblem(request, host) !== undefined) return empty(403)
    const read = await readBody(request)
    return read.ok ? this.access.signIn(readLogin(read.value).token, place) : empty(read.status)
  }

  /** Strangers see the sign-in page, and nothing else: a route that exists and one that does not look alike. */
  #stranger(request: Request, path: string, environment: RequestEnvironment): Response {
    if (path !== '' || request.method !== 'GET') return empty(401)
    const page = mounted(this.parts.assets.signIn, this.#pageMount(environment), this.#theme !== undefined)
    return new Response(page, { status: 401, headers: HTML })
  }

  #page(request: Request, environment: RequestEnvironment, place: Place): Response {
    const page = mounted(this.parts.assets.page, this.#pageMount(environment), this.#theme !== undefined)
    const response = new Response(page, { headers: HTML })
    const cookie = this.access.renewal(request, place)
    if (cookie !== undefined) response.headers.set('set-cookie', cookie)
    return response
  }

  #asset(path: string): { readonly isPublic: boolean; readonly response: Response } | undefined {
    if (path === 'assets/theme.css' && this.#theme !== undefined)
      return {
        isPublic: true,
        response: new Response(this.#theme, { headers: { 'content-type': 'text/css; charset=utf-8' } }),
      }
    const file = this.parts.assets.files.get(path)
    if (file === undefined) return undefined
    const headers = {
      'content-type': file.type,
      'cache-control': file.isPublic ? ASSET_AGE : `private, ${ASSET_AGE.slice('public, '.length)}`,
    }
    return { isPublic: file.isPublic, response: new Response(file.bytes, { headers }) }
  }

  /** Where the page's files are: undefined when the mount is not known, so that they are beside the page. */
  #pageMount(environment: RequestEnvironment): string | undefined {
    return environment.basePath ?? this.parts.options.basePath
  }

  #placeOf(request: Request, url: URL, environment: RequestEnvironment): Place {
    const mount = environment.basePath ?? this.parts.options.basePath ?? ''
    const isSecure = url.protocol === 'https:' || request.headers.get('origin')?.startsWith('https:') === true
    return { address: this.#addressOf(request, environment), mount, isSecure }
  }

  /** The header can be written by anyone: only the entries that our own proxies appended count. */
  #addressOf(request: Request, { address }: RequestEnvironment): string | undefined {
    const hops = this.parts.options.trustProxy ?? 0
    const forwarded =
      hops === 0 ? [] : (request.headers.get('x-forwarded-for') ?? '').split(',').map((each) => each.trim())
    return forwarded.at(-hops) || address
  }

  #wrongHost(host: string): Response {
    if (!this.#refusedHosts.has(host) && this.#refusedHosts.size < PAGE) {
      this.#refusedHosts.add(host)
      const hint = 'if that is a name of yours, add it to the option hosts of the dashboard'
      this.parts.log.write(
        'warn',
        { host },
        `dashboard: refused a request for the host ${JSON.stringify(host)}; ${hint}`,
      )
    }
    return empty(421)
  }

  session(user: User): SessionAnswer {
    const { options, assets, internals, world } = this.parts
    const { engine, name } = internals.store.info
    return {
      role: user.role,
      actor: user.actor,
      verbs: (Object.keys(VERBS) as Verb[]).filter((verb) => canDo(user.role, verb)),
      csrf: this.access.sessions.csrf(user),
      canSignOut: options.authorize === undefined,
      title: options.title ?? 'Millrace',
      environment: options.environment ?? null,
      build: assets.build,
      version: this.parts.version,
      store: { engine, name: shortName(name) },
      links: Object.entries(options.links ?? {}).map(([link, href]) => ({ name: link, url: href })),
      now: world.clock.now(),
    }
  }

  async view({ body, user }: Call): Promise<Response> {
    const { topic, have, cursor } = readViewRequest(body)
    if (cursor !== undefined) return json(await this.hub.page(topic, user.role, cursor))
    const snapshot = await this.hub.topic(topic, user.role).current(user.role)
    return have !== undefined && snapshot.id === have ? empty(204) : json(snapshot)
  }

  stream({ request, body, user, place }: Call): Response {
    const { topics, have = {} } = readStreamRequest(body)
    const opened = this.#streams.open({
      role: user.role,
      session: user.id ?? user.actor,
      address: place.address,
      isAllowed: async () => {
        const now = await this.access.userOf(request)
        return now !== undefined && !(now instanceof Response) && now.role === user.role
      },
    })
    if (opened === undefined) return empty(503, { 'retry-after': String(RETRY_S) })
    for (const topic of topics) this.#addTopic(opened, topic, { role: user.role, have: have[topic] })
    return new Response(opened.body, { headers: STREAM })
  }

  /** A topic that is refused must not end the stream of the others. */
  #addTopic(
    stream: ReturnType<Streams['open']> & object,
    topic: string,
    { role, have }: { readonly role: Role; readonly have: string | undefined },
  ): void {
    try {
      stream.add(this.hub.topic(topic, role), have)
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      stream.gone({ topic, reason: error.code === 'not-allowed' ? 'not-allowed' : 'not-found', text: error.message })
    }
  }

  async search({ body, user }: Call): Promise<Response> {
    const { query, sort = 'newest', workflows = false, cursor, limit = PAGE } = readSearchRequest(body)
    const show = this.parts.showFor(user.role)
    const { scanner, world } = this.parts
    const searching = scanner.search(this.parts, { query, sort, workflows, cursor, limit, show })
    const found = await inTime(searching, world)
    const rows = (await inTime(foundRows(this.parts, found, workflows), world))(show)
    const { scanned, reachedAt } = found
    const answer: SearchAnswer = {
      now: this.parts.world.clock.now(),
      rows: Object.fromEntries(rows.map((row) => [row.id, row])),
      order: rows.map(({ id }) => id),
      cursor: found.cursor,
      scanned,
      reachedAt,
      hidden: hiddenNotes(this.parts, query, show),
    }
    return json(answer)
  }

  async preview({ body, user }: Call): Promise<Response> {
    const request = readPreviewRequest(body)
    if (!canDo(user.role, request.verb))
      throw new Refusal('not-allowed', `${withArticle(user.role)} cannot do this.`, { hint: 'Ask for the admin role.' })
    const show = this.parts.showFor(user.role)
    return json(await this.parts.bulks.preview(this.parts, request, { actor: user.actor, show }))
  }

  async act({ body, user }: Call): Promise<Response> {
    const request = readActRequest(body)
    const answer = this.#nonces.once(`${user.actor} ${request.nonce}`, JSON.stringify(request), () =>
      act(this.parts, request, user),
    )
    if (answer === undefined) throw new Refusal('bad-request', 'This nonce was used for another request.')
    return json(await answer)
  }

  async jobPart({ path, query, user }: Call): Promise<Response> {
    const [id = '', part = '', ...more] = path.slice('api/job/'.length).split('/')
    if (!isUuid(id) || !JOB_PARTS.includes(part as JobPart) || more.length > 0) return empty(404)
    const show = this.parts.showFor(user.role)
    const reading = readJobPart(this.parts, { id, part: part as JobPart, isAll: query.get('all') === '1', show })
    return json(await inTime(reading, this.parts.world))
  }

  #failed(error: unknown, what: string): Response {
    const id = this.parts.world.ids.workerId().slice(0, 8)
    const body = (given: Omit<ErrorBody['error'], 'id'>): ErrorBody => ({ error: { id, ...given } })
    if (error instanceof Refusal) {
      const { code, message: text, hint, at, retryMs, status } = error
      const wait: Record<string, string> =
        retryMs === undefined ? {} : { 'retry-after': String(Math.ceil(retryMs / 1_000)) }
      return json(
        body({ code, text, hint, ...(at === undefined ? {} : { at }), ...(retryMs === undefined ? {} : { retryMs }) }),
        status,
        wait,
      )
    }
    if (error instanceof ViewGone) return json(body({ code: 'not-found', text: error.message, hint: null }), 404)
    const { text, code } = errorText(this.parts.log, `answer ${what} (${id}): ${reason(error)}`, error)
    return json(
      body({ code, text, hint: `Its id in the log is ${id}.` }),
      code === 'store' ? 503 : code === 'bad-request' ? 400 : 500,
    )
  }
}

const HTML = { 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-store' }
const STREAM = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-store, no-transform',
  'x-accel-buffering': 'no',
}

/** The path below the mount, whether the host has stripped it or not. A slash at its end changes nothing. */
function pathOf({ pathname }: URL, basePath = ''): string {
  const isBelow = basePath !== '' && (pathname === basePath || pathname.startsWith(`${basePath}/`))
  const path = isBelow ? pathname.slice(basePath.length) : pathname
  return path.replace(/^\//, '')
}
