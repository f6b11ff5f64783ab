import type { State } from '../../job/rules/states.js'

/** What a user may do: each role may do all that the one before it may. */
export type Role = 'viewer' | 'operator' | 'admin'
export const ROLES: readonly Role[] = ['viewer', 'operator', 'admin']

/** Every verb, and the least role that may use it. The server checks it, and the web side draws its buttons from it. */
export const VERBS = {
  'job.retry': 'operator',
  'job.cancel': 'operator',
  'job.pause': 'operator',
  'job.resume': 'operator',
  'job.runNow': 'operator',
  'job.send': 'operator',
  'job.delete': 'admin',
  'job.edit': 'admin',
  'queue.pause': 'operator',
  'queue.resume': 'operator',
  'queue.retryOne': 'operator',
  'recurring.runNow': 'operator',
  'recurring.pause': 'operator',
  'recurring.resume': 'operator',
  'recurring.backfill': 'admin',
  'recurring.delete': 'admin',
  'group.pause': 'operator',
  'group.resume': 'operator',
  'group.cancel': 'operator',
  'group.retryFailed': 'operator',
  'group.seal': 'operator',
  'sequence.start': 'operator',
  'sequence.pause': 'operator',
  'sequence.resume': 'operator',
  'sequence.cancel': 'operator',
  'sequence.reset': 'admin',
  'bulk.retry': 'operator',
  'bulk.cancel': 'operator',
  'bulk.pause': 'operator',
  'bulk.resume': 'operator',
  'bulk.delete': 'admin',
  'bulk.stop': 'operator',
  enqueue: 'admin',
} as const satisfies Readonly<Record<string, Role>>

export type Verb = keyof typeof VERBS
export type JobVerb = Extract<Verb, `job.${string}`>

/** Whether a role may use a verb. */
export function canDo(role: Role, verb: Verb): boolean {
  return ROLES.indexOf(role) >= ROLES.indexOf(VERBS[verb])
}

/** What a user reads whose role may not use a verb, and which role may. */
export function refusalText(role: Role, verb: Verb): string {
  return `${withArticle(role)} cannot do this. Ask for the role ${VERBS[verb]}.`
}

export function withArticle(role: Role): string {
  return `${role === 'viewer' ? 'A' : 'An'} ${role}`
}

/** The states of a job to which a verb applies. */
export const STATES_OF: Readonly<Record<JobVerb, readonly State[]>> = {
  'job.retry': ['failed', 'cancelled', 'parked', 'retrying'],
  'job.cancel': ['scheduled', 'ready', 'retrying', 'blocked', 'paused', 'running'],
  'job.pause': ['scheduled', 'ready', 'retrying', 'blocked', 'running'],
  'job.resume': ['paused'],
  'job.runNow': ['scheduled', 'retrying'],
  'job.send': ['scheduled', 'ready', 'retrying', 'blocked', 'paused', 'parked', 'running'],
  'job.delete': ['scheduled', 'ready', 'retrying', 'blocked', 'paused', 'parked', 'done', 'failed', 'cancelled'],
  'job.edit': ['scheduled', 'ready', 'retrying', 'blocked', 'paused', 'parked'],
}

/** Whether a verb asks first; the dialog names the subject and the consequence. */
export function isDestructive(verb: Verb): boolean {
  return DESTRUCTIVE.has(verb)
}
const DESTRUCTIVE: ReadonlySet<Verb> = new Set<Verb>([
  'job.cancel',
  'job.delete',
  'recurring.backfill',
  'recurring.delete',
  'group.cancel',
  'sequence.cancel',
  'sequence.reset',
  'bulk.retry',
  'bulk.cancel',
  'bulk.pause',
  'bulk.resume',
  'bulk.delete',
])

/** The values of a verb beside its target. */
export interface ActArguments {
  /** queue.pause: until then. */
  readonly until?: number | undefined
  /** job.retry of a workflow: forget everything that it has recorded. */
  readonly fresh?: boolean | undefined
  /** job.cancel of a workflow: false ends it at once, without unwinding. */
  readonly unwind?: boolean | undefined
  /** job.send: the name of the event. */
  readonly event?: string | undefined
  /** job.send, job.edit and enqueue: a payload as JSON text. */
  readonly payload?: string | undefined
  /** job.edit and enqueue. */
  readonly title?: string | undefined
  readonly labels?: readonly string[] | undefined
  readonly queue?: string | undefined
  readonly priority?: number | undefined
  readonly dueAt?: number | undefined
  /** enqueue. */
  readonly key?: string | undefined
  readonly group?: string | undefined
  /** recurring.backfill. */
  readonly from?: number | undefined
  readonly to?: number | undefined
}

export interface ActRequest {
  readonly verb: Verb
  /**
   * The id of the job, sequence or bulk, the name of the queue, group or schedule, for `enqueue` the name of the job, for a bulk the id
   * of its preview.
   */
  readonly target: string
  /**
   * The state for which the button was drawn: of a job or a sequence its state, of a queue 'open' or 'paused', of a schedule 'running' or
   * 'paused'. When the target has left it, nothing is changed. Required for verbs of a job and a sequence.
   */
  readonly expect?: string | undefined
  /** A random text of 16 to 64 characters: a repeated request of the same nonce gives the same answer and changes nothing. */
  readonly nonce: string
  /** Written to the audit trail: at most 500 characters. */
  readonly reason?: string | undefined
  readonly args?: ActArguments | undefined
}

/** What a verb did. Also when nothing was changed this is status 200. */
export interface ActAnswer {
  /** False: the target has left the state, or the verb does not apply; `text` says what happened to it. */
  readonly changed: boolean
  /** A sentence for the toast: "Retried charge 01980f2c." or "Worker 3f finished it 2 s ago. Nothing was changed." */
  readonly text: string
  /** The state now, where it is known. */
  readonly state: string | null
  /** The route of what it did: '#/job/…', '#/queues/…'. */
  readonly link: string | null
  /** The verb that takes it back, where there is one. */
  readonly undo: Verb | null
  /** enqueue and runNow: the id of the job; a bulk: the id of its topic. */
  readonly id: string | null
  /** Jobs that were changed, where it is not one. */
  readonly count: number | null
}
