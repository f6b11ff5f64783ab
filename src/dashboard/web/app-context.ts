import { createContext } from 'preact'
import { useContext } from 'preact/hooks'
import type { App } from './app.js'

export const AppContext = createContext<App | undefined>(undefined)

/** What every part may read: the clock, the route, the live frames, the settings. */
export function useApp(): App {
  const app = useContext(AppContext)
  if (app === undefined) throw new Error('a part of the dashboard was rendered outside of its app')
  return app
}
