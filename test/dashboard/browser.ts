import type { SessionAnswer } from '../../src/dashboard/protocol.js'
import type { Dashboard, RequestEnvironment } from '../../src/dashboard/index.js'

export const TOKEN = 'a-token-of-more-than-32-characters'
export const HOST = 'localhost:8080'

export type Send = (request: Request) => Promise<Response>

/** Calls the handler of a dashboard without a socket. */
export function inApp({ fetch }: Dashboard, environment: RequestEnvironment = { address: '10.0.0.1' }): Send {
  return (request) => fetch(request, environment)
}

/** A browser with one tab: it keeps the cookie, and sends what our page sends. */
export function browser(
  send: Send,
  {
    base = `http://${HOST}/`,
    headers = {},
  }: { readonly base?: string; readonly headers?: Record<string, string> } = {},
) {
  let cookie: string | undefined
  let csrf = ''
  const call = async (path: string, init: RequestInit = {}): Promise<Response> => {
    const own = {
      host: new URL(base).host,
      'sec-fetch-site': 'same-origin',
      'x-millrace': '1',
      'x-millrace-csrf': csrf,
      ...(cookie === undefined ? {} : { cookie }),
      ...headers,
    }
    const response = await send(
      new Request(new URL(path, base), { ...init, headers: { ...own, ...(init.headers as Record<string, string>) } }),
    )
    const [set] = response.headers.getSetCookie()
    if (set !== undefined) cookie = set.split(';')[0]
    return response
  }
  const post = (path: string, body: unknown, more: Record<string, string> = {}): Promise<Response> =>
    call(path, { method: 'POST', body: JSON.stringify(body), headers: { 'content-type': 'application/json', ...more } })
  return {
    call,
    get: (path: string) => call(path),
    post,
    login: (token: string) => post('api/login', { token }),
    cookie: () => cookie,
    session: async (): Promise<SessionAnswer> => {
      const answer = (await (await call('api/session')).json()) as SessionAnswer
      csrf = answer.csrf
      return answer
    },
  }
}
