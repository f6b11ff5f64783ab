import { pause, resume, retry } from './commands.js'
import { cancel } from './ends.js'
import { jobOf, Refused } from './state.js'
import type { Group, Model, ModelJob, State } from './state.js'

/** A sealed group takes what its own running members add, until it is complete. */
export function admit(model: Model, name: string, by: ModelJob | undefined): void {
  const group = model.groups.get(name)
  if (group === undefined) model.groups.set(name, newGroup())
  else if (group.sealedAt !== null) {
    const isMember = by?.group === name && by.state === 'running'
    if (!isMember || group.completedAt !== null) throw new Refused('E_GROUP_SEALED')
  }
}

const newGroup = (): Group => ({ sealedAt: null, completedAt: null, whenDone: null })

/** The second call changes nothing, also not the job that follows the group. */
export function seal(model: Model, name: string, whenDone: Group['whenDone']): boolean {
  const group = model.groups.get(name) ?? newGroup()
  if (group.sealedAt !== null) return false
  if ((whenDone?.given.after ?? []).some((number) => jobOf(model, number).state === 'gone'))
    throw new Refused('E_PARENT_MISSING')
  Object.assign(group, { sealedAt: model.now, whenDone })
  model.groups.set(name, group)
  return true
}

export type GroupVerb = 'pause' | 'resume' | 'cancel' | 'retryFailed'

/** Does to every member what the command does to one, the newest first; how many it changed. */
export function commandGroup(model: Model, name: string, verb: GroupVerb): number {
  const command = { pause, resume, cancel, retryFailed: retry }[verb]
  const isMeant = (job: ModelJob): boolean =>
    verb === 'retryFailed'
      ? job.state === 'failed'
      : verb === 'resume'
        ? job.state === 'paused' || job.state === 'running'
        : !(verb === 'pause' && job.state === 'paused')
  const members = model.jobs.filter((job) => job.group === name && isMeant(job)).toReversed()
  return members.filter((job) => unlessTaken(() => command(model, job))).length
}

/** A member whose key or slot another job has by now is left out. */
function unlessTaken(command: () => boolean): boolean {
  try {
    return command()
  } catch (error) {
    if (error instanceof Refused) return false
    throw error
  }
}

/** Members by queue and state. Forgotten ones stay counted as they ended, deleted ones do not. */
export function membersOf(model: Model, name: string): { queue: string; state: State; members: number }[] {
  const counts = new Map<string, { queue: string; state: State; members: number }>()
  for (const job of model.jobs) {
    const state = job.state === 'gone' ? job.forgotten : job.state
    if (job.group !== name || state === null) continue
    const count = counts.get(`${job.queue}\n${state}`) ?? { queue: job.queue, state, members: 0 }
    counts.set(`${job.queue}\n${state}`, { ...count, members: count.members + 1 })
  }
  return [...counts.values()]
}

/** Nothing of a paused queue begins. */
export function pauseQueue(model: Model, queue: string, forMs: number | null): void {
  model.paused.set(queue, forMs === null ? null : model.now + forMs)
}

export function resumeQueue(model: Model, queue: string): boolean {
  return model.paused.delete(queue)
}
