/** The front door: every public name, listed by hand. What is not listed is not promised. */
export { millrace } from './mill.js'
export type { Mill, ListedJob, ScheduleOptions } from './mill/surface.js'
export { defaults } from './mill/options.js'
export type { MillOptions } from './mill/options.js'

export { job, category } from './job/define.js'
export type {
  Job,
  AnyJob,
  JobOptions,
  SchemaJobOptions,
  InheritedJobOptions,
  SharedOptions,
  Handler,
  Category,
  CategoryOptions,
} from './job/define.js'
export { lazy } from './job/lazy.js'
export type { Lazy } from './job/lazy.js'
export { Abort, Snooze } from './job/signals.js'
export type { Context, TestContext } from './job/context.js'
export type { After, EnqueueOptions, EnqueueArguments, Enqueueable, Handle } from './job/enqueue.js'
export type { JobRecord, AttemptRecord, JobFilter, Findable, FoundRecord, CountFilter, JobCount } from './job/record.js'
export type { OnParentFailure } from './job/links.js'
export type { FlowBuilder, FlowHandles, FlowNode, FlowOptions } from './client/flow.js'
export type { JobEdit } from './client/edit.js'
export type { GroupHandle, GroupOptions } from './client/groups.js'
export type { GroupCounts, GroupProgress } from './job/group-progress.js'
export type { QueueHandle, QueueRecord } from './client/queues.js'
export type { RecurringOptions, ScheduleRecord, TickRecord } from './schedule/record.js'
export type { Schedules } from './schedule/recurring.js'
export type { RuleInput } from './schedule/calendar.js'
export type { Upcoming } from './schedule/upcoming.js'
export type { State, WaitingState, FinalState } from './job/states.js'
export type { CaptureOptions, ContextStore } from './job/capture.js'
export type { Hooks, EnqueueCall, EnqueueItem, EnqueueNext, SettledAttempt, AttemptEnd } from './job/hooks.js'
export type { RetryOptions, Backoff, BackoffSteps } from './job/retry.js'
export type { KeepOptions } from './job/keep.js'
export type { UniqueOptions } from './job/unique-options.js'
export type { Duration, When } from './job/duration.js'
export type { StandardSchema } from './job/schema.js'

export { codec } from './codec/codec.js'
export type { Codec } from './codec/codec.js'
export type { CodecOptions, BuiltInTag } from './codec/options.js'
export type { CodecType } from './codec/tags.js'
export type { ErrorRecord } from './codec/error-text.js'

export { sqlite } from './store/sqlite/sqlite.js'
export type { SqliteOptions } from './store/sqlite/sqlite.js'
export type { SqliteHandle } from './store/sqlite/driver.js'
export type { StoreChoice } from './store/choice.js'
export type { Logger, LogLevel } from './world/log.js'

export {
  MillraceError,
  InvalidOptionsError,
  InvalidPayloadError,
  PayloadTooLargeError,
  CodecError,
  NotYetError,
  DefinitionError,
  HookError,
  UnknownJobError,
  UnknownScheduleError,
  DuplicateKeyError,
  DuplicateJobError,
  ParentMissingError,
  CycleError,
  GroupSealedError,
  JobFailedError,
  JobCancelledError,
  JobGoneError,
  TimeoutError,
  ResultInHandlerError,
  LeaseLostError,
  TransactionError,
  StoppedError,
  OutcomeUnknownError,
  StoreError,
  ClosedError,
  StoreFullError,
  StoreGoneError,
} from './errors.js'
export type { Problem } from './errors.js'
