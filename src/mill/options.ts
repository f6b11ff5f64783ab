import { InvalidOptionsError } from '../errors.js'
import type { Codec } from '../codec/codec.js'
import { givenOf, isOptionsObject } from '../codec/options-object.js'
import {
  isCodec,
  isCount,
  isDurationOption,
  isTimeout,
  isFunction,
  isKeep,
  isName,
  isOneOf,
  isRetry,
} from '../job/definition/check-options.js'
import type { Check, Fields } from '../job/definition/check-fields.js'
import { checkFields, notYet } from '../job/definition/check-fields.js'
import {
  FOREIGN_MILL_OPTIONS,
  FOREIGN_QUEUE_OPTIONS,
  FOREIGN_STOP_OPTIONS,
} from '../job/definition/foreign-option-names.js'
import { isQueueLimit, isQueueRate } from '../job/definition/limit-options.js'
import { isBoolean, isPositiveDuration, isSlowAfter } from '../job/definition/check-values.js'
import { formatPath, joinPath } from '../codec/path.js'
import { reason, show } from '../codec/show.js'
import type { CaptureOptions } from '../job/attempt/capture.js'
import type { Handler } from '../job/definition/define.js'
import type { Duration } from '../job/duration/duration.js'
import { parseDuration } from '../job/duration/duration.js'
import type { Hooks } from '../job/attempt/hooks.js'
import type { KeepOptions } from '../job/definition/keep.js'
import { listJobs } from '../job/definition/registry.js'
import { isEncryption } from '../job/secrets/keyring.js'
import type { EncryptionOptions } from '../job/secrets/keyring.js'
import { DASHBOARD_LISTEN } from './dashboard-options.js'
import type { DashboardListenOptions } from './dashboard-options.js'
import { isRedact } from '../job/secrets/redact.js'
import type { RedactRule } from '../job/secrets/redact.js'
import type { RetryOptions } from '../job/rules/retry.js'
import type { SystemCallback } from '../observe/health/health.js'
import type { StoreChoice } from '../store/choice.js'
import type { SqliteHandle } from '../store/sqlite/connection/driver.js'
import type { Logger, LogLevel } from '../world/log.js'
import { isCapture, isHooks } from './check-hooks-and-context.js'
import { isStore } from './check-store.js'

