import type { Registered } from '../job/registry.js'
import { categoriesOf } from '../job/resolve.js'
import { mergeRetry } from '../job/retry.js'
import type { ListedJob } from './surface.js'

/** A registered job as people see it. */
export function listed(registered: Registered): ListedJob {
  return {
    name: registered.job.name,
    description: registered.job.options.description,
    queue: registered.queue,
    priority: registered.priority,
    timeoutMs: registered.timeoutMs,
    retryLimit: mergeRetry(registered.retryLevels).limit,
    categories: categoriesOf(registered.job).map((category) => category.name),
    labels: registered.labels,
    job: registered.job,
  }
}
