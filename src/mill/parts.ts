import type { EngineEvents } from '../observe/engine-events.js'
import type { StoreChoice } from '../store/choice.js'
import type { HandlerExecutor } from '../worker/executors/loop.js'
import type { SignalStops } from '../world/signals.js'
import type { UncaughtErrors } from '../world/uncaught.js'
import type { World } from '../world/world.js'
import type { StartParts } from './started-parts.js'

/** The parts that a mill is built from; tests and the simulator pass their own. */
export interface MillParts {
  readonly world: World
  readonly store: StoreChoice
  /** Calls handlers. Default: in this process's event loop. */
  readonly executor?: HandlerExecutor | undefined
  /** Starts what runs jobs; default: a worker that claims by itself, with upkeep. The test kit brings one that it steps. */
  readonly startParts?: StartParts | undefined
  /** The length of the first quarantine (`job/rules/quarantine.ts`), in ms; default: a minute. */
  readonly quarantineMs?: number | undefined
  /** The grace after which a handler that blocks the event loop is reported, in ms; default: 30 s. */
  readonly blockGraceMs?: number | undefined
  /** Receives the signals of the process for `stopOnSignals`; default: the system's. */
  readonly signals?: SignalStops | undefined
  /** Receives the uncaught errors of the process; default: none, so that Node's rule applies to all of them. */
  readonly uncaught?: UncaughtErrors | undefined
  /** Receives engine events in addition to the log. */
  readonly watch?: Partial<EngineEvents> | undefined
}