/** The options of `millrace()`. Every option has a default, listed in `defaults`. */
export interface MillOptions {
  /** A path, ':memory:', a postgres:// URL, an open SQLite handle, `sqlite(…)` or `postgres(…)`. Default: $MILLRACE_STORE, else ./millrace.db (refused when NODE_ENV is production). */
  readonly store?: string | StoreChoice | SqliteHandle | undefined
  /** The jobs this process can run: an array, an object, or a module namespace. */
  readonly jobs?: object | undefined
  /** Runs jobs whose name is not registered in this process. Default: they are left for a worker that has registered them. */
  readonly unknown?: Handler<never, unknown> | undefined
  /** Writes and reads payloads and results. Default: tagged JSON. */
  readonly codec?: Codec | undefined
  /** The keys for jobs with `encrypt: true`, by name, and the name of the one that new values are encrypted with. Default: none. */
  readonly encryption?: EncryptionOptions | undefined
  /**
   * AsyncLocalStorages by name. Their values are captured at each enqueue, and restored when the job runs and when its errors are
   * logged. Default `{ trace: true }`: OpenTelemetry's trace context, when its API is loaded. `false` captures nothing.
   */
  readonly capture?: CaptureOptions | false | undefined
  /** Handlers running at once in this process. Default 10. */
  readonly concurrency?: number | undefined
  /**
   * Maximum concurrent jobs per queue, per process: `{ mail: 5 }`; and limits of a queue for all processes together, which
   * `start()` stores. Default: no bound but `concurrency`.
   */
  readonly queues?: { readonly [queue: string]: number | QueueOptions } | undefined
  /** How often the store is polled for jobs; hints make most of them start sooner. Default '5s'. */
  readonly poll?: Duration | number | undefined
  /** How long a worker may miss its heartbeat before other workers take over its jobs. Default '15s'. */
  readonly lease?: Duration | number | undefined
  /** A job is parked after its process crashed this many times while the job ran in quarantine. Default 3. */
  readonly crashBudget?: number | undefined
  /** After how many failures in a row, per queue and job, retries are held until one of them succeeds. Default `{ after: 5 }`; false: never. */
  readonly outage?: OutageOptions | false | undefined
  readonly retry?: RetryOptions | undefined
  /** How long one attempt may take. Default '30m'; Infinity lifts it. */
  readonly timeout?: Duration | number | undefined
  /** A handler that takes longer is logged as an error, repeatedly. Default '5m'. */
  readonly slowAfter?: Duration | number | undefined
  /**
   * `sticky`: suspended workflows that a worker keeps in memory, at most 5 minutes each; default 1,000, 0 keeps none. `strict`:
   * a body that awaits something that is not of `w` fails; default false, and true in `millrace/testing`.
   */
  readonly workflows?: { readonly sticky?: number | undefined; readonly strict?: boolean | undefined } | undefined
  /** How long finished jobs are kept: '1d', or { done, cancelled, failed }. Default 7 d done and cancelled, 30 d failed. */
  readonly keep?: KeepOptions | undefined
  /** Apply pending migrations when the store is opened. Default true. */
  readonly autoMigrate?: boolean | undefined
  /**
   * Keep every change of state of every job, by any process, for `mill.changes()`: for all processes on the store, from the first mill that
   * is opened with `true` until one is opened with `false`. Default: as it is; off in a new store.
   */
  readonly changeLog?: boolean | undefined
  /** What is hidden in log lines, and wherever else values are shown: key names at any depth, patterns of them, functions. Default: nothing. */
  readonly redact?: readonly RedactRule[] | undefined
  /** Your code around enqueue, start and settle. In a list, the first is outermost. */
  readonly hooks?: Hooks | readonly Hooks[] | undefined
  /** A job that is retrying, parked or failed for longer makes the system unhealthy. Default '15m'. */
  readonly allowedErrorTime?: Duration | number | undefined
  /** The system is never unhealthy for so long after `millrace()`. Default '10m'. */
  readonly startGrace?: Duration | number | undefined
  /** Called when the system becomes unhealthy, at most every 5 minutes. Default: a log line. */
  readonly onSystemError?: SystemCallback | undefined
  /** Called when it has recovered. Default: a log line. */
  readonly onSystemRecovery?: SystemCallback | undefined
  /**
   * Serve the dashboard from `start()` until `close()`, and print its link: `true`, or the options of `mill.dashboard()`. Default false.
   */
  readonly dashboard?: boolean | DashboardListenOptions | undefined
  /** The version of your app, recorded on its workers. Default: the version in its package.json. */
  readonly version?: string | undefined
  /** A logger in pino's call shape, a level for the built-in one ('debug' | 'info' | 'warn' | 'error'), or false. Default 'info'. */
  readonly logger?: Logger | LogLevel | false | undefined
}

/** The options of one queue. */
export interface QueueOptions {
  /** Jobs of the queue that this process runs at once. Default: no bound but that of the mill. */
  readonly concurrency?: number | undefined
  /** Jobs of the queue in flight at once, in all processes together; false removes what is stored. */
  readonly limit?: { readonly max: number } | false | undefined
  /** Starts of jobs of the queue in any window of `per`, in all processes together; false removes what is stored. */
  readonly rate?: { readonly max: number; readonly per: Duration | number } | false | undefined
}

export interface OutageOptions {
  /** Failures in a row that close a queue and job for retries. Default 5. */
  readonly after?: number | undefined
}

