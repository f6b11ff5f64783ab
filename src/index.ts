/** The public names of the package, listed by hand. A name that is not listed is not part of the API. */
export { millrace } from './mill.js'
export type { RetriedOne } from './mill/retry-one.js'
export type { BulkVerb, Mill, ListedJob, ScheduleOptions } from './mill/mill-type.js'
export { healthHandler } from './observe/health/handler.js'
export { prometheusHandler } from './observe/prometheus.js'
export { telemetry } from './observe/telemetry.js'
export type { HealthReport, SystemCallback } from './observe/health/health.js'
export type { Finding, FindingKind } from './observe/health/findings.js'
export { defaults } from './mill/options.js'
export type { MillOptions } from './mill/options.js'

export { job, category } from './job/definition/define.js'
export type {
  Job,
  AnyJob,
  JobOptions,
  SchemaJobOptions,
  InheritedJobOptions,
  IsolatedJobOptions,
  SharedOptions,
  Handler,
  Category,
  CategoryOptions,
} from './job/definition/define.js'
export { workflow, event } from './workflow/define.js'
export type { Body, WorkflowOptions, SchemaWorkflowOptions } from './workflow/define.js'
export type { Work, StepContext, StepOptions, Event, Branch, Restart } from './workflow/work.js'
export { lazy } from './job/definition/lazy.js'
export type { Lazy } from './job/definition/lazy.js'
export { Abort, Snooze } from './job/attempt/control-errors.js'
export type { Context, TestContext } from './job/attempt/context.js'
export type { After, EnqueueOptions, EnqueueArguments, Enqueueable, Handle } from './job/enqueue.js'
export type {
  JobRecord,
  AttemptRecord,
  JobFilter,
  Findable,
  FoundRecord,
  CountFilter,
  JobCount,
  ValueFilter,
  ValueTest,
} from './job/record.js'
export type { StepRecord, WaitingFor, WorkflowRecord } from './job/workflow-record.js'
export type { SendArguments, SendOptions, SendTarget } from './client/workflow/send.js'
export type { StepsOptions } from './client/workflow/step-records.js'
export type { LiveState } from './job/live-state.js'
export type { OnParentFailure } from './job/rules/links.js'
export type { FlowBuilder, FlowHandles, FlowNode, FlowOptions } from './client/flow/flow.js'
export type { CommandOptions } from './job/command-options.js'
export type { BulkCommandOptions, BulkPreview, BulkResult } from './client/commands/command-all.js'
export type { AuditOptions, AuditRecord } from './client/read/audit.js'
export type { GroupRecord, SequenceRecord, WorkerRecord } from './client/read/lists.js'
export type { Stats } from './client/statistics/stats.js'
export type { SeriesOptions, StatisticsOptions, TimesOptions, TimeUnit } from './client/statistics/options.js'
export type { RetryStatistics, SeriesPoint, SeriesTimes, TimeStatistics } from './client/statistics/statistics.js'
export type { QueueErrors, QueueStatistics } from './client/statistics/queues.js'
export type { ErrorGroup, ErrorGroupOptions } from './client/statistics/error-groups.js'
export type { Blocker, Why, WhyReason } from './job/why/why.js'
export type { FindPageOptions, FoundJobs } from './client/read/find-page.js'
export type { Page, PageOptions } from './client/read/page.js'
export type { JobEdit } from './client/commands/edit.js'
export type { GroupHandle, GroupOptions } from './client/commands/groups.js'
export type {
  ItemInHand,
  Sequence,
  SequenceOutput,
  SequenceOutputOptions,
  SequenceProgress,
} from './client/sequence/sequence.js'
export type { SequenceOptions } from './client/sequence/write-sequence.js'
export type { SequenceState } from './job/rules/sequence.js'
export type { GroupCounts, GroupProgress } from './job/rules/group-progress.js'
export type { Change, ChangesEnd, ChangesOptions, StopChangesOptions } from './client/read/changes.js'
export type { MillEvent, MissedEvents, Transition } from './observe/transitions.js'
export type { LiveQueue, QueueHandle, QueueRecord } from './client/commands/queues.js'
export type { RecurringOptions, ScheduleRecord, TickRecord } from './schedule/record.js'
export type { Schedules } from './schedule/recurring.js'
export type { RuleInput } from './schedule/calendar.js'
export type { Upcoming } from './schedule/upcoming.js'
export type { UpcomingBins, UpcomingBinsOptions } from './schedule/upcoming-bins.js'
export type { State, WaitingState, FinalState } from './job/rules/states.js'
export type { CaptureOptions, ContextStore } from './job/attempt/capture.js'
export type { Hooks, EnqueueCall, EnqueueItem, EnqueueNext, SettledAttempt, AttemptEnd } from './job/attempt/hooks.js'
export type { RetryOptions, Backoff, BackoffSteps } from './job/rules/retry.js'
export type { EncryptionOptions } from './job/secrets/keyring.js'
export type { CheckFinding, CheckProblem } from './mill/check-stored-jobs.js'
export type { Upcast } from './job/definition/upcast.js'
export type { RedactRule, ShownPlace } from './job/secrets/redact.js'
export type { KeepOptions } from './job/definition/keep.js'
export type { UniqueOptions } from './job/definition/unique-options.js'
export type { Duration, When } from './job/duration/duration.js'
export type { StandardSchema } from './job/definition/schema.js'

export { codec } from './codec/codec.js'
export type { Codec } from './codec/codec.js'
export type { CodecOptions, BuiltInTag } from './codec/options.js'
export type { CodecType } from './codec/tags.js'
export type { ErrorRecord } from './codec/error-text.js'

export { sqlite } from './store/sqlite/sqlite.js'
export type { SqliteOptions } from './store/sqlite/sqlite.js'
export type { SqliteHandle } from './store/sqlite/connection/driver.js'
export type { StoreChoice } from './store/choice.js'
export type { Logger, LogLevel } from './world/log.js'

export {
  MillraceError,
  InvalidOptionsError,
  InvalidPayloadError,
  PayloadTooLargeError,
  CodecError,
  EncryptionError,
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
  StepFailedError,
  StepResultError,
  StepNestedError,
  WorkflowOverError,
  ForeignAwaitError,
  SiblingFailedError,
  RaceLostError,
  UnknownEventError,
  NotAWorkflowError,
  InboxFullError,
  CallDepthError,
  RestartUnusedError,
  LeaseLostError,
  RetryHeldError,
  TransactionError,
  StoppedError,
  OutcomeUnknownError,
  StoreError,
  ClosedError,
  StoreFullError,
  StoreGoneError,
} from './errors.js'
export type { Problem } from './errors.js'
