import { workflowsScenario } from '../workflows.mjs'

export const scenario = (bench) => workflowsScenario(bench, { contestant: 'millrace', bare: 'answers', gates: 'plain' })
