import type { Registered } from '../job/definition/registry.js'
import { categoriesOf } from '../job/definition/inheritance.js'
import { jsonSchemaOf } from '../job/definition/json-schema.js'
import { mergeRetry } from '../job/rules/retry.js'
import type { ListedJob } from './mill-type.js'

export function toListedJob(registered: Registered): ListedJob {
  return {
    name: registered.job.name,
    description: registered.job.options.description,
    queue: registered.queue,
    priority: registered.priority,
    timeoutMs: registered.timeoutMs,
    retryLimit: mergeRetry(registered.retryLevels).limit,
    categories: categoriesOf(registered.job).map((category) => category.name),
    labels: registered.labels,
    inputSchema: jsonSchemaOf(registered.job.options.input),
    job: registered.job,
  }
}
