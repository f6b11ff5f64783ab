import { workflowsScenario } from '../workflows.mjs'

export const scenario = (bench) =>
  workflowsScenario(bench, { contestant: 'postgres/millrace', rival: 'dbos', gates: 'rival' })
