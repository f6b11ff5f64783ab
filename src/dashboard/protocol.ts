/*
 * What the server and the web side of the dashboard share. Every instant is a number of milliseconds since 1970 by the clock of the
 * server, every duration a number of milliseconds. `null` means "not known" or "there is none"; it never means zero.
 *
 * Endpoints, all relative to the mount. Every call below `api/` sends `X-Millrace: 1`; every POST also sends `Content-Type:
 * application/json` and, except for `api/login`, `X-Millrace-Csrf: <csrf of the session>`. Without identity: 401 with an empty body.
 * Any other refusal is an `ErrorBody`. A wrong Host is 421, a cross-site call 403, an unknown route 404: with an empty body.
 *
 *   GET  ./                            the page; without identity 401 and the sign-in page
 *   GET  assets/<name>                 files of the build, by exact name; `assets/theme.css` has the tokens of the option `theme`
 *   POST api/login                     { token }: LoginRequest                    → 204 and the cookie; 401; 429 with Retry-After
 *   POST api/logout                    {}                                         → 204
 *   GET  api/session                                                              → SessionAnswer
 *   POST api/view                      { topic, have?, cursor? }: ViewRequest     → Snapshot; 204 when `have` is its newest id
 *   POST api/stream                    { topics, have? }: StreamRequest           → text/event-stream of Frames; 503 with Retry-After
 *   POST api/search                    SearchRequest                              → SearchAnswer; 400 with `at` for a wrong search
 *   POST api/complete                  { text, caret }: CompleteRequest           → CompleteAnswer
 *   POST api/preview                   PreviewRequest                             → PreviewAnswer: what a bulk would do
 *   POST api/act                       ActRequest                                 → ActAnswer
 *   GET  api/job/<id>/<part>           parts: JobPart. `?all=1`: up to 1 MiB      → JobPartAnswer[part]
 *
 * A stream sends these events. `data` is JSON in one line, `id` is `<epoch>.<seq>`; the epoch changes when the server restarts.
 *
 *   event: snapshot  data: Snapshot      the whole state of a topic
 *   event: patch     data: Patch         what has changed since the frame before: see `applyPatch`
 *   event: gone      data: Gone          the topic is not allowed any more, does not exist, or was deleted
 *   event: stale     data: Stale         the topic could not be read; the last good state stays true as of its `now`
 *   event: bye       data: Bye           the server stops, or the session has ended; come back in `inMs`
 *   : beat                               every 10 s
 *
 * Topics. A name that may have any characters is the last part, and is not encoded. `span` is 15m, 1h, 6h, 24h or 7d.
 *
 *   health                    verdict, findings, self-report, counts of the navigation: every tab subscribes to it
 *   overview:<span>           queues · queue:<span>:<name>
 *   list:<sort>:<query>       the first page of a search; more by api/search
 *   workflows:<sort>:<query>  the same, of workflows only
 *   job:<id>                  one job; its rows are the steps of a workflow
 *   failures:<span>           span or `deploy`; rows are error groups · failure:<fingerprint>
 *   recurring · recurring:<id>
 *   groups · group:<id> · sequences · sequence:<id>        more pages by api/view with `cursor`
 *   workers · upcoming:<span> (1h, 6h, 24h, 7d)
 *   audit:<query>             actor: verb: target: since:; admin only; more by api/view with `cursor`
 *   enqueue · enqueue:<job>   the registered jobs · the form of one; admin only
 *   bulk:<id>                 a bulk that runs, or ran in the last ten minutes
 */

export { applyPatch, diffView } from './protocol/frames.js'
export type { Absent, Bye, Fields, Frame, Gone, Patch, Rows, Snapshot, Stale } from './protocol/frames.js'
export { parseTopic, writeTopic, SPANS, UPCOMING_SPANS, FAILURE_SPANS, SORTS } from './protocol/topics.js'
export type {
  FailureSpan,
  RowOf,
  FieldsOf,
  Sort,
  Span,
  SpanMs,
  Topic,
  TopicKind,
  TopicTypes,
  UpcomingSpan,
} from './protocol/topics.js'
export { canDo, isDestructive, refusalText, ROLES, STATES_OF, VERBS } from './protocol/verbs.js'
export type { ActAnswer, ActArguments, ActRequest, JobVerb, Role, Verb } from './protocol/verbs.js'
export type {
  CompleteAnswer,
  CompleteRequest,
  Completion,
  ErrorBody,
  ErrorCode,
  LoginRequest,
  PreviewAnswer,
  PreviewRequest,
  SearchAnswer,
  SearchRequest,
  SessionAnswer,
  StreamRequest,
  ViewRequest,
} from './protocol/calls.js'
export type { Entry, Shown, ShownList, ShownObject, ShownTag, ShownValue } from './protocol/shown.js'
export type {
  AttemptShown,
  BlockerShown,
  ErrorShown,
  FlagShown,
  GraphAnswer,
  GraphNode,
  JobFields,
  JobPart,
  JobPartAnswer,
  JobRow,
  LatelyAnswer,
  LogAnswer,
  StepRow,
  TextAnswer,
  TimelineSpan,
  WaitingForShown,
  WhyShown,
} from './protocol/jobs.js'
export type {
  AuditFields,
  AuditRow,
  BulkFields,
  Count,
  CountsByState,
  DeployMark,
  DifferenceShown,
  EnqueueFields,
  EnqueueFormFields,
  EnqueueRow,
  FailureFields,
  FailureRow,
  FailuresFields,
  FindingRow,
  GroupFields,
  GroupRow,
  GroupsFields,
  HealthFields,
  LimitKeyShown,
  ListFields,
  OutageShown,
  OverviewFields,
  QueueFields,
  QueueRow,
  QueuesFields,
  RecurringFields,
  RecurringListFields,
  RecurringRow,
  Sentence,
  SequenceFields,
  SequenceItemRow,
  SequenceRow,
  SequencesFields,
  SeriesShown,
  SlotShown,
  Tick,
  UpcomingFields,
  UpcomingLane,
  UpcomingRow,
  VerdictKind,
  Verdict,
  WorkerRow,
  WorkersFields,
} from './protocol/rows.js'
