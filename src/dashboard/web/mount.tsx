import { effect, signal } from '@preact/signals'
import { render } from 'preact'
import type { FunctionComponent } from 'preact'
import { AppContext } from './app-context.js'
import type { App } from './app.js'
import type { HealthFields, VerdictKind } from '../protocol.js'
import { Frame } from './frame/frame.js'
import { listenToKeys } from './frame/listen-to-keys.js'
import { tabTitle } from './frame/model.js'
import type { Page } from './route.js'
import { storeSettings } from './settings.js'
import type { Shelf } from './settings.js'
import { VIEWS } from './views/registry.js'
import { showControlCharacters } from './visible-text.js'

const healthyIcon = new URL('./icons/healthy.svg', import.meta.url).href
const staleIcon = new URL('./icons/stale.svg', import.meta.url).href
const ICONS: Readonly<Record<VerdictKind, string>> = {
  good: healthyIcon,
  warn: new URL('./icons/warn.svg', import.meta.url).href,
  bad: new URL('./icons/bad.svg', import.meta.url).href,
  unknown: healthyIcon,
}

/** Draws the app into the page, and keeps what is outside of it in step: topics, title, favicon, theme, keys. */
export function mount(app: App, shelf: Shelf | undefined): void {
  const loaded = signal<{ readonly page: Page; readonly component: FunctionComponent } | undefined>(undefined)
  effect(() => {
    const { page } = app.router.route.value
    if (loaded.peek()?.page === page) return
    void VIEWS[page].load().then((component) => {
      if (app.router.route.peek().page === page) loaded.value = { page, component }
    })
  })
  effect(() => {
    const route = app.router.route.value
    app.live.want([...new Set(['health', ...VIEWS[route.page].topics(route)])])
    app.charts.cursor.value = undefined
  })
  effect(() => dress(app, shelf))
  const overlays = signal<FunctionComponent | undefined>(undefined)
  effect(() => {
    if (app.overlay.value === 'none' || overlays.peek() !== undefined) return
    void import('./frame/overlays.js').then(({ Overlays }) => void (overlays.value = Overlays))
  })
  listenToKeys(app)
  showControlCharacters()
  const Current = () => {
    const Component = loaded.value?.component
    return Component === undefined ? null : <Component />
  }
  const Overlay = () => {
    const Component = overlays.value
    return Component === undefined ? null : <Component />
  }
  render(
    <AppContext.Provider value={app}>
      <Frame>
        <Current />
      </Frame>
      <Overlay />
    </AppContext.Provider>,
    document.querySelector('#app') as HTMLElement,
  )
}

/** Theme, title and favicon. */
function dress(app: App, shelf: Shelf | undefined): void {
  const { settings, router, live, session } = app
  const { classList } = document.documentElement
  classList.toggle('light', settings.theme.value === 'light')
  classList.toggle('dark', settings.theme.value === 'dark')
  classList.toggle('compact', settings.compact.value)
  storeSettings(settings, shelf)
  const health = live.held('health').value.snapshot?.fields as HealthFields | undefined
  document.title = tabTitle(router.route.value.page, health, session.title)
  const isStale = live.status.value.kind === 'lost' || live.status.value.kind === 'signed-out'
  const icon = isStale ? staleIcon : ICONS[health?.verdict.kind ?? 'unknown']
  document.querySelector('link[rel=icon]')?.setAttribute('href', icon)
}
