import type { ErrorBody, SessionAnswer } from '../../protocol.js'

/** A refusal of the server, or a call that did not reach it. */
export class ApiError extends Error {
  readonly status: number
  readonly body: ErrorBody['error'] | undefined

  constructor(status: number, body: ErrorBody['error'] | undefined) {
    super(body?.text ?? (status === 0 ? 'The server did not answer.' : `The server answered ${status}.`))
    this.status = status
    this.body = body
  }

  /** When to try again, if the server has said so. */
  get retryMs(): number | undefined {
    return this.body?.retryMs
  }
}

/** The calls of the server. Every one says that it comes from this page, and a POST also proves its session. */
export interface Api {
  session(): Promise<SessionAnswer>
  post<Answer>(path: string, body: object, signal?: AbortSignal): Promise<Answer>
  get<Answer>(path: string): Promise<Answer>
  /** The body of a stream, as bytes. */
  stream(body: object, signal: AbortSignal): Promise<ReadableStream<Uint8Array>>
}

/** `base` is the mount, with a slash at its end. */
export function connectApi(base: URL): Api {
  let csrf = ''
  const send = async (path: string, init: RequestInit): Promise<Response> => {
    const response = await fetch(new URL(`api/${path}`, base), { cache: 'no-store', ...init }).catch(abortOrLost)
    if (!response.ok) throw await refusal(response)
    return response
  }
  const posted = (path: string, body: object, signal?: AbortSignal): Promise<Response> =>
    send(path, {
      method: 'POST',
      headers: { 'X-Millrace': '1', 'Content-Type': 'application/json', 'X-Millrace-Csrf': csrf },
      body: JSON.stringify(body),
      ...(signal === undefined ? {} : { signal }),
    })
  const get = async <Answer>(path: string): Promise<Answer> =>
    (await (await send(path, { headers: { 'X-Millrace': '1' } })).json()) as Answer
  return {
    get,
    session: async () => {
      const session = await get<SessionAnswer>('session')
      csrf = session.csrf
      return session
    },
    post: async <Answer>(path: string, body: object, signal?: AbortSignal): Promise<Answer> => {
      const response = await posted(path, body, signal)
      return (response.status === 204 ? undefined : await response.json()) as Answer
    },
    stream: async (body, signal) => {
      const response = await posted('stream', body, signal)
      if (response.body === null) throw new ApiError(0, undefined)
      return response.body
    },
  }
}

function abortOrLost(error: unknown): never {
  if (error instanceof Error && error.name === 'AbortError') throw error
  throw new ApiError(0, undefined)
}

async function refusal(response: Response): Promise<ApiError> {
  const body = (await response.json().catch(() => undefined)) as ErrorBody | undefined
  return new ApiError(response.status, body?.error)
}
