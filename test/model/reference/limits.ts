import type { Model, ModelJob } from './state.js'

/** The limits of every program: jobs in flight of a job or a queue, and starts of a job in a window, in all mills together. */
export const LIMITS: {
  readonly inFlight: { readonly [job: string]: number }
  readonly starts: { readonly [job: string]: { readonly max: number; readonly perMs: number } }
  readonly inQueue: { readonly [queue: string]: number }
} = { inFlight: { gated: 1 }, starts: { paced: { max: 2, perMs: 3_600_000 } }, inQueue: { tight: 1 } }

/** Jobs under limits are claimed by themselves: they and other jobs take turns, so which kind is first is not promised. */
export function isLimited({ name, queue }: ModelJob): boolean {
  return name in LIMITS.inFlight || name in LIMITS.starts || queue in LIMITS.inQueue
}

/** How surely a job may begin now. A start may count for a two-hundredth of the window longer. */
export function roomFor(model: Model, job: ModelJob): 'surely' | 'perhaps' | 'no' {
  const running = model.jobs.filter(({ state }) => state === 'running')
  const ofName = running.filter(({ name }) => name === job.name).length
  const ofQueue = running.filter(({ queue }) => queue === job.queue).length
  if (ofName >= (LIMITS.inFlight[job.name] ?? Infinity) || ofQueue >= (LIMITS.inQueue[job.queue] ?? Infinity))
    return 'no'
  const rate = LIMITS.starts[job.name]
  if (rate === undefined) return 'surely'
  const within = (ms: number): number =>
    model.starts.filter(({ name, at }) => name === job.name && at > model.now - ms).length
  if (within(rate.perMs) >= rate.max) return 'no'
  return within(rate.perMs * (1 + 1 / 200)) >= rate.max ? 'perhaps' : 'surely'
}

/** A start counts when its job is claimed, however the attempt ends. */
export function noteStart(model: Model, { name }: ModelJob): void {
  if (name in LIMITS.starts) model.starts = [...model.starts, { name, at: model.now }]
}
