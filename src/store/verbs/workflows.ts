import { StoreError } from '../../errors.js'
import type { WorkflowStore } from '../workflows.js'
import type { VerbRunner } from './verb.js'

/** The verbs of workflows on the store of these steps. */
export function workflowVerbs(_verbs: VerbRunner): WorkflowStore {
  return {
    sendEvent: () => notBuilt('sendEvent'),
    changeWorkflow: () => notBuilt('changeWorkflow'),
    readWorkflow: () => notBuilt('readWorkflow'),
    readSteps: () => notBuilt('readSteps'),
  }
}

export function notBuilt(verb: string): Promise<never> {
  return Promise.reject(new StoreError('E_STORE', `${verb} is not built yet`))
}
