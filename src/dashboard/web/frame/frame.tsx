import type { ComponentChildren } from 'preact'
import { useMemo } from 'preact/hooks'
import { useApp } from '../app-context.js'
import { Icon, Wheel } from '../icons.js'
import { Menu } from '../parts/menu.js'
import { words } from '../texts.js'
import { useTopic } from '../use-topic.js'
import { DisplayMenu } from './display-menu.js'
import { liveMark, lostBanner, railLinks, sentenceText } from './model.js'
import type { RailLink } from './model.js'
import { SearchBox } from './search-box.js'
import { Toasts } from './toasts.js'

/** The frame of every page: top bar, rail or bottom bar, banner, toasts. */
export function Frame({ children }: { children: ComponentChildren }) {
  const { router, session, live } = useApp()
  const { snapshot } = useTopic<'health'>('health')
  const links = railLinks(router.route.value.page, snapshot?.fields, session.role)
  return (
    <div class={live.status.value.kind === 'lost' ? 'stale' : ''}>
      <a class="skip button" href="#main" onClick={skip}>
        {words.skip}
      </a>
      <div class="app">
        <TopBar />
        <Rail links={links} />
        <main id="main" tabIndex={-1}>
          <Banner />
          {children}
        </main>
      </div>
      <BottomBar links={links} />
      <Toasts />
      <Announced />
    </div>
  )
}

/** The fragment is the route, so the link moves the focus itself. */
function skip(event: Event): void {
  event.preventDefault()
  document.querySelector<HTMLElement>('#main')?.focus()
}

function TopBar() {
  const { session } = useApp()
  return (
    <header class="top">
      <a class="brand" href="#/">
        <Wheel />
        <span class="brand-name">{session.title}</span>
        {session.environment === null ? null : <span class="badge">{session.environment}</span>}
      </a>
      <SearchBox />
      <div class="top-end">
        <LiveBadge />
        <DisplayMenu />
        <span class="badge role">{session.role}</span>
      </div>
    </header>
  )
}

function LiveBadge() {
  const { live, clock, zone } = useApp()
  const { snapshot } = useTopic<'health'>('health')
  void clock.now.value
  const mark = liveMark(live.status.value, live.frozen.value, snapshot?.now, Date.now(), zone.value)
  const isHollow = mark.kind === 'lost' || mark.kind === 'connecting'
  const flip = (): void => void (live.frozen.value = !live.frozen.peek())
  return (
    <button
      type="button"
      class="live"
      aria-pressed={live.frozen.value}
      title="Freeze or unfreeze the page (f)"
      onClick={flip}
    >
      {mark.kind === 'frozen' ? <Icon name="pause" size={12} /> : <span class={`dot${isHollow ? ' hollow' : ''}`} />}
      <span class="live-word">{mark.text}</span>
    </button>
  )
}

function Rail({ links }: { links: readonly RailLink[] }) {
  return (
    <nav class="rail" aria-label="Pages">
      {links.map(({ href, icon, word, title, count, isCurrent }) => (
        <a key={href} href={href} aria-current={isCurrent ? 'page' : undefined} title={title}>
          <Icon name={icon} />
          <span class="rail-word">{word}</span>
          {count === '' ? null : <span class="rail-count">{count}</span>}
        </a>
      ))}
    </nav>
  )
}

/** What fits on a phone; the rest is under More. */
const BOTTOM = ['overview', 'jobs', 'failures', 'queues']

function BottomBar({ links }: { links: readonly RailLink[] }) {
  const shown = links.filter(({ page }) => BOTTOM.includes(page))
  const rest = links.filter(({ page }) => !BOTTOM.includes(page))
  const items = rest.map(({ word, href, count, isCurrent }) => ({ label: word, href, hint: count, isCurrent }))
  return (
    <nav class="bottom" aria-label="Pages, at the bottom">
      {shown.map(({ href, icon, word, isCurrent }) => (
        <a key={href} href={href} aria-current={isCurrent ? 'page' : undefined}>
          <Icon name={icon} />
          <span>{word}</span>
        </a>
      ))}
      <Menu label={words.pages.more} isSquare={false} items={items}>
        <Icon name="more" />
        <span>{words.pages.more}</span>
      </Menu>
    </nav>
  )
}

function Banner() {
  const { live, clock, zone, session } = useApp()
  const { snapshot } = useTopic<'health'>('health')
  void clock.now.value
  const text = lostBanner(live.status.value, snapshot?.now, Date.now(), zone.value)
  if (text !== undefined)
    return (
      <div class="strip bad" role="alert">
        <span>{text}</span>
        {live.status.value.kind === 'signed-out' ? <Reload text="Sign in" /> : null}
      </div>
    )
  const isOld = snapshot !== undefined && snapshot.fields.build !== session.build
  return isOld ? (
    <div class="strip">
      <span>A new version is available.</span>
      <Reload text="Reload" />
    </div>
  ) : null
}

/** The verdict is said aloud when its kind changes, and never because a number ticks. */
function Announced() {
  const { snapshot } = useTopic<'health'>('health')
  const verdict = snapshot?.fields.verdict
  const text = useMemo(() => (verdict === undefined ? '' : sentenceText(verdict.text)), [verdict?.kind])
  return (
    <p class="visually-hidden" role="status">
      {text}
    </p>
  )
}

function Reload({ text }: { text: string }) {
  return (
    <button type="button" class="link-button" onClick={() => location.reload()}>
      {text}
    </button>
  )
}
