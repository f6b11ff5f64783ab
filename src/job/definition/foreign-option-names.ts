/**
 * Option names of other job libraries (BullMQ, pg-boss, graphile-worker, Agenda, bee-queue), and what to use here. `didYouMean`
 * finds a name that is only misspelt; the names in this file have another spelling altogether.
 */
export interface ForeignOptionNames {
  readonly [name: string]: string
}

const forEachName = (names: string, advice: string): ForeignOptionNames =>
  Object.fromEntries(names.split(' ').map((name) => [name, advice]))

const RETRIES = 'use retry: { limit }, the retries after the first run'
const FIRST_WAIT = 'use retry: { backoff: { start: "1s" } }'
const KEEP = 'use keep: { done: "7d", failed: "30d" } of the job or of millrace()'
const RECURRING = 'call mill.recurring(id, job, payload, "0 9 * * *")'
const BOUNDED = 'use millrace({ queues: { mail: { concurrency: 5 } } })'
const SAME = 'use unique: { by, for: "1m" }'
const LIMITER = 'use rate: { max: 100, per: "1m" } of the job, or of a queue: millrace({ queues: { mail: { rate } } })'

/** Names that apply to jobs and to single enqueues. */
const FOREIGN_SHARED_OPTIONS: ForeignOptionNames = {
  ...forEachName('attempts retries maxAttempts max_attempts retryLimit maxRetries', RETRIES),
  ...forEachName('backoff retryBackoff retryStrategy', 'use retry: { backoff: "exponential" }'),
  ...forEachName('retryDelay retryInterval', FIRST_WAIT),
  retryDelayMax: 'use retry: { backoff: { max: "1h" } }',
  ...forEachName('removeOnComplete removeOnSuccess removeOnFail removeOnFailure deleteAfterSeconds', KEEP),
  ...forEachName('retentionSeconds retentionMinutes retentionHours retentionDays archiveCompletedAfterSeconds', KEEP),
  ...forEachName('repeat cron repeatEvery repeatAt tz every', RECURRING),
  ...forEachName('expireInSeconds expireInMinutes expireInHours lockLifetime lockDuration', 'use timeout: "15m"'),
  ...forEachName(
    'singletonSeconds singletonMinutes singletonHours singletonNextSlot throttle debounce deduplication',
    SAME,
  ),
  ...forEachName('queueName queue_name', 'use queue'),
  ...forEachName('tags flags', 'use labels'),
  deadLetter: 'a job that failed for good stays, in state failed: mill.find({ state: "failed" })',
  ...forEachName('limiter rateLimiter rateLimit', LIMITER),
}

export const FOREIGN_ENQUEUE_OPTIONS: ForeignOptionNames = {
  ...FOREIGN_SHARED_OPTIONS,
  ...forEachName('limit rate', 'it belongs to the job: job(name, { run, limit: { max: 2 } })'),
  ...forEachName(
    'delay wait delayMs delaySeconds startIn',
    'use in: a duration from now, such as "5m" or milliseconds',
  ),
  ...forEachName(
    'startAfter delayUntil runAt run_at runDate nextRunAt scheduledAt scheduleAt',
    'use at: an instant, or in: a duration from now',
  ),
  ...forEachName('jobId singletonKey jobKey job_key id', 'use key: at most one unfinished job has it'),
  ...forEachName('jobKeyMode job_key_mode', 'use onDuplicate'),
  lifo: 'use priority: higher runs first',
  ...forEachName('parent children dependsOn', 'use after: [handle], or build the whole with mill.flow()'),
  ...forEachName(
    'keepUntil keepUntilSeconds ttl expireIn',
    'use expires: a job that has not begun by then is cancelled',
  ),
  keep: 'is an option of the job, or of millrace() for all jobs',
  ...forEachName('db trx transaction connection client', 'use tx: the handle of your open transaction'),
  ...forEachName('data payload params args', 'the payload is the second argument: mill.enqueue(job, payload, options)'),
  name: 'the job is the first argument; a name for people is title',
}

