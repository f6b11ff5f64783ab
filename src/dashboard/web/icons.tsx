/** Our icons: paths on a 16-px grid, 1.5-px stroke, drawn in the colour of the text. */
const ICONS = {
  overview: 'M2.5 13.5h11M4 11V8M8 11V3.5M12 11V6',
  jobs: 'M2.5 4h1M6 4h7.5M2.5 8h1M6 8h7.5M2.5 12h1M6 12h7.5',
  failures: 'M8 2 14.2 13H1.8zM8 6.5v3M8 11.2v.3',
  queues: 'M2.5 3.5h11v3h-11zM2.5 9.5h11v3h-11z',
  recurring: 'M13.5 8A5.5 5.5 0 1 1 11.6 3.8M13.5 2v3h-3',
  groups: 'M2.5 2.5h4.5v4.5h-4.5zM9 9h4.5v4.5h-4.5zM9 4.7h4.5M4.7 9v4.5',
  workflows: 'M3 2.5h4v3H3zM9 6.5h4v3H9zM3 10.5h4v3H3zM5 5.5v5M7 4h2.5a1.5 1.5 0 0 1 1.5 1.5v1',
  workers: 'M4.5 4.5h7v7h-7zM6.5 2v2.5M9.5 2v2.5M6.5 11.5V14M9.5 11.5V14M2 6.5h2.5M2 9.5h2.5M11.5 6.5H14M11.5 9.5H14',
  upcoming: 'M2.5 3.5h11v10h-11zM2.5 6.5h11M5.5 2v3M10.5 2v3M8 8.5v2.2l1.5.8',
  health: 'M1.5 8.5H4.5L6.5 3.5 9.5 12.5 11.5 8.5H14.5',
  search: 'M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10zM10.7 10.7 14 14',
  copy: 'M5.5 5.5h8v8h-8zM3.5 10.5h-1v-8h8v1',
  more: 'M3.5 8h.01M8 8h.01M12.5 8h.01',
  external: 'M6.5 3.5h-4v10h10v-4M9 2.5h4.5V7M13.5 2.5 7 9',
  close: 'M3.5 3.5 12.5 12.5M12.5 3.5 3.5 12.5',
  down: 'M4 6.5 8 10.5 12 6.5',
  left: 'M10 3.5 5.5 8 10 12.5',
  right: 'M6 3.5 10.5 8 6 12.5',
  pause: 'M5.5 3.5v9M10.5 3.5v9',
  play: 'M5 3.5 12.5 8 5 12.5z',
  retry: 'M13 8A5 5 0 1 1 11.3 4.3M13.2 2.2v2.9h-2.9',
  add: 'M8 3v10M3 8h10',
  audit: 'M4 2.5h6l2.5 2.5v8.5h-8.5zM6 7h4.5M6 10h4.5',
  info: 'M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM8 7.2v3.8M8 5v.3',
} as const

export type IconName = keyof typeof ICONS

export function Icon({ name, label, size = 16 }: { name: IconName; label?: string; size?: number }) {
  const named = label === undefined ? { 'aria-hidden': true as const } : { role: 'img' as const, 'aria-label': label }
  return (
    <svg class="icon" viewBox="0 0 16 16" width={size} height={size} {...named}>
      <path d={ICONS[name]} />
    </svg>
  )
}

/** The wheel: a ring with paddles over a line of water. */
export function Wheel({ label }: { label?: string }) {
  const named = label === undefined ? { 'aria-hidden': true as const } : { role: 'img' as const, 'aria-label': label }
  return (
    <svg class="wheel" viewBox="0 0 24 24" width="24" height="24" {...named}>
      <circle cx="12" cy="11" r="8" />
      <path d="M17 11h6M14.5 15.33l3 5.2M9.5 15.33l-3 5.2M7 11H1M9.5 6.67l-3-5.2M14.5 6.67l3-5.2" />
      <circle class="hub" cx="12" cy="11" r="1.5" />
      <path class="water" d="M1 22q2.75-2.2 5.5 0t5.5 0 5.5 0 5.5 0" />
    </svg>
  )
}
