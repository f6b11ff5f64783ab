import { describe } from '../errors.js'
import type { Executor } from '../executors/executors.js'
import type { Fault } from '../fault.js'

export interface ContextOptions {
  /** Runs the work of the context. Default: `eventLoopExecutor()`. */
  readonly executor?: Executor | undefined
  /** Real time, or time that the caller moves with `advanceBy` and `advanceTo`. Default: `'real'`. */
  readonly clock?: 'real' | 'virtual' | undefined
  /** Values for everything that runs in this context; read them from `currentContext().bindings`. Default: none. */
  readonly bindings?: Readonly<Record<string, unknown>> | undefined
  /** After this many events or milliseconds the drain yields to timers and I/O. Default: 1,000 events, 10 ms. */
  readonly drainBudget?: { readonly events?: number | undefined; readonly ms?: number | undefined } | undefined
  /** Gets every error that no caller can receive. Default: one line to stderr. */
  readonly onFault?: ((fault: Fault) => void) | undefined
  /** Whether an armed timer keeps the process alive. Default: true. */
  readonly keepAlive?: boolean | undefined
  /** How many log entries a body keeps; beyond it, entries that no re-run needs are dropped. Default: 10,000. */
  readonly logLimit?: number | undefined
}

export interface ForkOptions {
  /** Values for everything that runs in the fork; they are added to the parent's and replace those of the same name. */
  readonly bindings?: Readonly<Record<string, unknown>> | undefined
}

/** Throws a `TypeError` that names every invalid option. */
export function checkForkOptions(options: unknown): asserts options is ForkOptions {
  checkRecord('fork', options)
  const { bindings, ...others } = options as Record<string, unknown>
  const problems = Object.keys(others).map((name) => `unknown option ${name}; known is bindings`)
  if (bindings !== undefined && !isRecord(bindings)) {
    problems.push(`bindings must be an object, got ${describe(bindings)}`)
  }
  if (problems.length > 0) throw new TypeError(`fork: ${problems.join('; ')}`)
}

export const DRAIN_EVENTS_MAX = 1000
export const DRAIN_MS_MAX = 10
export const LOG_ENTRIES_MAX = 10_000

const KNOWN = ['executor', 'clock', 'bindings', 'drainBudget', 'onFault', 'keepAlive', 'logLimit']

/** Throws a `TypeError` that names every invalid option. */
export function checkContextOptions(options: unknown, what = 'createContext'): asserts options is ContextOptions {
  checkRecord(what, options)
  const problems = [...findProblems(options as Record<string, unknown>)]
  if (problems.length > 0) throw new TypeError(`${what}: ${problems.join('; ')}`)
}

/** Checks the options of a simulation, whose clock is always virtual. */
export function checkSimulationOptions(options: unknown): void {
  checkRecord('createSimulation', options)
  const { clock } = options as Record<string, unknown>
  if (clock === undefined || clock === 'virtual') return
  throw new TypeError(
    `createSimulation: the clock of a simulation is virtual, got ${describe(clock)}; use createContext for another`,
  )
}

export function checkRecord(what: string, options: unknown): void {
  if (!isRecord(options)) throw new TypeError(`${what}: options must be an object, got ${describe(options)}`)
}

function* findProblems(options: Record<string, unknown>): Generator<string> {
  for (const name of Object.keys(options)) {
    if (!KNOWN.includes(name)) yield `unknown option ${name}; known are ${KNOWN.join(', ')}`
  }
  const { executor, clock, bindings, drainBudget, onFault, keepAlive, logLimit } = options
  if (executor !== undefined && !(isRecord(executor) && typeof executor['execute'] === 'function'))
    yield `executor must be an Executor, got ${describe(executor)}`
  if (clock !== undefined && clock !== 'real' && clock !== 'virtual') {
    yield `clock must be 'real' or 'virtual', got ${describe(clock)}`
  }
  if (bindings !== undefined && !isRecord(bindings)) yield `bindings must be an object, got ${describe(bindings)}`
  if (onFault !== undefined && typeof onFault !== 'function')
    yield `onFault must be a function, got ${describe(onFault)}`
  if (keepAlive !== undefined && typeof keepAlive !== 'boolean') {
    yield `keepAlive must be true or false, got ${describe(keepAlive)}`
  }
  yield* findWrongCount('logLimit', logLimit, 1)
  if (drainBudget === undefined) return
  if (!isRecord(drainBudget)) yield `drainBudget must be an object, got ${describe(drainBudget)}`
  else {
    yield* findWrongCount('drainBudget.events', drainBudget['events'], 1)
    yield* findWrongCount('drainBudget.ms', drainBudget['ms'], 0)
  }
}

function* findWrongCount(name: string, value: unknown, least: number): Generator<string> {
  if (value === undefined || (Number.isInteger(value) && (value as number) >= least)) return
  yield `${name} must be a whole number of ${least} or more, got ${describe(value)}`
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}
