/** `millrace/reactive`: signals, spins, deferreds and mailboxes in one context with a single drainer. */
export { batch } from './batch.js'
export { never } from './combinators/never.js'
export { debounce, sample, throttle } from './combinators/pace.js'
export { sleep } from './combinators/sleep.js'
export type { ChildSpec, SupervisorOptions } from './combinators/supervise.js'
export { supervise } from './combinators/supervise.js'
export { attempt, parallel, race, timeout } from './combinators/together.js'
export type { Computed, ComputedOptions } from './computed.js'
export { computed, untracked } from './computed.js'
export type { Context, ContextState, ContextStats, SpawnHandle, SpawnOptions } from './context-interface.js'
export { createContext, createSimulation, currentContext } from './create-context.js'
export type { CellOptions, Deferred } from './deferred.js'
export { deferred } from './deferred.js'
export type { Cleanup } from './effect.js'
export { effect } from './effect.js'
export {
  AddressCollisionError,
  CancelledError,
  ClockModeError,
  ContextStoppedError,
  CycleError,
  DerefInDrainError,
  DisposedError,
  EffectOutsideSpinError,
  EffectTypeError,
  ForeignContextError,
  LogLimitError,
  NoContextError,
  NonDeterminismError,
  NotReadyError,
  NotSettledError,
  SerializeError,
} from './errors.js'
export type { Executor, TimerHandle } from './executors.js'
export { eventLoopExecutor, synchronousExecutor } from './executors.js'
export type { Fault, FaultCode } from './fault.js'
export type { Turned } from './iterate.js'
export { iterate } from './iterate.js'
export type { Mailbox } from './mailbox.js'
export { mailbox } from './mailbox.js'
export type { ContextOptions } from './options.js'
export type { EffectRequest, Op } from './request.js'
export type { Result } from './result.js'
export { scope } from './scope.js'
export type { Permit, Semaphore } from './semaphore.js'
export { semaphore } from './semaphore.js'
export type { Equality, Signal, SignalOptions } from './signal.js'
export { signal } from './signal.js'
export type { Body, Spin, SpinOptions } from './spin.js'
export { spin } from './spin.js'
export { onCancel, step } from './step.js'
export type { StopOptions, StopReport } from './stop.js'
export type { TraceListener, TraceRecord } from './trace.js'
export type { Interval, Readable, Source } from './track.js'
export { read, track } from './track.js'
export type { Waitable } from './wait.js'
export { waitFor } from './wait.js'
export type { WorkerPoolOptions } from './worker-pool.js'
export { workerPoolExecutor } from './worker-pool.js'
