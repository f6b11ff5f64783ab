/** The headers of every response, also of refusals. */
export const SECURE: Readonly<Record<string, string>> = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
  'x-frame-options': 'DENY',
  'x-content-type-options': 'nosniff',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'permissions-policy':
    'accelerometer=(), camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()',
}

/** A response with our headers; nothing is cached unless it says so. */
export function secured(given: Response): Response {
  // A response of the app may be one whose headers cannot be changed, such as a redirect.
  const response = new Response(given.body, given)
  for (const [name, value] of Object.entries(SECURE)) response.headers.set(name, value)
  if (!response.headers.has('cache-control')) response.headers.set('cache-control', 'no-store')
  return response
}

export function empty(status: number, headers: Record<string, string> = {}): Response {
  return new Response(null, { status, headers })
}

export function json(body: unknown, status = 200, headers: Record<string, string> = {}): Response {
  const type = { 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-store', ...headers }
  return new Response(JSON.stringify(body), { status, headers: type })
}