export const FOREIGN_JOB_OPTIONS: ForeignOptionNames = {
  ...FOREIGN_SHARED_OPTIONS,
  ...forEachName('handler process processor perform handle fn work execute task', 'use run'),
  ...forEachName('schema validate validator parse', 'use input: a Standard Schema, or accepts: (payload) => boolean'),
  ...forEachName('concurrency teamSize teamConcurrency batchSize localConcurrency', BOUNDED),
  name: 'the name is the first argument: job("name", options)',
  ...forEachName('maxStalledCount', 'use millrace({ crashBudget })'),
  ...forEachName(
    'key jobId singletonKey',
    'is an option of an enqueue: mill.enqueue(job, payload, { key }); or use unique: { by }',
  ),
  ...forEachName('delay startAfter in at', 'is an option of an enqueue: mill.enqueue(job, payload, { in: "5m" })'),
}

export const FOREIGN_MILL_OPTIONS: ForeignOptionNames = {
  ...forEachName(
    'limit rate',
    'give it to a job, or to a queue: millrace({ queues: { mail: { limit: { max: 20 } } } })',
  ),
  ...forEachName(
    'connection redis url connectionString database db path file filename dbPath pool pgPool',
    'use store: a path, a postgres:// URL, sqlite(…) or postgres(…)',
  ),
  ...forEachName('schema prefix', 'use store: "postgres://…?schema=jobs"'),
  ...forEachName('workers worker handlers taskList tasks processors processor definitions', 'use jobs: [sendEmail, …]'),
  ...forEachName('maxConcurrency concurrentJobs teamSize teamConcurrency localConcurrency poolSize', 'use concurrency'),
  ...forEachName('defaultConcurrency', 'use concurrency'),
  ...forEachName(
    'pollInterval pollingInterval pollingIntervalSeconds processEvery newJobCheckInterval',
    'use poll: "5s"',
  ),
  ...forEachName(
    'lockDuration lockLifetime defaultLockLifetime visibilityTimeout stallInterval stalledInterval',
    'use lease: "15s"',
  ),
  maxStalledCount: 'use crashBudget',
  ...forEachName('log debug verbose logLevel', 'use logger: "debug", a logger, or false'),
  migrate: 'use autoMigrate',
  ...forEachName('middleware plugins events', 'use hooks: { enqueue, start, settle }'),
  ...forEachName('serializer serialize', 'use codec'),
  ...forEachName('autorun autostart noHandleSignals', 'nothing runs before mill.start()'),
  ...forEachName('defaultJobOptions', 'use retry, timeout and keep'),
  ...forEachName('attempts retries maxAttempts retryLimit maxRetries', RETRIES),
  backoff: 'use retry: { backoff: "exponential" }',
  retryDelay: FIRST_WAIT,
  ...forEachName(
    'removeOnComplete removeOnFail removeOnSuccess removeOnFailure',
    'use keep: { done: "7d", failed: "30d" }',
  ),
  ...forEachName('crontab parsedCronItems repeat cron', RECURRING),
  ...forEachName('limiter rateLimit', LIMITER),
  tz: 'is an option of a schedule: mill.recurring(id, job, payload, rule, { timezone })',
  priority: 'is an option of a job, or of an enqueue',
  ...forEachName('queue queueName', 'use queues: { mail: 5 }, or queue of a job'),
  tx: 'is an option of an enqueue',
}

export const FOREIGN_RETRY_OPTIONS: ForeignOptionNames = {
  ...forEachName(
    'attempts retries max maxAttempts retryLimit maxRetries times count tries',
    'use limit, the retries after the first run',
  ),
  ...forEachName('delay initialDelay minTimeout retryDelay interval start', 'use backoff: { start: "1s" }'),
  ...forEachName('factor multiplier base', 'use backoff: { factor: 2 }'),
  ...forEachName('maxDelay maxTimeout retryDelayMax', 'use backoff: { max: "1h" }'),
  ...forEachName('type strategy retryBackoff', 'use backoff: "exponential" or "fixed"'),
  ...forEachName('randomize random', 'use jitter: 0.2'),
  ...forEachName('retryIf shouldRetry retryOn if', 'use when: (error, attempt) => boolean'),
}

