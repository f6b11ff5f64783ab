import type { AttemptShown, ErrorShown, JobFields, JobVerb } from '../../../protocol.js'
import { UNKNOWN, whole } from '../../format/number.js'
import { duration } from '../../format/duration.js'
import { visible } from '../../format/text.js'
import type { MarkName } from '../../parts/state.js'
import { jobsHref, printRoute, term } from '../../route.js'
import { attemptText, progressText } from '../jobs/computed.js'
import { attemptMark } from './timeline.js'

export interface Fact {
  readonly name: string
  readonly value: string
  readonly href?: string
}

/** What the job is: one line of names and values. What it has not is left out. */
export function facts(job: JobFields): Fact[] {
  const optional = (name: string, value: string | null, href?: string): Fact[] =>
    value === null || value === '' ? [] : [href === undefined ? { name, value } : { name, value, href }]
  return [
    { name: 'queue', value: job.queue, href: printRoute({ page: 'queues', id: job.queue }) },
    { name: 'attempt', value: attemptText(job).replace('/', ' of ') },
    ...optional('progress', job.progress === null ? null : progressText(job.progress)),
    { name: 'priority', value: whole(job.priority) },
    ...optional('key', job.key, job.key === null ? undefined : jobsHref(term('key', job.key))),
    ...optional('labels', job.labels.join(', ')),
    ...optional('group', job.group, job.group === null ? undefined : printRoute({ page: 'groups', id: job.group })),
    ...optional(
      'recurring',
      job.schedule,
      job.schedule === null ? undefined : printRoute({ page: 'recurring', id: job.schedule }),
    ),
    ...optional(
      'called by',
      job.calledBy,
      job.calledBy === null ? undefined : printRoute({ page: 'job', id: job.calledBy }),
    ),
    ...(job.crashes === 0 ? [] : [{ name: 'crashes', value: whole(job.crashes) }]),
  ]
}

/** The sentence at the top: why it is not running, or how it ended. */
export function whyText(job: JobFields, ageText: string): string {
  if (job.undecoded !== null) return visible(job.undecoded)
  if (job.why !== null) return visible(job.why.text)
  const took = job.tookMs === null ? '' : `, ${duration(job.tookMs)} for the last attempt`
  if (job.state === 'running') return `It has run for ${ageText}.${REQUESTS[job.requested ?? 'none']}`
  if (job.state === 'done') return `It is done${took}.`
  if (job.lastError !== null) return visible(`${job.lastError.name}: ${job.lastError.message.split('\n')[0]}`)
  return visible(job.reason ?? '')
}

const REQUESTS = {
  pause: ' A pause is requested: it stops after this attempt.',
  cancel: ' A cancel is requested: its handler is asked to stop.',
  none: '',
} as const

/** Why a button of the job's page does not apply, though it would in this state: it was pressed before. */
export function alreadyRequested({ requested }: Pick<JobFields, 'requested'>, verb: JobVerb): string | undefined {
  return requested !== null && verb === `job.${requested}` ? `A ${requested} is requested already.` : undefined
}

/** A line of a stack: frames of the app stand out, those of packages are folded. */
export interface StackLine {
  readonly text: string
  readonly isOurs: boolean
}

export interface ErrorLines {
  readonly head: string
  readonly code: string
  readonly frames: readonly StackLine[]
  /** Frames of packages and of Node that are not shown at first. */
  readonly folded: readonly string[]
  readonly causes: readonly string[]
}

export function errorLines(error: ErrorShown): ErrorLines {
  const lines = (error.stack ?? '').split('\n').map((line) => line.trim())
  const frames = lines.filter((line) => line.startsWith('at '))
  const isForeign = (line: string): boolean => line.includes('node_modules') || line.includes('node:')
  const ours = frames.filter((line) => !isForeign(line))
  return {
    head: visible(`${error.name}: ${error.message}`),
    code: error.code === null ? '' : String(error.code),
    frames: ours.map((text, i) => ({ text: visible(text), isOurs: i === 0 })),
    folded: frames.filter(isForeign).map(visible),
    causes: causesOf(error),
  }
}

function causesOf({ cause, errors }: ErrorShown): string[] {
  const inner = cause === null ? [] : [visible(`${cause.name}: ${cause.message}`), ...causesOf(cause)]
  return [...inner, ...errors.map(({ name, message }) => visible(`${name}: ${message}`))]
}

/** An attempt, as the list shows it. */
export interface AttemptLine {
  readonly number: number
  readonly mark: MarkName
  readonly end: string
  readonly startedAt: number
  readonly took: string
  readonly worker: string
  readonly error: ErrorLines | undefined
  readonly logLines: number
}

/** Attempts, newest first: the last error is what a reader looks for. */
export function attemptLines(job: JobFields): AttemptLine[] {
  const line = (attempt: AttemptShown): AttemptLine => ({
    number: attempt.number,
    mark: attemptMark(attempt, job),
    end: attempt.endedAt === null ? 'running' : (attempt.exit ?? (attempt.error === null ? 'done' : 'failed')),
    startedAt: attempt.startedAt,
    took: attempt.endedAt === null ? UNKNOWN : duration(attempt.endedAt - attempt.startedAt),
    worker: attempt.host === null ? attempt.worker.slice(0, 8) : `${attempt.worker.slice(0, 8)} on ${attempt.host}`,
    error: attempt.error === null ? undefined : errorLines(attempt.error),
    logLines: attempt.logLines,
  })
  return job.attempts.map(line).toReversed()
}

/** The links of the option `links`, with the values of this job put in; each value is encoded. */
export function outsideLinks(
  links: readonly { readonly name: string; readonly url: string }[],
  job: JobFields,
): { name: string; href: string }[] {
  const values: Readonly<Record<string, string | null>> = {
    id: job.id,
    job: job.job,
    queue: job.queue,
    trace: job.trace,
  }
  return links.flatMap(({ name, url }) => {
    const names = [...url.matchAll(/\{([^}]+)\}/g)].map(([, found]) => found as string)
    if (names.some((each) => !values[each])) return []
    const href = url.replace(/\{([^}]+)\}/g, (_, each: string) => encodeURIComponent(values[each] ?? ''))
    return /^https?:/.test(href) ? [{ name, href }] : []
  })
}

/** `▂▃▂▅`: how long the same job took lately, against this one. */
export function latelyText(p50: number | null, tookMs: number | null): string {
  const usual = p50 === null ? 'p50 not known' : `p50 ${duration(p50)}`
  return tookMs === null ? usual : `${usual}, this one ${duration(tookMs)}`
}

/** What a workflow waits for, in words. */
export function waitingText({
  kind,
  name,
  event,
}: {
  readonly kind: string
  readonly name: string
  readonly event: string | null
}): string {
  if (event !== null) return `waits for the event ${event}`
  if (kind === 'sleep') return name === '' ? 'sleeps' : `sleeps in ${name}`
  return kind === 'call' ? `waits for the job ${name}` : `waits for ${name === '' ? kind : name}`
}
