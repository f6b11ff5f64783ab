import { computed, signal } from '@preact/signals'
import type { ReadonlySignal, Signal } from '@preact/signals'
import type { SessionAnswer } from '../protocol.js'
import type { Actions } from './act.js'
import type { Clock } from './clock.js'
import type { Api } from './connection/api.js'
import type { Live } from './connection/connection.js'
import type { Zone } from './format/time.js'
import type { Router } from './router.js'
import type { Settings } from './settings.js'

/** Which overlay is open: none, or one of the frame's own. */
export type Overlay = 'none' | 'help' | 'jump'

/** All that a part of the page may read or ask for. */
export interface App {
  readonly api: Api
  readonly session: SessionAnswer
  readonly clock: Clock
  readonly live: Live
  readonly router: Router
  readonly actions: Actions
  readonly settings: Settings
  readonly zone: ReadonlySignal<Zone>
  readonly overlay: Signal<Overlay>
  /** How many pages were shown in this tab: after the first, the focus follows to each new one. */
  readonly visits: Signal<number>
  /** The bucket under the cursor, shared by all charts of a page. */
  readonly charts: { readonly cursor: Signal<number | undefined> }
}

/** The app of these pieces, with what follows from them. */
export function makeApp(pieces: Omit<App, 'zone' | 'overlay' | 'charts' | 'visits'>): App {
  return {
    ...pieces,
    zone: computed(() => (pieces.settings.utc.value ? 'UTC' : undefined)),
    overlay: signal<Overlay>('none'),
    visits: signal(0),
    charts: { cursor: signal<number | undefined>(undefined) },
  }
}
