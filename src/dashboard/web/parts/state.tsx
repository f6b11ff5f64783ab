import { words } from '../texts.js'

/** The ten states of a job, each with a silhouette of its own: colour is never the only sign. */
export type StateName =
  | 'scheduled'
  | 'ready'
  | 'running'
  | 'retrying'
  | 'blocked'
  | 'paused'
  | 'parked'
  | 'done'
  | 'failed'
  | 'cancelled'

/** Marks of what is no job: a queue, a worker, a check. */
export type MarkName = StateName | 'probing' | 'open' | 'warn' | 'unknown' | 'lost'

const STROKES: Readonly<Record<string, string>> = {
  scheduled: 'M6 11A5 5 0 1 0 6 1a5 5 0 0 0 0 10zM6 3.4V6l1.9 1.2',
  ready: 'M6 10.5A4.5 4.5 0 1 0 6 1.5a4.5 4.5 0 0 0 0 9z',
  retrying: 'M10.6 6A4.6 4.6 0 1 1 8.9 2.4M9.3.4l.1 2.4-2.4.3',
  blocked: 'M2.5 1.2h7M2.5 10.8h7M3.5 1.2c0 3 5 3.6 5 4.8s-5 1.8-5 4.8M8.5 1.2c0 3-5 3.6-5 4.8s5 1.8 5 4.8',
  paused: 'M3.8 1.8v8.4M8.2 1.8v8.4',
  parked: 'M1.4 1.4h9.2v9.2H1.4z',
  done: 'M1.6 6.6 4.6 9.6 10.4 2.8',
  cancelled: 'M6 11A5 5 0 1 0 6 1a5 5 0 0 0 0 10zM2.5 9.5 9.5 2.5',
  probing: 'M6 11A5 5 0 1 0 6 1a5 5 0 0 0 0 10z',
  open: 'M6 8A2 2 0 1 0 6 4a2 2 0 0 0 0 4z',
  unknown: 'M3 6h6',
  lost: 'M1.8 1.8l8.4 8.4M10.2 1.8 1.8 10.2',
}
const SOLIDS: Readonly<Record<string, string>> = {
  running: 'M2.5 1.2 10.8 6 2.5 10.8z',
  failed: 'M6 0 12 6 6 12 0 6z',
  parked: 'M4.2 4.2h3.6v3.6H4.2z',
  probing: 'M6 8.2A2.2 2.2 0 1 0 6 3.8a2.2 2.2 0 0 0 0 4.4z',
  warn: 'M6 .8 11.8 11H.2z',
}
/** Cut out of a solid shape, in the colour of the ground. */
const CUTS: Readonly<Record<string, string>> = {
  failed: 'M4.2 4.2l3.6 3.6M7.8 4.2 4.2 7.8',
  warn: 'M6 4.4v3M6 9v.3',
}
/** Marks without a state use the ink of the state that means the same. */
const INKS: Readonly<Record<string, string>> = {
  probing: 'retrying',
  warn: 'retrying',
  open: 'quiet',
  unknown: 'quiet',
  lost: 'failed',
}

export function Glyph({ name }: { name: MarkName }) {
  return (
    <svg class={`glyph ink-${INKS[name] ?? name}`} viewBox="0 0 12 12" width="12" height="12" aria-hidden="true">
      {SOLIDS[name] === undefined ? null : <path class="solid" d={SOLIDS[name]} />}
      {STROKES[name] === undefined ? null : <path class="stroke" d={STROKES[name]} />}
      {CUTS[name] === undefined ? null : <path class="cut" d={CUTS[name]} />}
    </svg>
  )
}

/** Glyph and word, always both. */
export function Mark({ name, word }: { name: MarkName; word: string }) {
  return (
    <span class={`mark ink-${INKS[name] ?? name}`}>
      <Glyph name={name} />
      <span class="mark-word">{word}</span>
    </span>
  )
}

export function State({ state }: { state: StateName }) {
  return <Mark name={state} word={words.states[state]} />
}
