/**
 * What other job libraries call an option (BullMQ, pg-boss, graphile-worker, Agenda, bee-queue), and what to use here. A name
 * that is only misspelt is found by its spelling (`didYouMean`); these are names that no spelling leads to.
 */
export interface Elsewhere {
  readonly [name: string]: string
}

const each = (names: string, advice: string): Elsewhere =>
  Object.fromEntries(names.split(' ').map((name) => [name, advice]))

const RETRIES = 'use retry: { limit }, the retries after the first run'
const FIRST_WAIT = 'use retry: { backoff: { start: "1s" } }'
const KEEP = 'use keep: { done: "7d", failed: "30d" } of the job or of millrace()'
const RECURRING = 'call mill.recurring(id, job, payload, "0 9 * * *")'
const BOUNDED = 'use millrace({ queues: { mail: { concurrency: 5 } } })'
const SAME = 'use unique: { by, for: "1m" }'
const LIMITER = 'rates are not yet part of this version: bound a queue with millrace({ queues: { mail: 1 } })'

/** What jobs and single enqueues share. */
const OF_JOBS: Elsewhere = {
  ...each('attempts retries maxAttempts max_attempts retryLimit maxRetries', RETRIES),
  ...each('backoff retryBackoff retryStrategy', 'use retry: { backoff: "exponential" }'),
  ...each('retryDelay retryInterval', FIRST_WAIT),
  retryDelayMax: 'use retry: { backoff: { max: "1h" } }',
  ...each('removeOnComplete removeOnSuccess removeOnFail removeOnFailure deleteAfterSeconds', KEEP),
  ...each('retentionSeconds retentionMinutes retentionHours retentionDays archiveCompletedAfterSeconds', KEEP),
  ...each('repeat cron repeatEvery repeatAt tz every', RECURRING),
  ...each('expireInSeconds expireInMinutes expireInHours lockLifetime lockDuration', 'use timeout: "15m"'),
  ...each('singletonSeconds singletonMinutes singletonHours singletonNextSlot throttle debounce deduplication', SAME),
  ...each('queueName queue_name', 'use queue'),
  ...each('tags flags', 'use labels'),
  deadLetter: 'a job that failed for good stays, in state failed: mill.find({ state: "failed" })',
  ...each('limiter rateLimiter rateLimit', LIMITER),
}

export const OF_AN_ENQUEUE: Elsewhere = {
  ...OF_JOBS,
  ...each('delay wait delayMs delaySeconds startIn', 'use in: a duration from now, such as "5m" or milliseconds'),
  ...each(
    'startAfter delayUntil runAt run_at runDate nextRunAt scheduledAt scheduleAt',
    'use at: an instant, or in: a duration from now',
  ),
  ...each('jobId singletonKey jobKey job_key id', 'use key: at most one unfinished job has it'),
  ...each('jobKeyMode job_key_mode', 'use onDuplicate'),
  lifo: 'use priority: higher runs first',
  ...each('parent children dependsOn', 'use after: [handle], or build the whole with mill.flow()'),
  ...each('keepUntil keepUntilSeconds ttl expireIn', 'use expires: a job that has not begun by then is cancelled'),
  keep: 'is said of the job, or of all of them in millrace()',
  ...each('db trx transaction connection client', 'use tx: the handle of your open transaction'),
  ...each('data payload params args', 'the payload is the second argument: mill.enqueue(job, payload, options)'),
  name: 'the job is the first argument; a name for people is title',
}

export const OF_A_JOB: Elsewhere = {
  ...OF_JOBS,
  ...each('handler process processor perform handle fn work execute task', 'use run'),
  ...each('schema validate validator parse', 'use input: a Standard Schema, or accepts: (payload) => boolean'),
  ...each('concurrency teamSize teamConcurrency batchSize localConcurrency', BOUNDED),
  name: 'the name is the first argument: job("name", options)',
  ...each('maxStalledCount', 'use millrace({ crashBudget })'),
  ...each(
    'key jobId singletonKey',
    'is said at each enqueue: mill.enqueue(job, payload, { key }); or use unique: { by }',
  ),
  ...each('delay startAfter in at', 'is said at each enqueue: mill.enqueue(job, payload, { in: "5m" })'),
}

