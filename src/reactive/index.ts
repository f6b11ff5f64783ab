/** `millrace/reactive`: signals, spins, deferreds and mailboxes in one context with a single drainer. */
export { batch } from './graph/batch.js'
export { latest } from './combinators/latest.js'
export { never } from './combinators/never.js'
export { debounce, sample, throttle } from './combinators/rate-limits.js'
export { sleep } from './combinators/sleep.js'
export type { ChildSpec, SupervisorOptions } from './combinators/supervise.js'
export { supervise } from './combinators/supervise.js'
export { attempt, parallel, race, timeout } from './combinators/parallel-and-race.js'
export type { Computed, ComputedOptions } from './graph/computed.js'
export { computed, untracked } from './graph/computed.js'
export type { Context, ContextState, ContextStats, SpawnHandle, SpawnOptions } from './context/context-interface.js'
export { createContext, createSimulation, currentContext } from './context/create-context.js'
export type { CellOptions, Deferred } from './mailboxes/deferred.js'
export { deferred } from './mailboxes/deferred.js'
export type { Cleanup } from './graph/effect.js'
export { effect } from './graph/effect.js'
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
  NotReadyError,
  NotSettledError,
  SerializeError,
} from './errors.js'
export type { Executor, TimerHandle } from './executors/executors.js'
export { eventLoopExecutor, synchronousExecutor } from './executors/executors.js'
export type { Fault, FaultCode } from './fault.js'
export type { Turned } from './spins/iterate.js'
export { iterate } from './spins/iterate.js'
export type { Mailbox } from './mailboxes/mailbox.js'
export { mailbox } from './mailboxes/mailbox.js'
export type { ContextOptions, ForkOptions } from './context/options.js'
export type { EffectRequest, Op } from './spins/request.js'
export type { Result } from './result.js'
export { scope } from './spins/scope.js'
export type { Permit, Semaphore } from './mailboxes/semaphore.js'
export { semaphore } from './mailboxes/semaphore.js'
export type { Equality, FedSignal, Signal, SignalOptions } from './graph/signal.js'
export { signal } from './graph/signal.js'
export type { RestoreOptions } from './snapshot/restore.js'
export { restore } from './snapshot/restore.js'
export type { Snapshot, SnapshotOptions } from './snapshot/snapshot.js'
export { deserialize } from './snapshot/snapshot.js'
export type { Body, Spin, SpinOptions } from './spins/spin.js'
export { spin } from './spins/spin.js'
export { onCancel, step } from './spins/step.js'
export type { StopOptions, StopReport } from './context/stop.js'
export type { TraceListener, TraceRecord } from './context/trace.js'
export type { Interval, Readable, Source } from './spins/track.js'
export { read, track } from './spins/track.js'
export type { Waitable } from './spins/wait.js'
export { waitFor } from './spins/wait.js'
export type { WorkerPoolOptions } from './executors/worker-pool.js'
export { workerPoolExecutor } from './executors/worker-pool.js'
