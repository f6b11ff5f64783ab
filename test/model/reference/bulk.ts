import { pause, remove, resume, retry } from './commands.js'
import { cancel } from './ends.js'
import { Refused } from './state.js'
import type { Model, ModelJob, State } from './state.js'

export type BulkVerb = 'retryAll' | 'cancelAll' | 'deleteAll' | 'pauseAll' | 'resumeAll'

/** At least one of these: a bulk without a filter is refused. */
export interface BulkFilter {
  readonly queue?: string
  readonly job?: string
  readonly group?: string
  readonly key?: string
}

export interface BulkCount {
  changed: number
  /** Another job has the key or the unique value. */
  held: number
  /** The command does not apply to it. */
  moved: number
}

const RULES: { readonly [verb in BulkVerb]: readonly [(model: Model, job: ModelJob) => boolean, readonly State[]] } = {
  retryAll: [retry, ['failed', 'parked', 'retrying']],
  cancelAll: [cancel, ['scheduled', 'ready', 'retrying', 'blocked', 'paused', 'running']],
  deleteAll: [remove, ['scheduled', 'ready', 'retrying', 'blocked', 'paused', 'parked', 'done', 'failed', 'cancelled']],
  pauseAll: [pause, ['scheduled', 'ready', 'retrying', 'blocked', 'running']],
  resumeAll: [resume, ['paused', 'running']],
}

/** Does to every match what the command does to one, the newest first. The matches of a page are those when it begins. */
export function commandAll(model: Model, verb: BulkVerb, filter: BulkFilter, page: number): BulkCount {
  const [command, states] = RULES[verb]
  const isMatch = (job: ModelJob): boolean =>
    states.includes(job.state as State) &&
    (filter.queue === undefined || filter.queue === job.queue) &&
    (filter.job === undefined || filter.job === job.name) &&
    (filter.group === undefined || filter.group === job.group) &&
    (filter.key === undefined || filter.key === job.key)
  const count: BulkCount = { changed: 0, held: 0, moved: 0 }
  let below = Infinity
  for (;;) {
    const matches = model.jobs
      .filter((job) => job.number < below && isMatch(job))
      .toReversed()
      .slice(0, page)
    for (const job of matches) count[outcomeOf(() => command(model, job))] += 1
    if (matches.length < page) return count
    below = (matches.at(-1) as ModelJob).number
  }
}

function outcomeOf(command: () => boolean): keyof BulkCount {
  try {
    return command() ? 'changed' : 'moved'
  } catch (error) {
    if (error instanceof Refused) return 'held'
    throw error
  }
}