/** Every option of `millrace()` with its default. */
export const defaults = {
  store: './millrace.db',
  jobs: [],
  unknown: undefined,
  codec: 'tagged JSON',
  encryption: undefined,
  capture: { trace: true },
  concurrency: 10,
  queues: {},
  poll: '5s',
  lease: '15s',
  crashBudget: 3,
  outage: { after: 5 },
  retry: { limit: 25, backoff: 'exponential', jitter: 0.2 },
  timeout: '30m',
  slowAfter: '5m',
  workflows: { sticky: 1_000, strict: false },
  executor: 'loop',
  keep: { done: '7d', cancelled: '7d', failed: '30d' },
  partition: undefined,
  autoMigrate: true,
  changeLog: false,
  allowedErrorTime: '15m',
  startGrace: '10m',
  dashboard: false,
  redact: [],
  hooks: {},
  logger: 'info',
  version: undefined,
  onSystemError: undefined,
  onSystemRecovery: undefined,
} as const

/** The most handlers at once, of a mill and of one queue, and the most crashes that a job may be charged. */
const CONCURRENCY_MAX = 100_000
const CRASH_BUDGET_MAX = 1_000
/** The most suspended workflows in memory: a few KiB each. */
const STICKY_MAX = 1_000_000
/** Shorter ones would keep a core busy, or declare a live worker dead. */
const POLL_MIN_MS = 10
const LEASE_MIN_MS = 500

const isLogger: Check = (value) => {
  if (value === false || value === 'debug' || value === 'info' || value === 'warn' || value === 'error')
    return undefined
  const logger = value as { [method: string]: unknown } | null
  const missing =
    typeof logger === 'object' && logger !== null
      ? ['debug', 'info', 'warn', 'error'].filter((m) => typeof logger[m] !== 'function')
      : ['all of it']
  return missing.length === 0
    ? undefined
    : `must be false, a level, or a logger with debug, info, warn and error; ${missing.join(', ')} missing in ${show(value)}`
}

const isQueues: Check = (value) => {
  if (!isOptionsObject(value)) return `must be an object of queue names, got ${show(value)}`
  return Object.entries(value).flatMap(([queue, given]) => {
    const path = formatPath([queue])
    const wrong = isName(queue) ?? queueProblem(given)
    if (typeof wrong === 'string') return [{ path, message: wrong }]
    return (wrong ?? []).map((problem) => ({ ...problem, path: joinPath(path, problem.path) }))
  })
}

const isWorkflows: Check = (value) =>
  checkFields(value, '', { fields: { sticky: isCount(0, STICKY_MAX), strict: isOneOf(true, false) } })

const isConcurrency = isCount(1, CONCURRENCY_MAX)
const isDashboard: Check = (value) =>
  typeof value === 'boolean' ? undefined : checkFields(value, '', DASHBOARD_LISTEN)
const QUEUE: Fields = {
  fields: { concurrency: isConcurrency, limit: isQueueLimit, rate: isQueueRate },
  foreignNames: FOREIGN_QUEUE_OPTIONS,
}

const queueProblem: Check = (given) => {
  if (typeof given !== 'object' || given === null) return isConcurrency(given)
  const problems = checkFields(given, '', QUEUE)
  const isEmpty = Object.values(given).every((value) => value === undefined)
  return isEmpty ? [...problems, { path: '', message: 'must have concurrency, limit or rate, got {}' }] : problems
}

const OUTAGE_AFTER_MAX = 1_000_000
const OUTAGE: Fields = {
  fields: { after: isCount(1, OUTAGE_AFTER_MAX) },
  meant: (value) => (isCount(1, OUTAGE_AFTER_MAX)(value) === undefined ? `{ after: ${show(value)} }` : undefined),
}
const isOutage: Check = (value) => (value === false ? undefined : checkFields(value, '', OUTAGE))

