import { show } from '../codec/show.js'
import { InvalidOptionsError } from '../errors.js'

export interface TextHandler {
  readonly fetch: (request: Request) => Promise<Response>
}

export interface TextAnswer {
  readonly text: string
  readonly status?: number | undefined
  /** Parameters of the content type: `version=0.0.4`. */
  readonly version?: string | undefined
}

/** A Fetch handler about a mill that answers GET and HEAD with text, which is never cached. `name` is what the caller called. */
export function textHandler(name: string, mill: unknown, answer: () => Promise<TextAnswer>): TextHandler {
  if (typeof (mill as { health?: unknown } | undefined)?.health !== 'function') {
    const isPromise = typeof (mill as { then?: unknown } | undefined)?.then === 'function'
    const message = `must be a mill, got ${show(mill)}${isPromise ? '; await millrace() first' : ''}`
    throw new InvalidOptionsError(name, [{ path: 'mill', message }])
  }
  return {
    fetch: async ({ method }) => {
      if (method !== 'GET' && method !== 'HEAD')
        return new Response(null, { status: 405, headers: { allow: 'GET, HEAD' } })
      const { text, status = 200, version } = await answer()
      const type = ['text/plain', ...(version === undefined ? [] : [version]), 'charset=utf-8'].join('; ')
      const headers = { 'cache-control': 'no-store', 'content-type': type }
      return new Response(method === 'HEAD' ? null : text, { status, headers })
    },
  }
}
