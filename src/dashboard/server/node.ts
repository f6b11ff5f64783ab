import type { IncomingMessage, ServerResponse } from 'node:http'
import type { RequestEnvironment } from './app.js'

/** A handler of Fetch requests. */
export interface FetchHandler {
  readonly fetch: (request: Request, environment?: RequestEnvironment) => Promise<Response>
}

/** What frameworks add to a request. */
interface MountedRequest extends IncomingMessage {
  /** Express: the URL before it took the mount off. */
  readonly originalUrl?: unknown
  /** A body that was parsed before. */
  readonly body?: unknown
}

/** A handler for `node:http`, Express, Connect and Fastify (with `reply.hijack()`). */
export function toNodeHandler(
  handler: FetchHandler,
): (request: IncomingMessage, response: ServerResponse, next?: (error?: unknown) => void) => Promise<void> {
  return async (request, response) => {
    const abort = new AbortController()
    response.once('close', () => abort.abort())
    const answer = await handler.fetch(requestOf(request, abort.signal), {
      address: request.socket.remoteAddress,
      basePath: mountOf(request),
    })
    await send(answer, response)
  }
}

/** The path that the framework has taken off: `originalUrl` less `url`. */
function mountOf({ originalUrl, url = '' }: MountedRequest): string | undefined {
  if (typeof originalUrl !== 'string') return undefined
  const [whole, rest] = [pathIn(originalUrl), pathIn(url)]
  // At the mount itself Express gives "/" as the rest.
  const tail = rest === '/' && !whole.endsWith('/') ? '' : rest
  return whole.endsWith(tail) ? whole.slice(0, whole.length - tail.length) : undefined
}

function pathIn(url: string): string {
  return url.split('?')[0] as string
}

function requestOf(request: MountedRequest, signal: AbortSignal): Request {
  const { method = 'GET', headers, url = '/' } = request
  const scheme = 'encrypted' in request.socket && request.socket.encrypted === true ? 'https' : 'http'
  const given = new Headers()
  for (const [name, value] of Object.entries(headers))
    if (value !== undefined && !name.startsWith(':')) given.set(name, Array.isArray(value) ? value.join(', ') : value)
  const host = headers.host ?? (headers as Record<string, string | undefined>)[':authority'] ?? ''
  if (!given.has('host')) given.set('host', host)
  const hasBody = method !== 'GET' && method !== 'HEAD'
  const body = hasBody ? { body: bodyOf(request), duplex: 'half' as const } : {}
  return new Request(new URL(safePath(url), `${scheme}://localhost`), {
    method,
    headers: given,
    signal,
    ...body,
  } as RequestInit)
}

/** A path that begins with two slashes would name a host. */
function safePath(url: string): string {
  return url.startsWith('/') ? url.replace(/^\/+/, '/') : '/'
}

/** A body that was read before is written again: as it was, or as JSON. */
function bodyOf(request: MountedRequest): ReadableStream<Uint8Array> | Uint8Array | string {
  const { body } = request
  if (body === undefined || body === null) return readableOf(request)
  if (typeof body === 'string') return body
  return body instanceof Uint8Array ? new Uint8Array(body) : JSON.stringify(body)
}

/** Bytes of a body that are read ahead. */
const BODY_AHEAD = 65_536

/** The body as it comes, so that one that is too long is not read to its end. */
function readableOf(request: IncomingMessage): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>(
    {
      start: (controller) => {
        request.on('data', (chunk: Buffer) => {
          controller.enqueue(new Uint8Array(chunk))
          if ((controller.desiredSize ?? 0) <= 0) request.pause()
        })
        request.once('end', () => controller.close())
        request.once('error', (error) => controller.error(error))
      },
      pull: () => void request.resume(),
      cancel: () => void request.removeAllListeners('data').resume(),
    },
    { highWaterMark: BODY_AHEAD, size: (bytes?: Uint8Array) => bytes?.byteLength ?? 0 },
  )
}

async function send(answer: Response, response: ServerResponse): Promise<void> {
  const { status, headers, body } = answer
  const written: Record<string, string | string[]> = Object.fromEntries(headers)
  const cookies = headers.getSetCookie()
  if (cookies.length > 0) written['set-cookie'] = cookies
  response.writeHead(status, written)
  if (body === null) return void response.end()
  // A page that waits for its first event must see the headers.
  response.flushHeaders()
  const reader = body.getReader() as ReadableStreamDefaultReader<Uint8Array>
  const isClosed = new Promise<void>((resolve) => response.once('close', resolve))
  response.once('close', () => void reader.cancel().catch(() => undefined))
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done || response.destroyed) break
      const isTaken = response.write(value)
      // Compression middleware keeps what it is given until it is flushed.
      ;(response as { flush?: () => void }).flush?.()
      if (!isTaken) await Promise.race([new Promise<void>((resolve) => response.once('drain', resolve)), isClosed])
    }
  } catch {
    // The stream was given up because its reader was too slow: the connection ends with it.
    response.destroy()
    return
  }
  response.end()
}
