import { STATES_OF, isDestructive } from '../../../protocol.js'
import type { JobVerb } from '../../../protocol.js'
import type { IconName } from '../../icons.js'
import type { StateName } from '../state.js'

/** An action on a job, as a button or a menu shows it. */
export interface JobAct {
  readonly verb: JobVerb
  readonly label: string
  readonly icon: IconName
  readonly asks: boolean
  readonly shortcut: 'retry' | 'pause' | undefined
  /** Why it does not apply to the state that the job is in. */
  readonly unavailable: string | undefined
  /** What the dialog says: the subject and the consequence. */
  readonly question: (name: string) => string
}

const ACTS: readonly Pick<JobAct, 'verb' | 'label' | 'icon' | 'shortcut'>[] = [
  { verb: 'job.retry', label: 'Retry now', icon: 'retry', shortcut: 'retry' },
  { verb: 'job.runNow', label: 'Run now', icon: 'play', shortcut: 'retry' },
  { verb: 'job.pause', label: 'Pause', icon: 'pause', shortcut: 'pause' },
  { verb: 'job.resume', label: 'Resume', icon: 'play', shortcut: 'pause' },
  { verb: 'job.cancel', label: 'Cancel', icon: 'close', shortcut: undefined },
  { verb: 'job.delete', label: 'Delete', icon: 'close', shortcut: undefined },
]

const QUESTIONS: Partial<Record<JobVerb, (name: string, state: StateName) => string>> = {
  'job.cancel': (name, state) =>
    state === 'running'
      ? `${name} is running: its handler is asked to stop, and what it has done so far is not undone. Jobs that wait for it are released as their policy says.`
      : `${name} will not run. Jobs that wait for it are released as their policy says.`,
  'job.delete': (name) => `${name} is removed with its payload, result and history. This cannot be taken back.`,
}

/** Every action, with the reason where it does not apply. `Run now` and `Retry now` are one wish: only the fitting one is listed. */
export function jobActs(state: StateName): JobAct[] {
  return ACTS.filter(({ verb }) => !isTwin(verb, state)).map((act) => ({
    ...act,
    asks: isDestructive(act.verb),
    unavailable: STATES_OF[act.verb].includes(state) ? undefined : `This job is ${state}: it cannot do this.`,
    question: (name) => QUESTIONS[act.verb]?.(name, state) ?? '',
  }))
}

/** Of two actions with one meaning, the one that does not apply. */
function isTwin(verb: JobVerb, state: StateName): boolean {
  if (verb === 'job.resume') return state !== 'paused'
  if (verb === 'job.pause') return state === 'paused'
  if (verb === 'job.runNow') return state !== 'scheduled'
  if (verb === 'job.retry') return state === 'scheduled'
  return false
}

const LIKELY: Partial<Record<StateName, JobVerb>> = {
  failed: 'job.retry',
  cancelled: 'job.retry',
  parked: 'job.retry',
  retrying: 'job.retry',
  scheduled: 'job.runNow',
  ready: 'job.pause',
  blocked: 'job.pause',
  paused: 'job.resume',
  running: 'job.cancel',
}

export function likelyAct(state: StateName): JobAct | undefined {
  return jobActs(state).find(({ verb }) => verb === LIKELY[state])
}

/** The one verb that a job which needs a person is waiting for; undefined when it needs none. */
export function urgentVerb(state: StateName): JobVerb | undefined {
  return state === 'failed' || state === 'parked' ? 'job.retry' : undefined
}
