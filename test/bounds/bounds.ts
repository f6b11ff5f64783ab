import type { Bound } from './bound.js'
import { claimLimits } from './claim-limits.js'
import { codecLimits } from './codec-limits.js'
import { enqueueLimits } from './enqueue-limits.js'
import { observingLimits } from './observing-limits.js'
import { placeLimits } from './place-limits.js'
import { readPages } from './read-pages.js'
import { scheduleLimits } from './schedule-limits.js'
import { sequenceLimits } from './sequence-limits.js'
import { sqlLimits } from './sql-limits.js'
import { storeWrites } from './store-writes.js'
import { timeLimits } from './time-limits.js'
import { upkeepBatches } from './upkeep-batches.js'
import { workerLimits } from './worker-limits.js'
import { workflowLimits } from './workflow-limits.js'

/** Every bound with its case. */
export const bounds: readonly Bound[] = [
  ...enqueueLimits,
  ...codecLimits,
  ...timeLimits,
  ...readPages,
  ...storeWrites,
  ...upkeepBatches,
  ...scheduleLimits,
  ...workerLimits,
  ...claimLimits,
  ...placeLimits,
  ...sqlLimits,
  ...sequenceLimits,
  ...observingLimits,
  ...workflowLimits,
]
