/** The body of a request: a text of at most 1 MiB. */
export const BODY_MAX = 1_048_576
/** How deep lists and objects may be nested. */
const DEPTH_MAX = 32

export type Body = { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly status: 400 | 413 }

/** Reads JSON. A body that is too long is refused before it is all read. */
export async function readBody(request: Request): Promise<Body> {
  if (Number(request.headers.get('content-length') ?? 0) > BODY_MAX) return { ok: false, status: 413 }
  const text = await readText(request.body)
  if (text === undefined) return { ok: false, status: 413 }
  if (depthOf(text) > DEPTH_MAX) return { ok: false, status: 400 }
  try {
    return { ok: true, value: JSON.parse(text) as unknown }
  } catch {
    // What is wrong with it is of no use to a page that always sends JSON.
    return { ok: false, status: 400 }
  }
}

async function readText(body: Request['body']): Promise<string | undefined> {
  if (body === null) return ''
  const reader = body.getReader() as ReadableStreamDefaultReader<Uint8Array>
  const chunks: Uint8Array[] = []
  let bytes = 0
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return Buffer.concat(chunks).toString('utf8')
    bytes += value.byteLength
    if (bytes > BODY_MAX) {
      await reader.cancel().catch(() => undefined)
      return undefined
    }
    chunks.push(value)
  }
}

/** The greatest nesting, without parsing: brackets outside of texts. */
function depthOf(text: string): number {
  let [depth, deepest, isText] = [0, 0, false]
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at]
    if (isText) {
      if (character === '\\') at += 1
      else if (character === '"') isText = false
    } else if (character === '"') isText = true
    else if (character === '{' || character === '[') deepest = Math.max(deepest, (depth += 1))
    else if (character === '}' || character === ']') depth -= 1
  }
  return deepest
}
