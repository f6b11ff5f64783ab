import type { AttemptShown, JobFields, StepRow, TimelineSpan } from '../../../protocol.js'
import { foldedScale } from '../../parts/folded-scale.js'
import type { FoldedScale } from '../../parts/folded-scale.js'
import type { MarkName } from '../../parts/state.js'
import type { TimelineBar, TimelineLane, TimelineShown, TimelineTick } from '../../parts/timeline.js'
import { duration, seconds } from '../../format/duration.js'
import { dayAndTime } from '../../format/time.js'
import type { Zone } from '../../format/time.js'

/** A bar narrower than this share of the width has no text in it: the title and the list have it. */
const TEXT_MIN_PERCENT = 7
/** Ticks closer than this would touch. */
const TICK_MIN_PERCENT = 14
const LEAST_PERCENT = 0.4
/** So many characters of a worker's id tell it from the others. */
const WORKER_SHOWN = 8

/** The life of a job: a lane for what came before the first attempt, and one for each attempt with the wait after it. */
export function jobTimeline(job: JobFields, now: number, zone: Zone, mayFold: boolean): TimelineShown {
  const ends = job.timeline.map((span) => span.to ?? Math.max(now, span.from))
  const instants = [...job.timeline.map(({ from }) => from), ...ends, ...job.flags.map(({ at }) => at)]
  const lengths = job.timeline.map((span, i) => (ends[i] as number) - span.from)
  const scale = foldedScale(instants, mayFold ? lengths : undefined)
  const lanes = laneSpans(job.timeline).map((spans, i) => jobLane(spans, i, job, scale, now))
  return {
    lanes,
    ticks: ticks(instants, scale, now, zone),
    folds: foldsOf(scale),
    flags: job.flags.map(({ at, verb, actor, reason }) => ({
      x: scale.x(at),
      text: verb,
      title: `${dayAndTime(at, now, zone, true)} ${actor}: ${verb}${reason === null ? '' : `, ${reason}`}`,
    })),
    nowX: ends.some((end) => end > now) ? scale.x(now) : undefined,
  }
}

/** A lane ends after each running span and the back-off that follows it. */
function laneSpans(spans: readonly TimelineSpan[]): TimelineSpan[][] {
  const lanes: TimelineSpan[][] = []
  for (const span of spans) {
    const lane = lanes.at(-1)
    const hasRun = lane?.some(({ kind }) => kind === 'running') ?? false
    if (lane === undefined || (hasRun && (span.kind === 'running' || span.kind === 'ready'))) lanes.push([span])
    else lane.push(span)
  }
  return lanes
}

function jobLane(
  spans: readonly TimelineSpan[],
  i: number,
  job: JobFields,
  scale: FoldedScale,
  now: number,
): TimelineLane {
  const number = spans.find(({ attempt }) => attempt !== null)?.attempt ?? null
  const attempt = job.attempts.find((each) => each.number === number)
  return {
    key: String(i),
    name: number === null ? (spans.some(({ kind }) => kind === 'future') ? 'next' : 'before') : `attempt ${number}`,
    mark: attempt === undefined ? undefined : attemptMark(attempt, job),
    note: attempt === undefined ? '' : attempt.worker.slice(0, WORKER_SHOWN),
    depth: 0,
    bars: spans.map((span) => spanBar(span, attempt, job, scale, now)),
  }
}

function spanBar(
  span: TimelineSpan,
  attempt: AttemptShown | undefined,
  job: JobFields,
  scale: FoldedScale,
  now: number,
): TimelineBar {
  const end = span.to ?? Math.max(now, span.from)
  const length = end - span.from
  const word = span.kind === 'future' ? 'due' : span.kind
  const isRun = span.kind === 'running'
  return {
    ...place(span.from, end, scale, `${word} ${duration(length)}`),
    kind: span.kind,
    title: `${word}: ${span.to === null ? seconds(length) : duration(length)}`,
    end: isRun && span.to !== null && attempt !== undefined ? attemptMark(attempt, job) : undefined,
    isDashed: span.kind === 'future' || (span.to !== null && span.to > now),
  }
}

/** The end mark of an attempt; running as long as it has none. */
export function attemptMark({ endedAt, error, exit }: AttemptShown, job: Pick<JobFields, 'state'>): MarkName {
  if (endedAt === null) return 'running'
  if (exit === 'cancelled') return 'cancelled'
  if (exit === 'snoozed') return 'scheduled'
  if (exit !== null && /crash|lost|ended|died|killed/.test(exit)) return 'lost'
  if (error !== null) return 'failed'
  return exit === null || job.state === 'done' ? 'done' : 'unknown'
}

