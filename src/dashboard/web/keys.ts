/** What a key does. `page:` goes to a page. */
export type KeyAction =
  | 'search'
  | 'jump'
  | 'next'
  | 'previous'
  | 'select'
  | 'select-range'
  | 'open'
  | 'menu'
  | 'retry'
  | 'pause'
  | 'copy'
  | 'newer'
  | 'freeze'
  | 'shorter'
  | 'longer'
  | 'theme'
  | 'help'
  | 'close'
  | 'enqueue'
  | `page:${string}`

export interface Press {
  readonly key: string
  readonly ctrl: boolean
  readonly alt: boolean
  readonly shift: boolean
  /** Whether text is being typed: single keys do nothing there. */
  readonly inField: boolean
}

const SINGLE: Readonly<Record<string, KeyAction>> = {
  '/': 'search',
  j: 'next',
  k: 'previous',
  x: 'select',
  X: 'select-range',
  o: 'open',
  a: 'menu',
  r: 'retry',
  p: 'pause',
  y: 'copy',
  '.': 'newer',
  f: 'freeze',
  '[': 'shorter',
  ']': 'longer',
  t: 'theme',
  '?': 'help',
  c: 'enqueue',
  Escape: 'close',
}

/** The second key after `g`. */
export const GO: Readonly<Record<string, string>> = {
  o: '#/',
  j: '#/jobs',
  f: '#/failures',
  q: '#/queues',
  r: '#/recurring',
  g: '#/groups',
  w: '#/workflows',
  k: '#/workers',
  u: '#/upcoming',
  h: '#/health',
}

export interface KeyState {
  /** Whether `g` was the last key: the next one names a page. */
  readonly isGoing: boolean
}

/** What a key press means, and the state for the next one. */
export function press(
  state: KeyState,
  { key, ctrl, alt, inField }: Press,
  singleKeys: boolean,
): { readonly state: KeyState; readonly action: KeyAction | undefined } {
  const idle = { isGoing: false }
  if (ctrl && key === 'k') return { state: idle, action: 'jump' }
  if (ctrl || alt) return { state: idle, action: undefined }
  if (key === 'Escape') return { state: idle, action: 'close' }
  if (inField || !singleKeys) return { state: idle, action: undefined }
  if (state.isGoing) return { state: idle, action: GO[key] === undefined ? undefined : `page:${GO[key]}` }
  if (key === 'g') return { state: { isGoing: true }, action: undefined }
  return { state: idle, action: SINGLE[key] }
}

/** What the help shows, in its order. */
export const KEY_HELP: readonly (readonly [keys: string, does: string])[] = [
  ['/', 'search jobs'],
  ['Ctrl K', 'jump to a queue, a job, a page'],
  ['g o', 'Overview'],
  ['g j', 'Jobs'],
  ['g f', 'Failures'],
  ['g q', 'Queues'],
  ['g r', 'Recurring'],
  ['g g', 'Groups and sequences'],
  ['g w', 'Workflows'],
  ['g k', 'Workers'],
  ['g u', 'Upcoming'],
  ['g h', 'Health'],
  ['j k', 'next and previous row'],
  ['x', 'select the row'],
  ['⇧ x', 'select up to the row'],
  ['o', 'open the row'],
  ['a', 'its other actions'],
  ['r', 'retry'],
  ['p', 'pause or resume'],
  ['y', 'copy the link'],
  ['.', 'show what is newer'],
  ['f', 'freeze the page'],
  ['[ ]', 'shorter, longer time range'],
  ['t', 'light or dark'],
  ['c', 'enqueue a job'],
  ['Esc', 'close'],
]
