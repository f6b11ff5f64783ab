import type { Codec } from '../../codec/codec.js'
import { DefinitionError, UnknownJobError } from '../../errors.js'
import { isCategory, isJob, isWorkflow } from './brands.js'
import { didYouMean } from '../../codec/near-name.js'
import { isOptionsObject } from '../../codec/options-object.js'
import { show } from '../../codec/show.js'
import type { AnyJob, Handler, ResolvedOptions } from './define.js'

import type { Duration } from '../duration/duration.js'
import { parseDuration } from '../duration/duration.js'
import type { Enqueueable } from '../enqueue.js'
import type { KeepMs, KeepOptions } from './keep.js'
import { mergeKeep } from './keep.js'
import type { OnParentFailure } from '../rules/links.js'
import { categoriesOf, checkInheritance, inherited, levels } from './inheritance.js'
import { handlerOf, isolationOf, moduleUrl } from './isolation.js'
import type { Isolation } from './isolation.js'
import type { JobLimits } from '../limits/limits.js'
import { limitsOf } from './limit-options.js'
import type { LimitOptions, RateOptions } from './limit-options.js'
import type { RetryOptions } from '../rules/retry.js'
import { isSealed } from '../secrets/keyring.js'
import type { Keyring } from '../secrets/keyring.js'
import type { Upcast } from './upcast.js'
import { mergeUnique } from './unique-options.js'
import type { UniqueOptions } from './unique-options.js'
import { workflowRules } from './workflow-options.js'
import type { AnyEvent, WorkflowRules } from './workflow-options.js'

/** The options of `millrace()` that apply to all jobs; categories and jobs override them. */
export interface SystemOptions {
  readonly codec: Codec
  /** Undefined: the mill has no encryption keys. */
  readonly keyring?: Keyring | undefined
  readonly retry: RetryOptions | undefined
  readonly timeoutMs: number
  readonly keep: KeepOptions | undefined
  readonly unknown: Handler<never, unknown> | undefined
}

/** A job with its inherited options resolved. */
export interface Registered {
  readonly job: AnyJob
  readonly run: NonNullable<ResolvedOptions['run']>
  readonly queue: string
  readonly priority: number
  readonly timeoutMs: number
  readonly keepMs: KeepMs
  /** Most specific first. The `retry` of an enqueue comes before them. */
  readonly retryLevels: readonly RetryOptions[]
  readonly treatAsDone: ((error: unknown) => boolean) | undefined
  readonly codec: Codec
  /** Turns payloads of older versions into the current one; their number is the current version. */
  readonly upcast: readonly Upcast[]
  /** The keys of a job with `encrypt`; undefined for others. */
  readonly keyring: Keyring | undefined
  readonly labels: readonly string[]
  readonly unique: UniqueOptions | undefined
  readonly limit: LimitOptions | undefined
  readonly rate: RateOptions | undefined
  readonly onParentFailure: OnParentFailure
  /** Undefined: the handler runs in the event loop of the worker. */
  readonly isolation: Isolation | undefined
  /** Undefined: that of the mill. */
  readonly slowAfterMs: number | undefined
  /** The job is a workflow: its handler is a body, which a driver runs. */
  readonly workflow: WorkflowRules | undefined
}

/** The jobs of this process, by name. A Map, so that `constructor` and `__proto__` are valid names. */
export class Registry {
  readonly #jobs = new Map<string, Registered>()
  /** Jobs that are enqueued here and registered in other processes only: their results are decoded with their own codec. */
  readonly #enqueuedOnly = new Map<string, Registered>()
  /** The events that registered workflows declare. */
  readonly #events = new Map<string, AnyEvent>()
  readonly #system: SystemOptions
  /** The names as an array, rebuilt when a job is added: every claim reads it. */
  #names: readonly string[] = []
  #unlimited: readonly string[] = []
  #limits: ReadonlyMap<string, JobLimits> = new Map()

  constructor(jobs: unknown, system: SystemOptions) {
    this.#system = system
    for (const one of listJobs(jobs)) this.register(one)
  }

  /** Adds a job, also while the mill runs. The same definition twice is one job; two different jobs of one name are refused. */
  register(job: AnyJob): void {
    if (!isJob(job)) throw new DefinitionError(`register() takes a job made by job(), got ${show(job)}`)
    const known = this.#jobs.get(job.name)
    if (known !== undefined && !sameDefinition(known.job, job))
      throw new DefinitionError(
        `two different jobs are named ${JSON.stringify(job.name)}: ${describeJob(known.job)} and ${describeJob(job)}; rename one`,
      )
    if (known !== undefined) return
    const resolved = this.#resolve(job)
    this.#addEvents(resolved)
    this.#jobs.set(job.name, resolved)
    this.#names = [...this.#jobs.keys()]
    this.#limits = limitsByName(this.list())
    this.#unlimited = this.#limits.size === 0 ? this.#names : this.#names.filter((name) => !this.#limits.has(name))
  }

