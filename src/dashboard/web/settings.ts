import { signal } from '@preact/signals'
import type { Signal } from '@preact/signals'

export type Theme = 'system' | 'light' | 'dark'

/** How this browser shows the dashboard; kept in its storage. */
export interface Settings {
  readonly theme: Signal<Theme>
  readonly compact: Signal<boolean>
  readonly utc: Signal<boolean>
  readonly singleKeys: Signal<boolean>
  /** Saved searches: name → text. */
  readonly saved: Signal<Readonly<Record<string, string>>>
  /** Fingerprints that are muted, and until when. */
  readonly muted: Signal<Readonly<Record<string, number>>>
}

/** The part of `localStorage` that is used; a browser may forbid all of it. */
export interface Shelf {
  getItem(key: string): string | null
  setItem(key: string, value: string): void
}

const KEY = 'millrace.dashboard'

export function loadSettings(shelf: Shelf | undefined): Settings {
  const stored = read(shelf)
  return {
    theme: signal(oneOf(stored['theme'], ['system', 'light', 'dark'], 'system')),
    compact: signal(stored['compact'] === true),
    utc: signal(stored['utc'] === true),
    singleKeys: signal(stored['singleKeys'] !== false),
    saved: signal((stored['saved'] as Record<string, string> | undefined) ?? {}),
    muted: signal((stored['muted'] as Record<string, number> | undefined) ?? {}),
  }
}

export function storeSettings(settings: Settings, shelf: Shelf | undefined): void {
  const { theme, compact, utc, singleKeys, saved, muted } = settings
  const text = JSON.stringify({
    theme: theme.value,
    compact: compact.value,
    utc: utc.value,
    singleKeys: singleKeys.value,
    saved: saved.value,
    muted: muted.value,
  })
  try {
    shelf?.setItem(KEY, text)
  } catch {
    // A full or forbidden storage costs the choice after a reload, nothing else.
  }
}

function read(shelf: Shelf | undefined): Record<string, unknown> {
  try {
    return (JSON.parse(shelf?.getItem(KEY) ?? '{}') ?? {}) as Record<string, unknown>
  } catch {
    return {} // What another version has stored is no reason not to start.
  }
}

function oneOf<T extends string>(value: unknown, known: readonly T[], fallback: T): T {
  return known.includes(value as T) ? (value as T) : fallback
}