export const FOREIGN_BACKOFF_OPTIONS: ForeignOptionNames = {
  type: 'write backoff: "exponential" or "fixed", or { start, factor, max }',
  ...forEachName('delay initialDelay minTimeout initial', 'use start: "1s"'),
  ...forEachName('multiplier base exponent', 'use factor: 2'),
  ...forEachName('maxDelay maxTimeout cap limit', 'use max: "1h"'),
  jitter: 'use retry: { jitter: 0.2 }',
}

export const FOREIGN_KEEP_OPTIONS: ForeignOptionNames = {
  age: 'write a duration by how jobs ended: { done: "7d", failed: "30d" }',
  count: 'jobs are kept for a time, not by number: { done: "7d", failed: "30d" }',
  ...forEachName('completed complete success succeeded', 'use done'),
  ...forEachName('error errors failure', 'use failed'),
}

export const FOREIGN_UNIQUE_OPTIONS: ForeignOptionNames = {
  ...forEachName('key keys id fields', 'use by: a field of the payload, a list of them, or a function of it'),
  ...forEachName('ttl period seconds window within', 'use for: "1m"'),
  ...forEachName('states state', 'use while: "unfinished" or "waiting"'),
  ...forEachName('mode strategy extend replace', 'use onDuplicate'),
}

export const FOREIGN_LIMIT_OPTIONS: ForeignOptionNames = {
  ...forEachName('concurrency count global globalConcurrency size', 'use max'),
  ...forEachName('by group groupBy tenant partition', 'use key: (payload) => …'),
  ...forEachName('per period duration', 'a limit bounds jobs in flight; for starts in a time use rate: { max, per }'),
}

export const FOREIGN_RATE_OPTIONS: ForeignOptionNames = {
  ...forEachName('limit count allowed points', 'use max'),
  ...forEachName('duration period window interval every', 'use per: "1m"'),
  ...forEachName('by group groupBy groupKey tenant partition', 'use key: (payload) => …'),
  ...forEachName('cost tokens', 'use weight: (payload) => …'),
}

export const FOREIGN_SCHEDULE_OPTIONS: ForeignOptionNames = {
  ...forEachName('tz timeZone', 'use timezone: "Europe/Oslo"'),
  ...forEachName(
    'pattern cron every repeat repeatEvery interval',
    'the rule is the fourth argument: mill.recurring(id, job, payload, "0 9 * * *" or { every: "5m" }, options)',
  ),
  ...forEachName('startDate startAt', 'use from'),
  ...forEachName('endDate endAt', 'use until'),
  ...forEachName('immediately skipImmediate', 'call mill.schedules.runNow(id) where it should run at once'),
  ...forEachName('backfillPeriod catchUp catchup', 'use missed: "all"'),
  ...forEachName('jobId singletonKey', 'the id is the first argument: mill.recurring(id, job, payload, rule)'),
}

export const FOREIGN_FILTER_OPTIONS: ForeignOptionNames = {
  ...forEachName('status states types', 'use state'),
  ...forEachName('name jobName type task', 'use job: a job, its name, or a category'),
  ...forEachName('queueName', 'use queue'),
  ...forEachName('tag tags', 'use label'),
  ...forEachName('from since after', 'use createdAfter'),
  ...forEachName('to until before', 'use createdBefore'),
  ...forEachName('sort sortBy asc', 'use order: "newest" or "oldest"'),
  ...forEachName(
    'offset skip page cursor start end',
    'find() reads page by page as you iterate: break when you have enough, or use limit',
  ),
  ...forEachName(
    'settledAfter settledBefore finishedAfter finishedBefore endedAfter endedBefore',
    'jobs are found in the order of their enqueue: narrow by state and createdAfter, and compare settledAt of each record',
  ),
  ...forEachName('by groupBy', 'call count() once for each value, such as a state'),
  id: 'call mill.get(id)',
}

export const FOREIGN_QUEUE_OPTIONS: ForeignOptionNames = {
  ...forEachName('max workers size teamSize localConcurrency', 'use concurrency'),
  ...forEachName('limiter rateLimit', 'use rate: { max: 100, per: "1m" }'),
}

export const FOREIGN_STOP_OPTIONS: ForeignOptionNames = forEachName(
  'timeout gracePeriod graceful wait ms force',
  'use deadline: "30s"',
)
