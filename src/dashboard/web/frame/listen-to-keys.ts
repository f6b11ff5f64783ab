import { FAILURE_SPANS, SPANS, UPCOMING_SPANS } from '../../protocol.js'
import type { App } from '../app.js'
import { press } from '../keys.js'
import type { KeyAction, KeyState } from '../keys.js'
import { copyText } from '../parts/copy-text.js'

/** Turns key presses into what they mean on the page. Rows and their buttons are found by their data attributes. */
export function listenToKeys(app: App): void {
  let state: KeyState = { isGoing: false }
  document.addEventListener('keydown', (event) => {
    const target = event.target as HTMLElement
    const inField = target.matches('input, textarea, select, [contenteditable]')
    const given = {
      key: event.key,
      ctrl: event.ctrlKey || event.metaKey,
      alt: event.altKey,
      shift: event.shiftKey,
      inField,
    }
    const next = press(state, given, app.settings.singleKeys.peek())
    state = next.state
    if (next.action === undefined || event.defaultPrevented) return
    if (document.querySelector('dialog[open]') !== null && next.action !== 'close') return
    if (next.action !== 'close') event.preventDefault()
    act(app, next.action)
  })
}

function act(app: App, action: KeyAction): void {
  if (action.startsWith('page:')) return app.router.go(action.slice('page:'.length))
  if (action in IN_ROW) return clickInRow(action)
  const { overlay, live, settings, actions, router } = app
  const does: Partial<Record<KeyAction, () => void>> = {
    search: () => document.querySelector<HTMLElement>('[data-search]')?.focus(),
    jump: () => void (overlay.value = 'jump'),
    help: () => void (overlay.value = 'help'),
    next: () => moveRow(1),
    previous: () => moveRow(-1),
    freeze: () => void (live.frozen.value = !live.frozen.peek()),
    theme: () => void (settings.theme.value = isDark() ? 'light' : 'dark'),
    copy: () => void copyText(location.href).then(() => actions.say('good', 'The link is copied.')),
    shorter: () => changeSpan(app, -1),
    longer: () => changeSpan(app, 1),
    enqueue: () => router.go('#/enqueue'),
    newer: () => document.querySelector<HTMLElement>('[data-key=newer]')?.click(),
    close: () => (document.activeElement as HTMLElement | null)?.blur(),
  }
  does[action]?.()
}

function rows(): HTMLElement[] {
  return [...document.querySelectorAll<HTMLElement>('main tr[data-row]')]
}

function currentRow(): HTMLElement | undefined {
  return document.activeElement?.closest<HTMLElement>('tr[data-row]') ?? undefined
}

function moveRow(step: number): void {
  const all = rows()
  const current = currentRow()
  const at = current === undefined ? (step > 0 ? -1 : 0) : all.indexOf(current)
  all[Math.min(all.length - 1, Math.max(0, at + step))]?.focus()
}

const IN_ROW: Readonly<Record<string, string>> = {
  open: 'a.row-link',
  select: 'input[type=checkbox]',
  'select-range': 'input[type=checkbox]',
  menu: '[data-menu]',
  retry: '[data-key=retry]',
  pause: '[data-key=pause]',
}

/** In the focused row, or else on the page itself. */
function clickInRow(action: string): void {
  const place = currentRow() ?? document.querySelector('.page-head')
  const found = place?.querySelector<HTMLElement>(IN_ROW[action] ?? '')
  if (action !== 'select-range') return found?.click()
  found?.dispatchEvent(new MouseEvent('click', { bubbles: true, cancelable: true, shiftKey: true }))
}

function changeSpan(app: App, step: number): void {
  const { page, query } = app.router.route.peek()
  const spans: readonly string[] =
    page === 'failures' ? FAILURE_SPANS : page === 'upcoming' ? UPCOMING_SPANS : Object.keys(SPANS)
  const usual = page === 'failures' || page === 'upcoming' ? '24h' : '1h'
  const at = spans.indexOf(query['span'] ?? usual)
  const next = spans[at + step]
  if (next !== undefined) app.router.set({ span: next })
}

function isDark(): boolean {
  const { classList } = document.documentElement
  return (
    classList.contains('dark') || (!classList.contains('light') && matchMedia('(prefers-color-scheme: dark)').matches)
  )
}
