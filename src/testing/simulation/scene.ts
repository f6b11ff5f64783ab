import type { CaptureOptions } from '../../job/attempt/capture.js'
import type { AnyJob } from '../../job/definition/define.js'
import type { MillOptions } from '../../mill/options.js'
import type { Census } from '../../store/census.js'
import type { UniqueRule } from '../checkers/unique-checks.js'
import type { SequenceFacts } from '../checkers/sequence-checks.js'
import type { WorkflowFacts } from '../checkers/workflow-checks.js'
import type { SimProcess } from './sim-process.js'

/** What a fleet runs, and what the checkers must know of it. */
export interface Scene {
  readonly jobs: (process: SimProcess) => readonly AnyJob[]
  readonly capture?: CaptureOptions | undefined
  /** Further options of the mills. */
  readonly options?: ((process: SimProcess) => MillOptions) | undefined
  /** Names of jobs whose work and end are one transaction. */
  readonly banking?: ReadonlySet<string> | undefined
  /** How jobs are unique, by name. */
  readonly uniques?: ReadonlyMap<string, UniqueRule> | undefined
  /** The handler run that returned a stored result of an item; left out where no job is a sequence. */
  readonly originOf?: SequenceFacts['originOf']
  /** The payloads of events whose sending was acknowledged, by workflow; left out where no job is one. */
  readonly sent?: WorkflowFacts['sent']
  /** Checks of its own: after every change of the store, and as a handler begins. */
  readonly checks?:
    | { check(census: Census): void; begins(id: string, process: SimProcess, fence: number): void }
    | undefined
}
