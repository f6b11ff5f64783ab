import type { HealthFields, Role, Sentence } from '../../protocol.js'
import type { Status } from '../connection/connection.js'
import { count } from '../format/number.js'
import { clockTime } from '../format/time.js'
import type { Zone } from '../format/time.js'
import type { IconName } from '../icons.js'
import type { Page } from '../route.js'
import { words } from '../texts.js'

export interface RailLink {
  readonly page: Page
  readonly href: string
  readonly icon: IconName
  readonly word: string
  /** A number that needs action; empty when none does. */
  readonly count: string
  /** What the number counts: `Failures: 11 failed jobs`. */
  readonly title: string
  readonly isCurrent: boolean
}

/** Pages that belong to an entry of the rail. */
const UNDER: Partial<Record<Page, Page>> = { job: 'jobs', sequences: 'groups', enqueue: 'jobs' }

/** The entries of the rail, with a live count where a number needs action. */
export function railLinks(page: Page, health: HealthFields | undefined, role: Role): RailLink[] {
  const current = UNDER[page] ?? page
  const entry = (name: Exclude<keyof typeof words.pages, 'more'>, amount = '', unit = ''): RailLink => ({
    page: name,
    href: name === 'overview' ? '#/' : `#/${name}`,
    icon: name,
    word: words.pages[name],
    count: amount,
    title: amount === '' ? words.pages[name] : `${words.pages[name]}: ${amount} ${unit}`,
    isCurrent: name === current,
  })
  const nav = health?.nav
  const links = [
    entry('overview'),
    entry('jobs'),
    entry('failures', positive(nav?.failed.n), 'failed jobs'),
    entry('queues'),
    entry('recurring'),
    entry('groups'),
    entry('workflows'),
    entry('workers', positive(nav?.workersMissing), 'missing'),
    entry('upcoming'),
    entry('health', positive(nav?.findings), 'findings'),
  ]
  return role === 'admin' ? [...links, entry('audit')] : links
}

/** The live mark of the top bar. */
export interface LiveMark {
  readonly kind: 'live' | 'polling' | 'frozen' | 'lost' | 'connecting'
  readonly text: string
}

/** A gap is shown at once: the buttons are disabled in it. After this time the mark says how old the data is; the banner comes after the other. */
const LOST_MARK_MS = 3_000
const LOST_BANNER_MS = 15_000

export function liveMark(
  status: Status,
  isFrozen: boolean,
  asOf: number | undefined,
  tabNow: number,
  zone: Zone,
): LiveMark {
  if (isFrozen) return { kind: 'frozen', text: 'frozen' }
  switch (status.kind) {
    case 'live':
      return { kind: 'live', text: 'live' }
    case 'polling':
      return { kind: 'polling', text: 'every 5 s' }
    case 'connecting':
      return { kind: 'connecting', text: 'connecting' }
    case 'signed-out':
      return { kind: 'lost', text: 'signed out' }
    case 'lost':
      if (tabNow - status.since < LOST_MARK_MS) return { kind: 'lost', text: 'reconnecting' }
      return { kind: 'lost', text: `as of ${clockTime(asOf, zone, true)}` }
    default:
      return status satisfies never
  }
}

/** The banner over every page while nothing new arrives; undefined while the connection is good. */
export function lostBanner(status: Status, asOf: number | undefined, tabNow: number, zone: Zone): string | undefined {
  if (status.kind === 'signed-out') return 'You are signed out. The page shows what was last known.'
  if (status.kind !== 'lost' || tabNow - status.since < LOST_BANNER_MS) return undefined
  const time = clockTime(asOf, zone, true)
  return `No connection since ${time}. The page shows data from then. Actions are disabled.`
}

/** `✕ 2 · Failures · shop`: the state of the system is seen without opening the tab. */
export function tabTitle(page: Page, health: HealthFields | undefined, app: string): string {
  const others: Partial<Record<Page, string>> = {
    job: 'Job',
    sequences: 'Sequence',
    enqueue: 'Enqueue',
    unknown: 'No such page',
  }
  const name = others[page] ?? words.pages[page as keyof typeof words.pages]
  const { kind = 'unknown', problems = 0 } = health?.verdict ?? {}
  const mark = kind === 'bad' ? `✕ ${problems} · ` : kind === 'warn' ? `▲ ${problems} · ` : ''
  return `${mark}${name} · ${app}`
}

/** A sentence without its links. */
export function sentenceText(sentence: Sentence): string {
  return sentence.map((part) => (typeof part === 'string' ? part : part.text)).join('')
}

function positive(value: number | undefined): string {
  return value === undefined || value === 0 ? '' : count(value)
}
