import type { MarkName } from './state.js'
import { Glyph } from './state.js'

/** A bar of a lane; places are in per cent of the width. */
export interface TimelineBar {
  readonly kind: string
  readonly x: number
  readonly width: number
  readonly text: string
  readonly title: string
  readonly end: MarkName | undefined
  readonly isDashed: boolean
}

export interface TimelineLane {
  readonly key: string
  readonly name: string
  readonly mark: MarkName | undefined
  readonly note: string
  readonly depth: number
  readonly bars: readonly TimelineBar[]
  readonly isOpen?: boolean
}

export interface TimelineTick {
  readonly x: number
  readonly text: string
}

export interface TimelineShown {
  readonly lanes: readonly TimelineLane[]
  readonly ticks: readonly TimelineTick[]
  readonly folds: readonly { readonly x: number; readonly width: number; readonly text: string }[]
  readonly flags: readonly { readonly x: number; readonly text: string; readonly title: string }[]
  readonly nowX: number | undefined
}

/** Time to scale, one lane for each attempt or step. The page has a list with the same facts. */
export function Timeline({
  shown,
  onLane,
  label,
}: {
  shown: TimelineShown
  onLane?: (key: string) => void
  label: string
}) {
  const { lanes, ticks, folds, flags, nowX } = shown
  return (
    <div class="timeline" role="group" aria-label={label}>
      <div class="timeline-axis" aria-hidden="true">
        {ticks.map(({ x, text }) => (
          <span key={`${x}${text}`} class={x > 88 ? 'at-end' : ''} style={{ left: `${x}%` }}>
            {text}
          </span>
        ))}
      </div>
      <div class="timeline-lanes">
        <div class="timeline-marks" aria-hidden="true">
          {folds.map(({ x, width, text }) => (
            <span key={x} class="fold" style={{ left: `${x}%`, width: `${width}%` }} title={text}>
              <b>{text}</b>
            </span>
          ))}
          {flags.map(({ x, text, title }) => (
            <span key={`${x}${text}`} class="flag" style={{ left: `${x}%` }} title={title}>
              {text}
            </span>
          ))}
          {nowX === undefined ? null : <span class="now" style={{ left: `${nowX}%` }} />}
        </div>
        {lanes.map((lane) => (
          <Lane key={lane.key} lane={lane} onLane={onLane} />
        ))}
      </div>
    </div>
  )
}

function Lane({ lane, onLane }: { lane: TimelineLane; onLane: ((key: string) => void) | undefined }) {
  const { key, name, mark, note, depth, bars, isOpen } = lane
  const label = (
    <>
      {mark === undefined ? null : <Glyph name={mark} />}
      <span class="cut">{name}</span>
    </>
  )
  return (
    <div class={`lane${isOpen ? ' opened' : ''}`}>
      <div class={`lane-name depth-${depth}`} title={`${name} ${note}`}>
        {onLane === undefined ? (
          label
        ) : (
          <button type="button" class="lane-button" aria-expanded={isOpen} onClick={() => onLane(key)}>
            {label}
          </button>
        )}
      </div>
      <div class="lane-note cut">{note}</div>
      <div class="lane-track">
        {bars.map(({ kind, x, width, text, title, end, isDashed }, i) => (
          <span
            key={i}
            class={`span span-${kind}${isDashed ? ' dashed' : ''}`}
            style={{ left: `${x}%`, width: `${width}%` }}
            title={title}
          >
            <span class="span-text">{text}</span>
            {end === undefined ? null : (
              <span class="span-end">
                <Glyph name={end} />
              </span>
            )}
          </span>
        ))}
      </div>
    </div>
  )
}
