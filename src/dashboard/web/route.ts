export type Page =
  | 'overview'
  | 'jobs'
  | 'job'
  | 'failures'
  | 'queues'
  | 'recurring'
  | 'groups'
  | 'sequences'
  | 'workflows'
  | 'workers'
  | 'upcoming'
  | 'health'
  | 'audit'
  | 'enqueue'
  | 'unknown'

/** Where the tab is: all of it is in the fragment, so search texts reach no access log. */
export interface Route {
  readonly page: Page
  /** The id or name after the page: `#/queues/mail`. */
  readonly id: string | undefined
  readonly query: Readonly<Record<string, string>>
}

const PAGES: readonly string[] = [
  'jobs',
  'job',
  'failures',
  'queues',
  'recurring',
  'groups',
  'sequences',
  'workflows',
  'workers',
  'upcoming',
  'health',
  'audit',
  'enqueue',
]

/** Reads `#/queues/a%2Fb?since=1h`. Of a page that does not exist, the id is what was asked for. */
export function parseRoute(fragment: string): Route {
  const text = fragment.replace(/^#?\/?/, '')
  const [path, search = ''] = splitOnce(text, '?')
  const [page, id] = splitOnce(path, '/')
  if (page !== '' && !PAGES.includes(page)) return { page: 'unknown', id: decode(path), query: {} }
  const known = page === '' ? 'overview' : (page as Page)
  return { page: known, id: id === undefined || id === '' ? undefined : decode(id), query: parseQuery(search) }
}

/** The fragment of a route, with every name encoded. */
export function printRoute({ page, id, query }: Partial<Route> & { page: Page }): string {
  const path = page === 'overview' ? '' : page
  const name = id === undefined ? '' : `/${encodeURIComponent(id)}`
  const entries = Object.entries(query ?? {}).filter(([, value]) => value !== '')
  const search = entries.map(([key, value]) => `${encodeURIComponent(key)}=${encodeURIComponent(value)}`).join('&')
  return `#/${path}${name}${search === '' ? '' : `?${search}`}`
}

/** The jobs that a search text finds. */
export function jobsHref(q: string): string {
  return printRoute({ page: 'jobs', query: { q } })
}

export function jobHref(id: string): string {
  return printRoute({ page: 'job', id })
}

/** A value of a search term; quoted when it would end the term. */
export function term(qualifier: string, value: string): string {
  const isBare = /^[^\s,"\\*<>-][^\s,"\\*]*$/.test(value)
  return `${qualifier}:${isBare ? value : `"${value.replace(/["\\]/g, '\\$&')}"`}`
}

function parseQuery(search: string): Record<string, string> {
  const pairs = search.split('&').filter((pair) => pair !== '')
  return Object.fromEntries(
    pairs.map((pair) => {
      const [key, value = ''] = splitOnce(pair, '=')
      return [decode(key), decode(value)]
    }),
  )
}

function splitOnce(text: string, separator: string): [string, string | undefined] {
  const at = text.indexOf(separator)
  return at < 0 ? [text, undefined] : [text.slice(0, at), text.slice(at + 1)]
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text // A fragment typed by hand may hold a lone percent sign: it is shown as it is.
  }
}
