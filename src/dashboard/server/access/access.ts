import { digest } from '../../../world/digest.js'
import { isSameSecret } from '../../../world/cipher.js'
import type { DashboardUser } from '../../../mill/dashboard-options.js'
import type { Role } from '../../protocol/verbs.js'
import { ROLES } from '../../protocol/verbs.js'
import { empty } from '../guard/headers.js'
import { RateLimit } from '../guard/rate.js'
import type { Parts } from '../parts.js'
import { cookieHeader, RENEW_MS, SESSION_MS, Sessions } from './session.js'
import type { Session } from './session.js'

/** Who sends a request. */
export interface User {
  readonly role: Role
  readonly actor: string
  /** Of the session; undefined where the app signs users in. */
  readonly id?: string | undefined
}

/** Tries with a token in a minute: of one address, and of all. */
const TRIES = 5
const TRIES_IN_ALL = 50
const MINUTE_MS = 60_000
const ACTOR_MAX = 200
const SECOND_MS = 1_000

/** What is known of the place of a request. */
export interface Place {
  /** The address of the peer, for rate limits only: it is never identity. */
  readonly address: string | undefined
  /** The path of the mount, for the cookie. */
  readonly mount: string
  readonly isSecure: boolean
}

/** Signs users in, and says who sends a request. */
export class Access {
  readonly sessions: Sessions
  readonly #parts: Parts
  readonly #token: string | undefined
  readonly #tries: RateLimit
  readonly #allTries: RateLimit
  readonly #noted: RateLimit

  constructor(parts: Parts, token: string | undefined, secret: string) {
    this.#parts = parts
    this.#token = token
    this.sessions = new Sessions(secret, parts.internals.store.info.name)
    const { clock } = parts.world
    this.#tries = new RateLimit(clock, TRIES, MINUTE_MS)
    this.#allTries = new RateLimit(clock, TRIES_IN_ALL, MINUTE_MS)
    this.#noted = new RateLimit(clock, 1, MINUTE_MS)
  }

  /** Undefined: a stranger. A response: what the app answers instead. */
  async userOf(request: Request): Promise<User | Response | undefined> {
    const { authorize } = this.#parts.options
    if (authorize !== undefined) {
      const found = await authorize(request)
      if (found instanceof Response) return found
      return found === null || found === undefined ? undefined : this.#limited(checkUser(found))
    }
    const session = this.sessions.read(request.headers.get('cookie'), this.#parts.world.clock.now())
    return session === undefined ? undefined : this.#limited(session)
  }

  /** A cookie that is written again, when it is older than ten minutes. */
  renewal(request: Request, place: Place): string | undefined {
    if (this.#parts.options.authorize !== undefined) return undefined
    const now = this.#parts.world.clock.now()
    const session = this.sessions.read(request.headers.get('cookie'), now)
    if (session === undefined || session.endsAt - now > SESSION_MS - RENEW_MS) return undefined
    return this.#cookie({ ...session, endsAt: now + SESSION_MS }, place)
  }

  /** Signs a user in by the token: 204 with a new session, 401, or 429. */
  async signIn(given: string, place: Place): Promise<Response> {
    const address = place.address ?? ''
    const waitMs = Math.max(this.#tries.use(address), this.#allTries.use(''))
    if (waitMs > 0) {
      await this.#note('sign-in refused: too many tries', place)
      return empty(429, { 'retry-after': String(Math.ceil(waitMs / SECOND_MS)) })
    }
    if (this.#token === undefined || !isSameSecret(given, this.#token)) {
      await this.#note('sign-in refused: wrong token', place)
      return empty(401)
    }
    const { clock, ids } = this.#parts.world
    const id = ids.jobId(clock.now())
    const session: Session = { id, role: 'admin', actor: `token ${id.slice(-6)}`, endsAt: clock.now() + SESSION_MS }
    await this.#audit(session.actor, session.role, 'sign in', place)
    return empty(204, { 'set-cookie': this.#cookie(session, place) })
  }

  signOut(place: Place): Response {
    return empty(204, {
      'set-cookie': cookieHeader(this.sessions.cookie, '', { path: place.mount, isSecure: place.isSecure, maxAgeS: 0 }),
    })
  }

  #cookie(session: Session, { mount, isSecure }: Place): string {
    return cookieHeader(this.sessions.cookie, this.sessions.write(session), {
      path: mount,
      isSecure,
      maxAgeS: SESSION_MS / SECOND_MS,
    })
  }

  #limited({ role, actor, id }: User): User {
    return { role: this.#parts.options.readOnly === true ? 'viewer' : role, actor, id }
  }

  /** A refusal is noted at most once a minute, so that guesses do not fill the trail. */
  async #note(verb: string, place: Place): Promise<void> {
    if (this.#noted.use('') === 0) await this.#audit('a stranger', 'none', verb, place)
  }

  /** A trail that cannot be written must not keep users out. */
  async #audit(actor: string, role: string, verb: string, { address }: Place): Promise<void> {
    const { internals, log } = this.#parts
    const target = `address ${address === undefined ? 'unknown' : digest(address).slice(0, 8)}`
    await internals.store.observing
      .addAudit({
        actor,
        role,
        verb,
        reason: null,
        keepMs: internals.auditKeepMs(),
        target,
        count: 0,
        before: null,
        after: null,
      })
      .catch((error: unknown) => log.write('warn', { err: error }, 'dashboard: could not write the audit trail'))
  }
}

/** What the app's function gives is checked: a role that is no role must not pass as one. */
function checkUser(found: DashboardUser): User {
  const { role, actor } = found
  if (!ROLES.includes(role))
    throw new TypeError(`authorize() must give role viewer, operator or admin, got ${String(role)}`)
  if (typeof actor !== 'string' || actor === '' || actor.length > ACTOR_MAX)
    throw new TypeError(`authorize() must give an actor of 1 to ${ACTOR_MAX} characters`)
  return { role, actor }
}
