import { workflowsScenario } from '../workflows.mjs'

export const scenario = (bench) => workflowsScenario(bench, { contestant: 'millrace', gates: 'plain' })
