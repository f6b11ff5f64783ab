import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { Sentence, VerdictKind } from '../../protocol.js'
import type { Held } from '../connection/held.js'
import { useApp } from '../app-context.js'
import { clockTime } from '../format/time.js'
import { Glyph } from './state.js'
import type { MarkName } from './state.js'

/** After this time a page says what it waits for. */
const PATIENCE_MS = 2_000

const VERDICT_MARKS: Readonly<Record<VerdictKind, MarkName>> = {
  good: 'done',
  warn: 'warn',
  bad: 'failed',
  unknown: 'unknown',
}

export interface PageProps {
  readonly title: string
  /** The true sentence that every page opens with. */
  readonly lead?: ComponentChildren
  readonly tools?: ComponentChildren
  readonly held: Held
  readonly isTitleHidden?: boolean
  /** What is drawn once there is data. */
  readonly children: ComponentChildren
}

/** The frame of a page: its title, its sentence, its tools; then the data, or what is known instead. */
export function Page({ title, lead, tools, held, isTitleHidden, children }: PageProps) {
  const { visits } = useApp()
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    // The focus follows to each new page, unless the user is typing a search that changes it.
    const isTyping = document.activeElement?.matches('input, textarea, select') ?? false
    if (visits.peek() > 0 && !isTyping) heading.current?.focus({ preventScroll: true })
    visits.value += 1
  }, [title])
  return (
    <>
      <div class="page-head">
        <h1 ref={heading} tabIndex={-1} class={isTitleHidden ? 'visually-hidden' : ''}>
          {title}
        </h1>
        <p class="lead">{held.snapshot === undefined && held.gone === undefined ? <Waiting title={title} /> : lead}</p>
        {tools === undefined ? null : <div class="buttons">{tools}</div>}
      </div>
      <StaleStrip held={held} />
      {held.gone !== undefined ? <Gone text={held.gone} /> : held.snapshot === undefined ? <Skeleton /> : children}
    </>
  )
}

/** A sentence of the server, with its links. */
export function Said({ sentence }: { sentence: Sentence }) {
  return (
    <>
      {sentence.map((part, i) =>
        typeof part === 'string' ? (
          part
        ) : (
          <a key={i} href={part.to}>
            {part.text}
          </a>
        ),
      )}
    </>
  )
}

export function VerdictMark({ kind }: { kind: VerdictKind }) {
  return (
    <span class="mark">
      <Glyph name={VERDICT_MARKS[kind]} />
    </span>
  )
}

function Waiting({ title }: { title: string }) {
  const [isLong, setLong] = useState(false)
  useEffect(() => {
    const timer = setTimeout(() => setLong(true), PATIENCE_MS)
    return () => clearTimeout(timer)
  }, [title])
  return <span class="quiet">{isLong ? `Waiting for the server to read ${title.toLowerCase()}.` : '\u00a0'}</span>
}

function StaleStrip({ held }: { held: Held }) {
  const { clock, zone } = useApp()
  const { stale, snapshot } = held
  if (stale === undefined) return null
  const left = Math.max(0, Math.ceil((stale.againAt - clock.now.value) / 1_000))
  return (
    <div class="strip warn" role="status">
      <Glyph name="warn" />
      <span>
        {stale.text} Showing {clockTime(snapshot?.now, zone.value, true)}. Trying again in {left} s.
      </span>
    </div>
  )
}

function Gone({ text }: { text: string }) {
  return (
    <div class="card">
      <div class="empty">
        <p>
          {text} <a href="#/jobs">Search for it</a>
        </p>
      </div>
    </div>
  )
}

function Skeleton() {
  return (
    <div class="table-box skeleton" aria-hidden="true">
      {[0, 1, 2, 3, 4, 5].map((i) => (
        <div key={i} class="skeleton-row">
          <span class="bar-of-grey" />
          <span class="bar-of-grey" />
          <span class="bar-of-grey" />
        </div>
      ))}
    </div>
  )
}

/** What this version of the engine does not provide is said, not invented. */
export function Absent({ text }: { text: string | undefined }) {
  return text === undefined ? null : <p class="faint">{text}</p>
}
