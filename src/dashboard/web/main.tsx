import './tokens.css'
import './theme.css'
import { Actions } from './act.js'
import { makeApp } from './app.js'
import { startClock } from './clock.js'
import { ApiError, connectApi } from './connection/api.js'
import { Connection } from './connection/connection.js'
import { shareTabs } from './connection/leader.js'
import { mount } from './mount.js'
import { startRouter } from './router.js'
import { loadSettings } from './settings.js'
import type { Shelf } from './settings.js'

/** This file is in `<mount>/assets/`: the only place that knows where the dashboard is mounted. */
const here = import.meta.url

async function start(): Promise<void> {
  // A printed link that is opened while signed in: its token must not stay in the history.
  if (location.hash.includes('token=')) history.replaceState(null, '', '#/')
  const base = new URL('..', here)
  const api = connectApi(base)
  const session = await api.session()
  const clock = startClock()
  clock.follow(session.now)
  const live = new Connection({
    api,
    // Two dashboards of one host have streams of their own, and so do two users of one browser.
    tabs: shareTabs(`millrace ${base.pathname} ${session.actor} ${session.role}`),
    follow: (serverNow) => clock.follow(serverNow),
    document,
    chance: Math.random,
  })
  const actions = new Actions(api, () => session.role, live.status)
  const settings = loadSettings(shelf())
  mount(makeApp({ api, session, clock, live, router: startRouter(window), actions, settings }), shelf())
}

function shelf(): Shelf | undefined {
  try {
    return window.localStorage
  } catch {
    return undefined // The browser forbids storage to this page.
  }
}

start().catch((error: unknown) => {
  if (error instanceof ApiError && error.status === 401) return location.reload()
  const text = error instanceof Error ? error.message : String(error)
  document.body.append(`The dashboard could not start: ${text} Reload the page to try again.`)
})
