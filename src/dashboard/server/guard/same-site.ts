/*
 * Cross-site requests. A browser says with every request where it comes from; a page of another site can neither change that nor send
 * our header without a preflight, which is refused. Simple requests (a form, an image) have neither the header nor a JSON body.
 */

/** Why a call of the API is refused; undefined when it comes from a page of ours. */
export function crossSiteProblem(request: Request, host: string): string | undefined {
  const { headers, method } = request
  if (headers.get('x-millrace') !== '1') return 'the header X-Millrace: 1 is missing'
  const site = headers.get('sec-fetch-site')
  if (site !== null) {
    if (site !== 'same-origin') return 'it comes from another site'
  } else if (!isOwnOrigin(headers.get('origin'), host, method)) return 'its origin is not this host'
  if (method !== 'POST') return undefined
  const type = headers.get('content-type')?.split(';')[0]?.trim().toLowerCase()
  return type === 'application/json' ? undefined : 'its content type is not application/json'
}

/** Browsers without Sec-Fetch-Site send the origin with every POST. */
function isOwnOrigin(origin: string | null, host: string, method: string): boolean {
  if (origin === null) return method === 'GET'
  try {
    const { protocol, host: from } = new URL(origin)
    return (protocol === 'https:' || protocol === 'http:') && from === host.toLowerCase()
  } catch {
    // "null", and what is no URL: an opaque origin is another site.
    return false
  }
}
