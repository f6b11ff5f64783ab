import type { Signal } from '@preact/signals'
import { useApp } from '../app-context.js'
import { Menu } from '../parts/menu.js'
import type { Theme } from '../settings.js'

const THEMES: readonly (readonly [Theme, string])[] = [
  ['system', 'Light or dark as the system'],
  ['light', 'Light'],
  ['dark', 'Dark'],
]

/** Theme, density, zone and shortcuts: kept in this browser. */
export function DisplayMenu() {
  const { settings, session, overlay, api } = useApp()
  const toggle = (label: string, of: Signal<boolean>) => ({
    label,
    isCurrent: of.value,
    onClick: () => void (of.value = !of.peek()),
  })
  const items = [
    ...THEMES.map(([theme, label]) => ({
      label,
      isCurrent: settings.theme.value === theme,
      onClick: () => void (settings.theme.value = theme),
    })),
    toggle('Compact rows', settings.compact),
    toggle('Times in UTC', settings.utc),
    toggle('Single-key shortcuts', settings.singleKeys),
    { label: 'Keyboard', hint: '?', onClick: () => void (overlay.value = 'help') },
  ]
  const signOut = { label: 'Sign out', onClick: () => void api.post('logout', {}).then(() => location.reload()) }
  return <Menu label="Display" items={session.canSignOut ? [...items, signOut] : items} />
}
