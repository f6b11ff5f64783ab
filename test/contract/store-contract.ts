import { requestedChangeCases } from './requested-changes.js'
import type { ContractCase } from './fixture.js'
import { auditCases } from './audit.js'
import { censusCases } from './census.js'
import { claimsCases } from './claims.js'
import { edgeCases } from './edges.js'
import { findCases } from './find.js'
import { groupsCases } from './groups.js'
import { groupsModelCases } from './groups-model.js'
import { hintCases } from './hints.js'
import { jobsCases } from './jobs.js'
import { changeLogCases } from './change-log.js'
import { listCases } from './lists.js'
import { linkCases } from './links.js'
import { replacedParentCases } from './links-replaced.js'
import { manyLanesCases } from './many-lanes.js'
import { movedLinkCases } from './moved-links.js'
import { uniqueSlotCases } from './unique-slots.js'
import { pruningCases } from './pruning.js'
import { scheduleCases } from './schedules.js'
import { limitCases } from './limits.js'
import { outageCases } from './outages.js'
import { quarantineCases } from './quarantine.js'
import { rescueCases } from './rescue.js'
import { sequenceCases } from './sequences.js'
import { settlingCases } from './settling.js'
import { statisticsCases } from './statistics.js'
import { successorCases } from './successors.js'
import { concurrentCommandCases } from './concurrent-commands.js'
import { workflowCallCases } from './workflow-calls.js'
import { workflowCommandCases } from './workflow-commands.js'
import { workflowCases } from './workflows.js'
import { upkeepCases } from './upkeep.js'

/**
 * What every store must do, as cases that need no test framework. A store joins with one line:
 *
 *   for (const { name, run } of storeContract) test(name, async () => run(await open()))
 */
export const storeContract: readonly ContractCase[] = [
  ...jobsCases,
  ...uniqueSlotCases,
  ...claimsCases,
  ...manyLanesCases,
  ...settlingCases,
  ...upkeepCases,
  ...pruningCases,
  ...rescueCases,
  ...quarantineCases,
  ...limitCases,
  ...outageCases,
  ...findCases,
  ...requestedChangeCases,
  ...concurrentCommandCases,
  ...scheduleCases,
  ...linkCases,
  ...movedLinkCases,
  ...replacedParentCases,
  ...successorCases,
  ...groupsCases,
  ...groupsModelCases,
  ...sequenceCases,
  ...workflowCases,
  ...workflowCommandCases,
  ...workflowCallCases,
  ...auditCases,
  ...statisticsCases,
  ...listCases,
  ...changeLogCases,
  ...censusCases,
  ...hintCases,
  ...edgeCases,
]
