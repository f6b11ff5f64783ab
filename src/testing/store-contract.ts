import { askingCases } from './contract/asking.js'
import type { ContractCase } from './contract/bench.js'
import { claimsCases } from './contract/claims.js'
import { findCases } from './contract/find.js'
import { groupsCases } from './contract/groups.js'
import { groupsModelCases } from './contract/groups-model.js'
import { jobsCases } from './contract/jobs.js'
import { linkCases } from './contract/links.js'
import { replacedParentCases } from './contract/links-replaced.js'
import { manyLanesCases } from './contract/many-lanes.js'
import { movedLinkCases } from './contract/moved-links.js'
import { placesCases } from './contract/places.js'
import { pruningCases } from './contract/pruning.js'
import { scheduleCases } from './contract/schedules.js'
import { quarantineCases } from './contract/quarantine.js'
import { rescueCases } from './contract/rescue.js'
import { settlingCases } from './contract/settling.js'
import { successorCases } from './contract/successors.js'
import { togetherCases } from './contract/together.js'
import { upkeepCases } from './contract/upkeep.js'

/**
 * What every store must do, as cases that need no test framework. A store joins with one line:
 *
 *   for (const { name, run } of storeContract) test(name, async () => run(await open()))
 */
export const storeContract: readonly ContractCase[] = [
  ...jobsCases,
  ...placesCases,
  ...claimsCases,
  ...manyLanesCases,
  ...settlingCases,
  ...upkeepCases,
  ...pruningCases,
  ...rescueCases,
  ...quarantineCases,
  ...findCases,
  ...askingCases,
  ...togetherCases,
  ...scheduleCases,
  ...linkCases,
  ...movedLinkCases,
  ...replacedParentCases,
  ...successorCases,
  ...groupsCases,
  ...groupsModelCases,
]