const isJobs: Check = (value) => {
  try {
    listJobs(value)
    return undefined
  } catch (error) {
    return `must be an array, an object or a module of jobs: ${reason(error)}`
  }
}

const FIELDS: Fields = {
  fields: {
    store: isStore,
    jobs: isJobs,
    unknown: isFunction,
    codec: isCodec,
    encryption: isEncryption,
    capture: isCapture,
    concurrency: isConcurrency,
    queues: isQueues,
    poll: isPositiveDuration(POLL_MIN_MS),
    lease: isPositiveDuration(LEASE_MIN_MS),
    crashBudget: isCount(1, CRASH_BUDGET_MAX),
    outage: isOutage,
    retry: isRetry,
    timeout: isTimeout,
    slowAfter: isSlowAfter,
    workflows: isWorkflows,
    keep: isKeep,
    autoMigrate: isBoolean,
    changeLog: isBoolean,
    redact: isRedact,
    hooks: isHooks,
    logger: isLogger,
    version: isName,
    allowedErrorTime: isDurationOption,
    startGrace: isDurationOption,
    onSystemError: isFunction,
    onSystemRecovery: isFunction,
    dashboard: isDashboard,
  },
  // Announced and not built yet: refused by name, unless the value asks for the present behaviour.
  notYet: {
    executor: notYet('set executor and module of each job that needs a thread or a process', 'loop'),
    partition: notYet('give each part a queue of its own'),
  },
  foreignNames: FOREIGN_MILL_OPTIONS,
  meant: (value) =>
    typeof value === 'string' ? `{ store: ${show(value)} }` : Array.isArray(value) ? '{ jobs: […] }' : undefined,
}

/** Throws one error that lists every problem. `more` are options that this caller takes in addition to those of a mill. */
export function checkMillOptions(options: unknown, subject: string, more: Fields['fields'] = {}): void {
  const problems = checkFields(options, '', { ...FIELDS, fields: { ...FIELDS.fields, ...more } })
  // When only `jobs` is wrong, throw its own error: it says which jobs contradict each other.
  if (problems.length === 1 && problems[0]?.path === 'jobs') listJobs((options as MillOptions).jobs)
  if (problems.length > 0) throw new InvalidOptionsError(subject, problems)
}

/** Options that `configure()` may change while the mill runs; the others need a new mill. */
const CHANGEABLE = ['concurrency', 'queues', 'poll', 'crashBudget', 'slowAfter'] as const

export function checkChange(change: unknown): void {
  checkMillOptions(change, 'configure()')
  const fixed = Object.keys(givenOf(change as object)).filter(
    (name) => !(CHANGEABLE as readonly string[]).includes(name),
  )
  if (fixed.length === 0) return
  const problems = fixed.map((path) => ({
    path,
    message: 'cannot be changed after millrace(); close this mill and make a new one',
  }))
  throw new InvalidOptionsError('configure()', problems)
}

/** A checked duration in milliseconds. */
export function toMs(value: Duration | number | undefined, otherwise: Duration): number {
  if (value === Infinity) return Infinity
  const parsed = parseDuration(value ?? otherwise)
  return parsed.ok ? parsed.ms : 0
}

export interface StopOptions {
  readonly deadline?: unknown
}

const STOP_DEADLINE_MS = 30_000

/** How long a stop waits for running handlers, in ms. */
export function deadlineOf(options: StopOptions, subject: string, otherwiseMs = STOP_DEADLINE_MS): number {
  const problems = checkFields(options, '', {
    fields: { deadline: isDurationOption },
    foreignNames: FOREIGN_STOP_OPTIONS,
    meant: (value) => (isDurationOption(value) === undefined ? `{ deadline: ${show(value)} }` : undefined),
  })
  if (problems.length > 0) throw new InvalidOptionsError(subject, problems)
  const parsed = parseDuration(options.deadline ?? otherwiseMs)
  return parsed.ok ? parsed.ms : otherwiseMs
}