/** The steps of a workflow: a lane each, branches indented under the step that opened them. */
export function stepTimeline(
  steps: readonly StepRow[],
  job: JobFields,
  now: number,
  zone: Zone,
  mayFold: boolean,
  open: string | undefined,
): TimelineShown {
  const end = (step: StepRow): number => step.endedAt ?? step.until ?? Math.max(now, step.startedAt)
  const instants = [
    job.createdAt,
    ...steps.flatMap((step) => [step.startedAt, end(step)]),
    ...(job.settledAt === null ? [now] : []),
  ]
  const acting = steps.filter(({ kind }) => !isWait(kind))
  const lengths = acting.map((step) => end(step) - step.startedAt)
  const scale = foldedScale(instants, mayFold ? lengths : undefined)
  return {
    lanes: steps.map((step) => stepLane(step, steps, scale, end(step), now, open)),
    ticks: ticks(instants, scale, now, zone),
    folds: foldsOf(scale),
    flags: [],
    nowX: job.settledAt === null ? scale.x(now) : undefined,
  }
}

function stepLane(
  step: StepRow,
  steps: readonly StepRow[],
  scale: FoldedScale,
  end: number,
  now: number,
  open: string | undefined,
): TimelineLane {
  const length = end - step.startedAt
  const waits = step.endedAt === null && step.until !== null
  const text =
    step.endedAt === null
      ? waits
        ? `until then ${seconds(Math.max(0, end - now))}`
        : seconds(length)
      : duration(length)
  return {
    key: step.address,
    name: step.name === '' ? step.kind : step.name,
    mark: stepMark(step),
    note: step.attempt > 1 ? `${step.kind} · try ${step.attempt}` : step.kind,
    depth: Math.min(3, depthOf(step, steps)),
    isOpen: open === step.address,
    bars: [
      {
        ...place(step.startedAt, end, scale, text),
        kind: barKind(step),
        title: `${step.name}: ${text}`,
        end: step.endedAt === null ? undefined : stepMark(step),
        isDashed: waits,
      },
    ],
  }
}

export function stepMark({ state, kind }: Pick<StepRow, 'state' | 'kind'>): MarkName {
  switch (state) {
    case 'done':
      return 'done'
    case 'failed':
      return 'failed'
    case 'retrying':
      return 'retrying'
    case 'open':
      return isWait(kind) ? 'blocked' : 'running'
    default:
      return state satisfies never
  }
}

/** A step that only waits: for a time, or for an event. */
function isWait(kind: string): boolean {
  return kind === 'sleep' || kind === 'event' || kind === 'wait'
}

function barKind({ state, kind }: StepRow): string {
  if (isWait(kind)) return 'scheduled'
  return state === 'failed' ? 'bad' : state === 'retrying' ? 'back-off' : state === 'open' ? 'running' : 'done'
}

function depthOf(step: StepRow, steps: readonly StepRow[]): number {
  const parent = steps.find(({ address }) => address === step.parent)
  return parent === undefined || parent === step ? 0 : 1 + depthOf(parent, steps)
}

function place(from: number, to: number, { x }: FoldedScale, text: string): Pick<TimelineBar, 'x' | 'width' | 'text'> {
  const left = Math.min(x(from), 100 - LEAST_PERCENT)
  const width = Math.max(LEAST_PERCENT, x(to) - left)
  return { x: left, width, text: width >= TEXT_MIN_PERCENT ? text : '' }
}

function ticks(instants: readonly number[], { x }: FoldedScale, now: number, zone: Zone): TimelineTick[] {
  const sorted = [...new Set(instants)].sort((a, b) => a - b)
  const kept: TimelineTick[] = []
  for (const at of sorted) {
    const tick = { x: x(at), text: dayAndTime(at, now, zone, true) }
    const before = kept.at(-1)
    if (before === undefined || tick.x - before.x >= TICK_MIN_PERCENT) kept.push(tick)
  }
  return kept
}

function foldsOf({ folds }: FoldedScale): TimelineShown['folds'] {
  return folds.map(({ x, width, from, to }) => ({ x, width, text: seconds(to - from) }))
}