export const OF_A_MILL: Elsewhere = {
  ...each(
    'connection redis url connectionString database db path file filename dbPath pool pgPool',
    'use store: a path, a postgres:// URL, sqlite(…) or postgres(…)',
  ),
  ...each('schema prefix', 'use store: "postgres://…?schema=jobs"'),
  ...each('workers worker handlers taskList tasks processors processor definitions', 'use jobs: [sendEmail, …]'),
  ...each('maxConcurrency concurrentJobs teamSize teamConcurrency localConcurrency poolSize', 'use concurrency'),
  ...each('defaultConcurrency', 'use concurrency'),
  ...each('pollInterval pollingInterval pollingIntervalSeconds processEvery newJobCheckInterval', 'use poll: "5s"'),
  ...each(
    'lockDuration lockLifetime defaultLockLifetime visibilityTimeout stallInterval stalledInterval',
    'use lease: "15s"',
  ),
  maxStalledCount: 'use crashBudget',
  ...each('log debug verbose logLevel', 'use logger: "debug", a logger, or false'),
  migrate: 'use autoMigrate',
  ...each('middleware plugins events', 'use hooks: { enqueue, start, settle }'),
  ...each('serializer serialize', 'use codec'),
  ...each('autorun autostart noHandleSignals', 'nothing runs before mill.start()'),
  ...each('defaultJobOptions', 'use retry, timeout and keep'),
  ...each('attempts retries maxAttempts retryLimit maxRetries', RETRIES),
  backoff: 'use retry: { backoff: "exponential" }',
  retryDelay: FIRST_WAIT,
  ...each('removeOnComplete removeOnFail removeOnSuccess removeOnFailure', 'use keep: { done: "7d", failed: "30d" }'),
  ...each('crontab parsedCronItems repeat cron', RECURRING),
  ...each('limiter rateLimit', LIMITER),
  tz: 'is said of each schedule: mill.recurring(id, job, payload, rule, { timezone })',
  priority: 'is said of a job, or at each enqueue',
  ...each('queue queueName', 'use queues: { mail: 5 }, or queue of a job'),
  tx: 'is said at each enqueue',
}

export const OF_A_RETRY: Elsewhere = {
  ...each(
    'attempts retries max maxAttempts retryLimit maxRetries times count tries',
    'use limit, the retries after the first run',
  ),
  ...each('delay initialDelay minTimeout retryDelay interval start', 'use backoff: { start: "1s" }'),
  ...each('factor multiplier base', 'use backoff: { factor: 2 }'),
  ...each('maxDelay maxTimeout retryDelayMax', 'use backoff: { max: "1h" }'),
  ...each('type strategy retryBackoff', 'use backoff: "exponential" or "fixed"'),
  ...each('randomize random', 'use jitter: 0.2'),
  ...each('retryIf shouldRetry retryOn if', 'use when: (error, attempt) => boolean'),
}

export const OF_A_BACKOFF: Elsewhere = {
  type: 'write backoff: "exponential" or "fixed", or { start, factor, max }',
  ...each('delay initialDelay minTimeout initial', 'use start: "1s"'),
  ...each('multiplier base exponent', 'use factor: 2'),
  ...each('maxDelay maxTimeout cap limit', 'use max: "1h"'),
  jitter: 'use retry: { jitter: 0.2 }',
}

export const OF_KEEP: Elsewhere = {
  age: 'write a duration by how jobs ended: { done: "7d", failed: "30d" }',
  count: 'jobs are kept for a time, not by number: { done: "7d", failed: "30d" }',
  ...each('completed complete success succeeded', 'use done'),
  ...each('error errors failure', 'use failed'),
}

export const OF_UNIQUE: Elsewhere = {
  ...each('key keys id fields', 'use by: a field of the payload, a list of them, or a function of it'),
  ...each('ttl period seconds window within', 'use for: "1m"'),
  ...each('states state', 'use while: "unfinished" or "waiting"'),
  ...each('mode strategy extend replace', 'use onDuplicate'),
}

export const OF_A_SCHEDULE: Elsewhere = {
  ...each('tz timeZone', 'use timezone: "Europe/Oslo"'),
  ...each(
    'pattern cron every repeat repeatEvery interval',
    'the rule is the fourth argument: mill.recurring(id, job, payload, "0 9 * * *" or { every: "5m" }, options)',
  ),
  ...each('startDate startAt', 'use from'),
  ...each('endDate endAt', 'use until'),
  ...each('immediately skipImmediate', 'call mill.schedules.runNow(id) where it should run at once'),
  ...each('backfillPeriod catchUp catchup', 'use missed: "all"'),
  ...each('jobId singletonKey', 'the id is the first argument: mill.recurring(id, job, payload, rule)'),
}

export const OF_A_FILTER: Elsewhere = {
  ...each('status states types', 'use state'),
  ...each('name jobName type task', 'use job: a job, its name, or a category'),
  ...each('queueName', 'use queue'),
  ...each('tag tags', 'use label'),
  ...each('from since after', 'use createdAfter'),
  ...each('to until before', 'use createdBefore'),
  ...each('sort sortBy asc', 'use order: "newest" or "oldest"'),
  ...each(
    'offset skip page cursor start end',
    'find() reads page by page as you go: break when you have enough, or use limit',
  ),
  id: 'call mill.get(id)',
}

export const OF_A_QUEUE: Elsewhere = {
  ...each('max workers size teamSize localConcurrency', 'use concurrency'),
  ...each('limiter rateLimit', 'rates are not yet part of this version: bound the queue with concurrency'),
}

export const OF_A_STOP: Elsewhere = each('timeout gracePeriod graceful wait ms force', 'use deadline: "30s"')
