import { keyedDigest, isSameSecret } from '../../../world/cipher.js'
import { digest } from '../../../world/digest.js'
import type { Role } from '../../protocol/verbs.js'

/*
 * A session is a signed cookie: nothing is kept on the server, so that several processes with the same secret share it. The signature
 * covers who, the role and the end of the session.
 */

export interface Session {
  /** New at each sign-in. */
  readonly id: string
  readonly role: Role
  readonly actor: string
  readonly endsAt: number
}

/** A session that is not used ends after this. */
export const SESSION_MS = 43_200_000
/** A cookie is written again when it is older than this. */
export const RENEW_MS = 600_000
/** A text that is no cookie of ours is not even split. */
const COOKIE_MAX = 2_000

export class Sessions {
  readonly #key: Uint8Array
  /** Cookies are shared by all ports of a host: the name differs by store. */
  readonly cookie: string

  constructor(secret: string, storeName: string) {
    this.#key = new TextEncoder().encode(secret)
    this.cookie = `millrace_${digest(storeName).slice(0, 8)}`
  }

  write(session: Session): string {
    const text = Buffer.from(JSON.stringify(session)).toString('base64url')
    return `${text}.${this.#sign(`session ${text}`)}`
  }

  /** The session of a Cookie header; undefined when there is none, it was changed, or it has ended. */
  read(header: string | null, now: number): Session | undefined {
    const found = (header ?? '')
      .split(';')
      .map((each) => each.trim())
      .find((each) => each.startsWith(`${this.cookie}=`))
    const [text, signature] = found?.slice(this.cookie.length + 1).split('.') ?? []
    if (text === undefined || signature === undefined || text.length > COOKIE_MAX) return undefined
    if (!isSameSecret(signature, this.#sign(`session ${text}`))) return undefined
    const session = JSON.parse(Buffer.from(text, 'base64url').toString()) as Session
    return session.endsAt > now ? session : undefined
  }

  /** The token that acts must send: it is bound to the session, or to the actor where the app signs users in. */
  csrf(of: { readonly id?: string | undefined; readonly actor: string }): string {
    return this.#sign(`csrf ${of.id ?? ''} ${of.actor}`)
  }

  isCsrf(given: string | null, of: { readonly id?: string | undefined; readonly actor: string }): boolean {
    return given !== null && isSameSecret(given, this.csrf(of))
  }

  #sign(text: string): string {
    return keyedDigest(this.#key, text).toString('base64url')
  }
}

/** The Set-Cookie header. `path` is the mount. */
export function cookieHeader(name: string, value: string, { path, isSecure, maxAgeS }: CookiePlace): string {
  const parts = [
    `${name}=${value}`,
    `Path=${path === '' ? '/' : path}`,
    `Max-Age=${maxAgeS}`,
    'HttpOnly',
    'SameSite=Strict',
  ]
  return [...parts, ...(isSecure ? ['Secure'] : [])].join('; ')
}

interface CookiePlace {
  readonly path: string
  readonly isSecure: boolean
  readonly maxAgeS: number
}
