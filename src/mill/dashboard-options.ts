import { show } from '../codec/show.js'
import { isOptionsObject } from '../codec/options-object.js'
import { formatPath } from '../codec/path.js'
import { checkFields } from '../job/definition/check-fields.js'
import type { Check, Fields } from '../job/definition/check-fields.js'
import { isBoolean, isCount, isFunction, isName } from '../job/definition/check-values.js'
import { isRedact } from '../job/secrets/redact.js'
import type { RedactRule } from '../job/secrets/redact.js'
import type { Problem } from '../errors.js'

/** What a user of the dashboard may do: look, look and act, everything. */
export type DashboardRole = 'viewer' | 'operator' | 'admin'

/** Who uses the dashboard. */
export interface DashboardUser {
  readonly role: DashboardRole
  /** The name in the audit trail: 1 to 200 characters. */
  readonly actor: string
}

/** The colours of one theme: names of tokens, six hexadecimal digits. */
export interface DashboardColours {
  readonly [token: string]: string
}

/** Options of the dashboard, wherever it is served. */
export interface DashboardOptions {
  /**
   * Says who sends a request: a user, null for a stranger, or a `Response` such as a redirect to the sign-in of your app. There is no default:
   * a dashboard that is mounted in a server needs this or `token`.
   */
  readonly authorize?:
    | ((request: Request) => DashboardUser | null | Response | Promise<DashboardUser | null | Response>)
    | undefined
  /** A text of 32 characters or more that signs a user in as admin. Default: `listen` on loopback makes one and prints it. */
  readonly token?: string | undefined
  /** The name beside the wheel. Default 'Millrace'. */
  readonly title?: string | undefined
  /** The badge, such as 'production'. Default: none. */
  readonly environment?: string | undefined
  /** Every user is a viewer. Default false. */
  readonly readOnly?: boolean | undefined
  /** The names by which browsers reach the dashboard, such as 'jobs.example.com', beside 127.0.0.1, [::1] and localhost. Default: none. */
  readonly hosts?: readonly string[] | undefined
  /** How many proxies in front append to X-Forwarded-For. It is used for rate limits only. Default 0: the header is ignored. */
  readonly trustProxy?: number | undefined
  /** Signs sessions, in 32 characters or more: the same on every process behind a load balancer. Default: random at each start. */
  readonly secret?: string | undefined
  /** Rules in addition to those of the mill: what is hidden on the pages. Default: none. */
  readonly redact?: readonly RedactRule[] | undefined
  /** Where a Fetch host mounts it, such as '/jobs'. `toNodeHandler` finds it by itself. Default: at the root. */
  readonly basePath?: string | undefined
  /** Links on the page of a job: `{ trace: 'https://traces.example.com/{trace}' }`. Default: none. */
  readonly links?: Readonly<Record<string, string>> | undefined
  /** Colours by the names of tokens: `{ light: { water: '#1C7486' }, dark: {} }`. Default: those of the package. */
  readonly theme?:
    | { readonly light?: DashboardColours | undefined; readonly dark?: DashboardColours | undefined }
    | undefined
}

/** Options of a dashboard with a server of its own. */
export interface DashboardListenOptions extends DashboardOptions {
  /** 0: any free one. Default 8080. */
  readonly port?: number | undefined
  /** The address to bind. One that is not loopback needs `authorize` or `token`. Default '127.0.0.1'. */
  readonly host?: string | undefined
}

/** A dashboard that listens. */
export interface ServedDashboard {
  /** Where it is, with the token in the fragment where there is one: open it in a browser. */
  readonly url: string
  readonly port: number
  /** Ends streams and connections. */
  close(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

export const DASHBOARD_PORT = 8_080
const PORT_MAX = 65_535
export const TOKEN_MIN = 32
const HOPS_MAX = 10
const HOST_NAME = /^(\[[0-9a-f:.]+\]|[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?)(:\d{1,5})?$/i
const BASE_PATH = /^(\/[\w.~-]+)+$/
const COLOUR = /^#[0-9a-f]{6}$/i
const TOKEN_NAME = /^[a-z][a-z0-9-]{0,40}$/

const isSecret: Check = (value) =>
  typeof value === 'string' && value.length >= TOKEN_MIN
    ? undefined
    : `must be a text of ${TOKEN_MIN} characters or more, got ${typeof value === 'string' ? `one of ${value.length}` : show(value)}`

const isHosts: Check = (value) => {
  if (!Array.isArray(value)) return `must be a list of host names, got ${show(value)}`
  return Array.from<unknown>(value).flatMap((host, i) =>
    typeof host === 'string' && HOST_NAME.test(host)
      ? []
      : [
          {
            path: `[${i}]`,
            message: `must be a host name such as "jobs.example.com", without a scheme or a path, got ${show(host)}`,
          },
        ],
  )
}

const isBasePath: Check = (value) =>
  value === '' || (typeof value === 'string' && BASE_PATH.test(value))
    ? undefined
    : `must be a path such as "/jobs", without a slash at its end, got ${show(value)}`

const isLinks: Check = (value) => {
  if (!isOptionsObject(value)) return `must be an object of URLs by name, got ${show(value)}`
  return Object.entries(value).flatMap(([name, url]) =>
    typeof url === 'string' && /^https?:\/\/[^/{}]+(\/|$)/.test(url)
      ? []
      : [
          {
            path: formatPath([name]),
            message: `must be an http or https URL whose host has no placeholder, got ${show(url)}`,
          },
        ],
  )
}

const isColours: Check = (value) => {
  if (!isOptionsObject(value)) return `must be an object of colours by token, got ${show(value)}`
  return Object.entries(value).flatMap(([name, colour]): readonly Problem[] => {
    const path = formatPath([name])
    if (!TOKEN_NAME.test(name)) return [{ path, message: 'is no name of a token: small letters, digits and hyphens' }]
    if (typeof colour === 'string' && COLOUR.test(colour)) return []
    return [{ path, message: `must be a colour of six digits such as "#1C7486", got ${show(colour)}` }]
  })
}

export const DASHBOARD: Fields = {
  fields: {
    authorize: isFunction,
    token: isSecret,
    title: isName,
    environment: isName,
    readOnly: isBoolean,
    hosts: isHosts,
    trustProxy: isCount(0, HOPS_MAX),
    secret: isSecret,
    redact: isRedact,
    basePath: isBasePath,
    links: isLinks,
    theme: (value) => checkFields(value, '', { fields: { light: isColours, dark: isColours } }),
  },
  foreignNames: { auth: 'use authorize', path: 'use basePath', readonly: 'use readOnly' },
}

export const DASHBOARD_LISTEN: Fields = {
  ...DASHBOARD,
  fields: { ...DASHBOARD.fields, port: isCount(0, PORT_MAX), host: isName },
  meant: (value) => (typeof value === 'number' ? `{ port: ${show(value)} }` : undefined),
}