  /** An event that a registered workflow declares, by its name. */
  event(name: string): AnyEvent | undefined {
    return this.#events.get(name)
  }

  /** The names of the declared events. */
  eventNames(): readonly string[] {
    return [...this.#events.keys()]
  }

  #addEvents({ job, workflow }: Registered): void {
    for (const event of workflow?.events ?? []) {
      const known = this.#events.get(event.name)
      if (known !== undefined && known !== event)
        throw new DefinitionError(
          `workflow ${JSON.stringify(job.name)}: two different events are named ${JSON.stringify(event.name)}; share one value of event(), or rename one`,
        )
    }
    for (const event of workflow?.events ?? []) this.#events.set(event.name, event)
  }

  get(name: string): Registered | undefined {
    return this.#jobs.get(name)
  }

  /** The job to run for a name: the registered one, else the `unknown` handler of the mill, if it has one. */
  runnable(name: string): Registered | undefined {
    const known = this.#jobs.get(name)
    if (known !== undefined || this.#system.unknown === undefined) return known
    return this.#resolveUnknown(name, this.#system.unknown)
  }

  /** The codec of this job's payloads and results. */
  codecOf(name: string): Codec {
    return this.known(name)?.codec ?? this.#guarded(this.#system.codec)
  }

  /** The job of a name, as this process registers or enqueues it. */
  known(name: string): Registered | undefined {
    return this.#jobs.get(name) ?? this.#enqueuedOnly.get(name)
  }

  /** Whether jobs of this name are encrypted; undefined for a name without a definition. */
  encrypts(name: string): boolean | undefined {
    const known = this.known(name)
    return known === undefined ? undefined : known.keyring !== undefined
  }

  /** How long finished jobs of this name are kept: by the job's options, else by the mill's. */
  keepOf(name: string): KeepMs {
    return this.known(name)?.keepMs ?? mergeKeep([this.#system.keep])
  }

  has(name: string): boolean {
    return this.#jobs.has(name)
  }

  /** The names that this process can run; undefined when it can run any. */
  claimable(): readonly string[] | undefined {
    return this.#system.unknown === undefined ? this.#names : undefined
  }

  /** The limits of the jobs that have some, by name. */
  limits(): ReadonlyMap<string, JobLimits> {
    return this.#limits
  }

  /** The names that a claim without limits takes, or those that it leaves out when this process can run any. */
  unlimited(): { readonly names: readonly string[] | undefined; readonly except?: readonly string[] } {
    if (this.#system.unknown === undefined) return { names: this.#unlimited }
    return this.#limits.size === 0 ? { names: undefined } : { names: undefined, except: [...this.#limits.keys()] }
  }

  list(): readonly Registered[] {
    return [...this.#jobs.values()]
  }

  /** The job that an enqueue names. A job value need not be registered here: a producer may register fewer jobs than a worker. */
  lookUp(given: Enqueueable): Registered {
    if (isJob(given)) {
      const known = this.#jobs.get(given.name) ?? this.#enqueuedOnly.get(given.name)
      if (known?.job === given) return known
      const resolved = this.#resolve(given)
      this.#enqueuedOnly.set(given.name, resolved)
      return resolved
    }
    if (typeof given !== 'string')
      throw new DefinitionError(`expected a job made by job(), or its name, got ${show(given)}`)
    const known = this.#jobs.get(given)
    if (known === undefined) throw new UnknownJobError(given, didYouMean(given, this.#names))
    return known
  }

  /** The job names that a filter selects: a name, a job, a category with all its jobs, or a list of those. */
  namesOf(given: unknown): readonly string[] {
    if (Array.isArray(given)) return given.flatMap((one) => this.namesOf(one))
    if (typeof given === 'string') return [given]
    if (isJob(given)) return [given.name]
    if (isCategory(given))
      return this.list()
        .filter((r) => categoriesOf(r.job).includes(given))
        .map((r) => r.job.name)
    throw new DefinitionError(`a filter's job must be a job, a name or a category, got ${show(given)}`)
  }

  #resolve(job: AnyJob): Registered {
    checkInheritance(job)
    const run = handlerOf(job)
    if (run === undefined)
      throw new DefinitionError(
        `job ${JSON.stringify(job.name)} has no handler, and no category of it has a fallback; give it run`,
      )
    return this.#registered(job, run)
  }

  #resolveUnknown(name: string, run: Handler<never, unknown>): Registered {
    const job = { name, options: {} } as AnyJob
    return this.#registered(job, run)
  }

  #registered(job: AnyJob, run: NonNullable<ResolvedOptions['run']>): Registered {
    const system = this.#system
    return {
      job,
      run,
      queue: inherited(job, 'queue') ?? 'default',
      priority: inherited(job, 'priority') ?? 0,
      timeoutMs: timeoutMs(inherited(job, 'timeout'), system.timeoutMs),
      keepMs: mergeKeep([...levels(job, 'keep'), system.keep]),
      retryLevels: [...levels(job, 'retry'), ...(system.retry === undefined ? [] : [system.retry])],
      treatAsDone: inherited(job, 'treatAsDone'),
      codec: this.#guarded(inherited(job, 'codec') ?? system.codec),
      upcast: job.options.upcast ?? [],
      keyring: this.#keyringOf(job),
      labels: inherited(job, 'labels') ?? [],
      unique: mergeUnique(levels(job, 'unique')),
      limit: inherited(job, 'limit'),
      rate: inherited(job, 'rate'),
      onParentFailure: inherited(job, 'onParentFailure') ?? 'wait',
      isolation: isolationOf(job),
      slowAfterMs: slowAfterMs(inherited(job, 'slowAfter')),
      workflow: isWorkflow(job) ? workflowRules(job) : undefined,
    }
  }

  #keyringOf(job: AnyJob): Keyring | undefined {
    if (inherited(job, 'encrypt') !== true) return undefined
    if (this.#system.keyring !== undefined) return this.#system.keyring
    throw new DefinitionError(
      `job ${JSON.stringify(job.name)} has encrypt: true, and this mill has no keys; give millrace() encryption: { keys, current }`,
    )
  }

  /** The store opens what was sealed. What it could not open is refused here, with the reason. */
  #guarded(codec: Codec): Codec {
    const { keyring } = this.#system
    if (keyring === undefined) return codec
    const decode: Codec['decode'] = (stored) => {
      if (isSealed(stored)) throw keyring.refusal(stored)
      return codec.decode(stored)
    }
    return { ...codec, encode: (value) => codec.encode(value), decode }
  }
}

/** `jobs` may be an array, an object or a module namespace. The keys of an object are ignored, and so are other exports of a module. */
export function listJobs(given: unknown): readonly AnyJob[] {
  if (given === undefined) return []
  if (Array.isArray(given)) {
    const wrong = given.findIndex((one) => !isJob(one))
    if (wrong !== -1) throw new DefinitionError(`jobs[${wrong}] must be a job made by job(), got ${show(given[wrong])}`)
    return given as AnyJob[]
  }
  if (!isOptionsObject(given))
    throw new DefinitionError(`jobs must be an array, an object or a module of jobs, got ${show(given)}`)
  const isModule = (given as { [Symbol.toStringTag]?: unknown })[Symbol.toStringTag] === 'Module'
  const found: AnyJob[] = []
  for (const [key, value] of Object.entries(given)) {
    if (isJob(value)) found.push(value)
    else if (!isModule && !isCategory(value))
      throw new DefinitionError(`jobs.${key} must be a job made by job(), got ${show(value)}`)
  }
  return found
}

/** How many characters of a handler an error repeats. */
const SOURCE_SHOWN_MAX = 60

/** A module that is loaded twice (a bundle and its source) defines the same job twice: that is one job. */
function sameDefinition(a: AnyJob, b: AnyJob): boolean {
  if (a === b || (a.options.run !== undefined && a.options.run === b.options.run)) return true
  return a.options.module !== undefined && moduleUrl(a.options.module) === moduleUrl(b.options.module)
}

function describeJob(job: AnyJob): string {
  const described = job.options.description
  const run = job.options.run
  const source =
    typeof run === 'function'
      ? run.toString().replace(/\s+/g, ' ').slice(0, SOURCE_SHOWN_MAX)
      : (moduleUrl(job.options.module) ?? 'lazy or from a category')
  return described === undefined ? `one that runs \`${source}\`` : `one described as ${JSON.stringify(described)}`
}

function limitsByName(jobs: readonly Registered[]): Map<string, JobLimits> {
  const limits = new Map<string, JobLimits>()
  for (const { job, limit, rate } of jobs) {
    const found = limitsOf(limit, rate)
    if (found !== undefined) limits.set(job.name, found)
  }
  return limits
}

function slowAfterMs(value: Duration | number | undefined): number | undefined {
  const parsed = value === undefined ? undefined : parseDuration(value)
  return parsed?.ok === true ? parsed.ms : undefined
}

export function timeoutMs(value: Duration | number | undefined, otherwise: number): number {
  if (value === undefined) return otherwise
  if (value === Infinity) return Infinity
  const parsed = parseDuration(value)
  return parsed.ok ? parsed.ms : otherwise
}
