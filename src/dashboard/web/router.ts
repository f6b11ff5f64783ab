import { signal } from '@preact/signals'
import type { ReadonlySignal } from '@preact/signals'
import { parseRoute, printRoute } from './route.js'
import type { Route } from './route.js'

/** The route of the tab, as it is now, and how it changes. */
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
