import { signal } from '@preact/signals'
import type { ReadonlySignal } from '@preact/signals'

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

/** Reads `#/queues/a%2Fb?since=1h`. A page that does not exist is the overview. */
export function parseRoute(fragment: string): Route {
  const text = fragment.replace(/^#?\/?/, '')
  const [path, search = ''] = splitOnce(text, '?')
  const [page, id] = splitOnce(path, '/')
  const known = PAGES.includes(page) ? (page as Page) : 'overview'
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

export interface Router {
  readonly route: ReadonlySignal<Route>
  go(href: string): void
  /** Changes a part of the query; an undefined value removes it. A filter that is typed replaces the entry in the history. */
  set(query: Readonly<Record<string, string | undefined>>, replace?: boolean): void
}

export function startRouter(window: Window): Router {
  const route = signal(parseRoute(window.location.hash))
  const read = (): void => void (route.value = parseRoute(window.location.hash))
  window.addEventListener('hashchange', read)
  return {
    route,
    go: (href) => void (window.location.hash = href),
    set: (query, replace = false) => {
      const merged = { ...route.peek().query, ...query }
      const kept = Object.entries(merged).filter((entry): entry is [string, string] => entry[1] !== undefined)
      const href = printRoute({ ...route.peek(), query: Object.fromEntries(kept) })
      if (!replace) return void (window.location.hash = href)
      window.history.replaceState(null, '', href)
      read()
    },
  }
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
