import { isUnfinished, jobOf, Refused } from './state.js'
import type { Model, ModelJob, Slot, Unique } from './state.js'
import { hasBegun } from './workflows.js'

/** The unfinished job that has the key; of a running job and its successor, the successor. */
export function holderOf(model: Model, name: string, key: string): ModelJob | undefined {
  return model.jobs.findLast((job) => job.name === name && job.key === key && isUnfinished(job))
}

export const slotName = (name: string, unique: Unique): string => `${name}\n${unique.value}`

const whileOf = (unique: Unique): 'unfinished' | 'waiting' =>
  unique.while ?? (unique.onDuplicate === 'reschedule' ? 'waiting' : 'unfinished')

export function slotVerdict(
  model: Model,
  slot: Slot | undefined,
  asked: Unique,
): 'free' | 'ignore' | 'reject' | 'replace' | 'reschedule' {
  const onDuplicate = asked.onDuplicate ?? 'ignore'
  const job = slot === undefined ? undefined : jobOf(model, slot.holder)
  const isThere = job !== undefined && isUnfinished(job)
  const waits = isThere && job.state !== 'running' && !hasBegun(job)
  // The window of a debounce only bounds how long a job is postponed.
  const inWindow = slot !== undefined && slot.until !== null && slot.until > model.now && onDuplicate !== 'reschedule'
  if (!inWindow && !(whileOf(asked) === 'unfinished' ? isThere : waits)) return 'free'
  if (onDuplicate === 'replace' || onDuplicate === 'reschedule') return waits ? onDuplicate : 'reject'
  return onDuplicate
}

/** A cancelled or deleted job gives up its slot, window or not. */
export function freeSlot(model: Model, job: ModelJob): void {
  for (const [name, slot] of model.slots) if (slot.holder === job.number) model.slots.delete(name)
}

/** A job that is retried needs its key and its slot again; windows are for enqueues alone. */
export function retake(model: Model, job: ModelJob): void {
  if (job.key !== null && holderOf(model, job.name, job.key) !== undefined) throw new Refused('E_DUPLICATE_KEY')
  if (job.unique === null) return
  const name = slotName(job.name, job.unique)
  const slot = model.slots.get(name)
  const other = slot === undefined || slot.holder === job.number ? undefined : jobOf(model, slot.holder)
  const isInTheWay =
    other !== undefined && isUnfinished(other) && (whileOf(job.unique) === 'unfinished' || other.state !== 'running')
  if (isInTheWay) throw new Refused('E_DUPLICATE_JOB')
  const until = slot !== undefined && slot.until !== null && slot.until > model.now ? slot.until : null
  model.slots.set(name, { holder: job.number, until })
}
