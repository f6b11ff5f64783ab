import { AsyncLocalStorage } from 'node:async_hooks'
import { Client } from './client.js'
import { ChangeReaders } from './client/read/changes.js'
import { Transitions, TRANSITIONS } from './observe/transitions.js'
import { pauseQueueUntil, queueHandle } from './client/commands/queues.js'
import type { QueueParts } from './client/commands/queues.js'
import { enqueueThroughHooks } from './client/enqueue/enqueue-hooks.js'
import type { EnqueueVerbs } from './client/enqueue/enqueue-hooks.js'
import { statsOf } from './client/statistics/stats.js'
import type { Stats } from './client/statistics/stats.js'
import { defaultCodec } from './codec/codec.js'
import { givenOf } from './codec/options-object.js'
import { ClosedError } from './errors.js'
import type { EnqueueOptions, Enqueueable, Handle } from './job/enqueue.js'
import { commandGiven, toGiven } from './job/command-options.js'
import { auditKeepMs } from './job/definition/keep.js'
import { Registry } from './job/definition/registry.js'
import { Keyring } from './job/secrets/keyring.js'
import type { Registered } from './job/definition/registry.js'
import { Health } from './observe/health/health.js'
import { engineEvents } from './observe/engine-events.js'
import type { EngineEvents } from './observe/engine-events.js'
import { redactedLog } from './observe/redacted-log.js'
import { withoutSecrets } from './observe/hidden-secrets.js'
import { withHooksAndContext } from './mill/hooks-and-context.js'
import type { HooksAndContext } from './mill/hooks-and-context.js'
import { logStopped, startParts } from './mill/started-parts.js'
import type { PartsToStart, StartedParts } from './mill/started-parts.js'
import { retryOne } from './mill/retry-one.js'
import type { SendOptions, SendTarget } from './client/workflow/send.js'
import { checkChange, checkMillOptions, deadlineOf, toMs } from './mill/options.js'
import type { MillOptions, StopOptions } from './mill/options.js'
import type { SequenceOptions } from './client/sequence/write-sequence.js'
import { encryptedStore } from './store/encrypted/encrypted-store.js'
import { thenOrRetry } from './store/unknown-outcome.js'
import type { StoreNotice } from './store/info.js'
import type { Store } from './store/store.js'
import { LiveContext } from './live/live.js'
import type { ListedJob, Mill } from './mill/mill-type.js'
import { toListedJob } from './mill/listed-job.js'
import { serveDashboard, servePrinted } from './mill/dashboard.js'
import { INTERNALS } from './mill/internals.js'
import type { MillInternals } from './mill/internals.js'
import type { MillParts } from './mill/parts.js'
import { checkStoredJobs } from './mill/check-stored-jobs.js'
import { Recursion } from './mill/recursion.js'
import { UnregisteredJobs } from './mill/unregistered.js'
import { stopOnSignals } from './mill/stop-on-signals.js'
import { logOf, queueLimitsOf, storeOf, workerOptionsOf } from './mill/parts-from-options.js'
import { decodeFor, recurringOf } from './mill/recurring.js'
import type { ScheduleRecord } from './schedule/record.js'
import type { Recurring } from './schedule/recurring.js'
import { upcomingBins } from './schedule/upcoming-bins.js'
import { upcoming } from './schedule/upcoming.js'
import { isolatingExecutor } from './worker/executors/isolated.js'
import { loopExecutor } from './worker/executors/loop.js'
import { ChildPool } from './worker/executors/pool.js'
import type { Running } from './worker/attempt/running.js'
import type { WorkerOptions } from './worker/worker.js'
import type { Log } from './world/log.js'
import { systemWorld } from './world/world.js'
import { systemSignals } from './world/signals.js'
import { systemUncaught } from './world/uncaught.js'
import type { SignalStops } from './world/signals.js'
import type { World } from './world/world.js'

/**
 * Opens the store and resolves with a mill. The mill can enqueue at once; no job runs before `start()`.
 *
 * ```ts
 * import { job, millrace } from 'millrace'
 * const sendEmail = job('send-email', async (p: { to: string }) => ({ sent: p.to }))
 * const mill = await millrace({ store: ':memory:', jobs: { sendEmail } })
 * await mill.start()
 * const handle = await mill.enqueue(sendEmail, { to: 'ada@example.com' })
 * console.log(await handle.result())
 * await mill.close()
 * ```
 */
export async function millrace(options: MillOptions = {}): Promise<Mill> {
  checkMillOptions(options, 'millrace()')
  return buildMill(options, { world: systemWorld(), store: storeOf(options.store), uncaught: systemUncaught })
}

/** Builds a mill from its parts. Tests and the simulator call it with parts of their own. */
export async function buildMill(options: MillOptions, parts: MillParts): Promise<Mill> {
  const { world } = parts
  const log = redactedLog(logOf(options.logger, world), options.redact ?? [])
  const keyring = options.encryption && new Keyring(options.encryption, () => world.ids.nonce())
  const registry = new Registry(options.jobs, {
    codec: options.codec ?? defaultCodec,
    keyring,
    retry: options.retry,
    timeoutMs: toMs(options.timeout, '30m'),
    keep: options.keep,
    unknown: options.unknown,
  })
  const opened = await parts.store.open(world, options.autoMigrate ?? true)
  const encrypts = (name: string): boolean | undefined => registry.encrypts(name)
  const store = keyring === undefined ? opened : encryptedStore(opened, { keys: keyring, encrypts })
  log.write('info', { engine: store.info.engine }, `store ${store.info.name}`)
  if (options.changeLog !== undefined) await store.changeLog.switchLog(options.changeLog)
  return new Millrace(options, { ...parts, store }, registry, log) as unknown as Mill
}

class Millrace implements Omit<
  Mill,
  'enqueue' | 'enqueueMany' | 'schedule' | 'recurring' | 'flow' | 'sequence' | 'send'
> {
  #options: MillOptions
  readonly #world: World
  readonly #store: Store
  readonly #registry: Registry
  readonly #log: Log
  readonly #events: EngineEvents
  readonly #hooksAndContext: HooksAndContext
  readonly #client: Client
  readonly #enqueuer: EnqueueVerbs
  readonly #unregistered: UnregisteredJobs
  readonly #recursion: Recursion
  readonly #parts: Pick<MillParts, 'startParts' | 'quarantineMs' | 'blockGraceMs' | 'uncaught'>
  readonly #signals: SignalStops
  readonly schedules: Recurring
  readonly #live: LiveContext
  readonly #shownLive: Mill['live']
  readonly #transitions: Transitions
  readonly #changes: ChangeReaders
  /** Disabled at the close: before Node 24, every promise of the process costs more for each storage that is enabled. */
  readonly #inside = new AsyncLocalStorage<Running>()
  readonly #health: Health
  #stopHealth: (() => void) | undefined
  /** How to stop the attempts of `retryOne` that are under way. */
  readonly #attempts = new Set<StopAttempt>()
  /** What was made of the mill and ends with it. */
  readonly #closers = new Set<() => Promise<void> | void>()
  #isServed = false
  #started: StartedParts | undefined
  /** Runs start and stop one after the other, also when callers overlap. */
  #changing: Promise<void> = Promise.resolve()
  #closing: Promise<void> | undefined
  #stats: Stats | undefined
  #warned = 0
  #goneError: Error | undefined

  constructor(
    options: MillOptions,
    parts: Omit<MillParts, 'store'> & { readonly store: Store },
    registry: Registry,
    log: Log,
  ) {
    const { world, store } = parts
    this.#options = options
    this.#world = world
    this.#parts = parts
    this.#signals = parts.signals ?? systemSignals
    this.#store = store
    this.#registry = registry
    this.#log = log
    const lines = engineEvents(log, () => this.#goneError !== undefined)
    const encrypts = (name: string): boolean => registry.encrypts(name) ?? false
    const events = { ...(options.encryption === undefined ? lines : withoutSecrets(lines, encrypts)), ...parts.watch }
    this.#transitions = new Transitions(() => world.clock.now())
    const executor =
      parts.executor ??
      isolatingExecutor(loopExecutor(this.#inside), {
        pool: new ChildPool(world.timers),
        timers: world.timers,
        strayError: (running, error) => events.strayError(running, error),
      })
    this.#hooksAndContext = withHooksAndContext(options, {
      events: this.#transitions.around(events),
      executor,
      written: {
        handle: (id) => this.#client.handle(id),
        decode: (name, payload, version) => decodeFor(registry, name, payload, version),
      },
    })
    this.#events = this.#hooksAndContext.events
    this.#unregistered = new UnregisteredJobs(registry, log)
    this.#recursion = new Recursion(world.clock, log)
    this.#live = new LiveContext(store.changes, world, (error) =>
      this.#events.storeFailed('read what is watched', error),
    )
    this.#client = this.#newClient(options)
    this.#changes = new ChangeReaders({
      store,
      world,
      isLogged: options.changeLog === true,
      storeFailed: (error) => this.#events.storeFailed('read changes', error),
    })
    this.#shownLive = shownLive(this.#live, this.#client)
    this.#enqueuer = enqueueThroughHooks(this.#client, registry, this.#hooksAndContext.enqueueHooks, {
      store,
      events: this.#events,
    })
    this.schedules = recurringOf(
      { world, store, registry, events: this.#events, live: this.#live },
      this.#client,
      auditKeepMs(options.keep),
    )
    this.#health = this.#newHealth(options)
    this.#warn()
    store.info.onNotice?.((notice) => this.#notice(notice))
  }

  enqueue(job: Enqueueable, payload?: unknown, options?: EnqueueOptions): Promise<Handle<unknown>> {
    return this.#enqueuer.enqueue(job, payload, options)
  }
  enqueueMany(job: Enqueueable, payloads: readonly unknown[], options?: EnqueueOptions): Promise<Handle<unknown>[]> {
    return this.#enqueuer.enqueueMany(job, payloads, options)
  }
  schedule(job: Enqueueable, payload: unknown, when: unknown, options?: EnqueueOptions): Promise<Handle<unknown>> {
    return this.#enqueuer.schedule(job, payload, when, options)
  }
  recurring(...args: Parameters<Recurring['put']>): Promise<ScheduleRecord> {
    return this.schedules.put(...args)
  }
  deleteRecurring: Mill['deleteRecurring'] = async (id, options) => this.schedules.delete(id, options)
  upcoming: Mill['upcoming'] = (span, options) => upcoming(this.#store, span, options)
  upcomingBins: Mill['upcomingBins'] = (span, options) => upcomingBins(this.#store, span, options)
  flow(build: unknown, options?: unknown): Promise<unknown> {
    return this.#client.runFlow(build, options, this.#enqueuer)
  }
  sequence(...args: readonly [unknown, (readonly unknown[])?, SequenceOptions?]): unknown {
    if (args.length < 2) return this.#client.findSequence(args[0])
    const [job, items, options] = args
    const written = this.#enqueuer.sequence(job as Enqueueable, items as readonly unknown[], options)
    return thenOrRetry(written, (handle) => this.#client.writtenSequence(handle))
  }
  unschedule: Mill['unschedule'] = (job, key, options) => this.#client.unschedule(job, key, options)
  get: Mill['get'] = (id) => this.#client.get(id)
  count: Mill['count'] = (filter) => this.#client.count(filter)
  findPage: Mill['findPage'] = async (filter, options) =>
    this.#client.findPage(filter as never, options) as Promise<never>
  find: Mill['find'] = (filter) => this.#client.find(filter) as AsyncIterableIterator<never>
  check: Mill['check'] = (filter) => checkStoredJobs({ store: this.#store, registry: this.#registry }, filter)
  handle: Mill['handle'] = (id) => this.#client.handle(id)
  events: Mill['events'] = () => this.#transitions.read()
  changes: Mill['changes'] = (consumer, options) => this.#changes.read(consumer, options)
  stopChanges: Mill['stopChanges'] = (consumer, options) => this.#changes.stop(consumer, options)
  stopAllChanges: Mill['stopAllChanges'] = () => this.#changes.stopAll()
  watch: Mill['watch'] = (id) => this.#client.watch(id)
  get live(): Mill['live'] {
    return this.#shownLive
  }
  send(to: SendTarget, event: unknown, payload?: unknown, options?: SendOptions): Promise<boolean> {
    return this.#client.send(to, event, payload, options)
  }
  steps: Mill['steps'] = (id, options) => this.#client.steps(id, options)
  retry: Mill['retry'] = (id, options) => this.#client.command(id, 'retry', options)
  cancel: Mill['cancel'] = (id, options) => this.#client.command(id, 'cancel', options)
  pause: Mill['pause'] = (id, options) => this.#client.command(id, 'pause', options)
  resume: Mill['resume'] = (id, options) => this.#client.command(id, 'resume', options)
  retryOne: Mill['retryOne'] = async (queue, options) => {
    if (this.#closing !== undefined) throw new ClosedError()
    const { name } = this.queue(queue)
    const audit = commandGiven('retryOne', 'retryOne()', options, auditKeepMs(this.#options.keep)).audit
    const stops = new Set<StopAttempt>()
    const started = (stop: StopAttempt): void => {
      for (const before of stops) this.#attempts.delete(before)
      stops.add(stop)
      this.#attempts.add(stop)
    }
    const get = this.get
    const parts = this.#partsToStart()
    return retryOne({ parts, queue: name, audit, get, started }).finally(() => {
      for (const stop of stops) this.#attempts.delete(stop)
    })
  }
  retryAll: Mill['retryAll'] = (filter, options) =>
    this.#client.commandAll('retryAll', filter, options) as Promise<never>
  cancelAll: Mill['cancelAll'] = (filter, options) =>
    this.#client.commandAll('cancelAll', filter, options) as Promise<never>
  deleteAll: Mill['deleteAll'] = (filter, options) =>
    this.#client.commandAll('deleteAll', filter, options) as Promise<never>
  pauseAll: Mill['pauseAll'] = (filter, options) =>
    this.#client.commandAll('pauseAll', filter, options) as Promise<never>
  resumeAll: Mill['resumeAll'] = (filter, options) =>
    this.#client.commandAll('resumeAll', filter, options) as Promise<never>
  why: Mill['why'] = ((id: unknown) => this.#client.why(id)) as Mill['why']
  dashboard: Mill['dashboard'] = (options) => serveDashboard(this as unknown as Mill, options)
  healthy: Mill['healthy'] = () => this.#health.healthy
  health: Mill['health'] = () => this.#health.check()
  parents: Mill['parents'] = async (id, options) => this.#client.parents(id, options)
  children: Mill['children'] = async (id, options) => this.#client.children(id, options)
  workers: Mill['workers'] = (options) => this.#client.workers(options)
  groups: Mill['groups'] = (options) => this.#client.groups(options)
  sequences: Mill['sequences'] = (options) => this.#client.sequences(options)
  audit: Mill['audit'] = (options) => this.#client.audit(options)
  get stats(): Stats {
    return (this.#stats ??= statsOf({ store: this.#store, world: this.#world }))
  }
  queue: Mill['queue'] = (name) => queueHandle(this.#queueParts(), name)
  group: Mill['group'] = (id, options) => this.#client.group(id, options)
  delete: Mill['delete'] = (id, options) => this.#client.delete(id, options)
  edit: Mill['edit'] = (id, change, options) => this.#client.edit(id, change, options)

  get [TRANSITIONS](): Transitions {
    return this.#transitions
  }

  get [INTERNALS](): MillInternals {
    return {
      store: this.#store,
      registry: this.#registry,
      world: this.#world,
      log: this.#log,
      redact: this.#options.redact ?? [],
      hasKeys: this.#options.encryption !== undefined,
      enqueueBy: (by, name, payload, options) => {
        const audit = toGiven('enqueue', by, auditKeepMs(this.#options.keep)).audit
        return this.#enqueuer.enqueue(name, payload, options, { audit })
      },
      auditKeepMs: () => auditKeepMs(this.#options.keep),
      onClose: (closer) => {
        this.#closers.add(closer)
        return () => void this.#closers.delete(closer)
      },
    }
  }

  jobs(): readonly ListedJob[] {
    return this.#registry.list().map(toListedJob)
  }
  has(name: string): boolean {
    return this.#registry.has(name)
  }
  async run(name: string, payload?: unknown): Promise<unknown> {
    return this.#registry.lookUp(String(name)).job.run(payload)
  }
  register: Mill['register'] = (job) => {
    this.#registry.register(job as Registered['job'])
    this.#started?.wake()
  }
  configure(change: Partial<MillOptions>): void {
    checkChange(change)
    this.#options = { ...this.#options, ...givenOf(change) }
    if (this.#started !== undefined && change.queues !== undefined)
      this.#storeLimits().catch((error: unknown) => this.#events.storeFailed('store the limits of queues', error))
    this.#started?.configure(this.#workerOptions())
  }

  start(): Promise<void> {
    return this.#next(async () => {
      if (this.#closing !== undefined) throw new ClosedError()
      if (this.#goneError !== undefined) throw this.#goneError
      if (this.#started === undefined) await this.#storeLimits()
      this.#started ??= await this.#startParts()
      this.#unregistered.started()
      // A simulated world, which has no vitals, is checked on demand.
      if (this.#world.vitals !== undefined) this.#stopHealth ??= this.#health.start()
      await this.#serve()
      // The store was reported gone while the parts started.
      if (this.#goneError !== undefined) this.#started.abandon(this.#goneError)
    })
  }

  /** The option `dashboard`: served from the first start on. */
  async #serve(): Promise<void> {
    const { dashboard = false } = this.#options
    if (dashboard === false || this.#isServed) return
    await servePrinted(this as unknown as Mill, dashboard)
    this.#isServed = true
  }

  async stop(options: StopOptions = {}): Promise<void> {
    const deadlineMs = deadlineOf(options, 'stop()')
    return this.#next(async () => {
      this.#stopHealth?.()
      this.#stopHealth = undefined
      await Promise.all([...this.#attempts].map((stopAttempt) => stopAttempt(deadlineMs)))
      const started = this.#started
      this.#started = undefined
      if (started === undefined) return
      await started.stop(deadlineMs)
      logStopped(this.#log, started.releasedCount())
    })
  }

  async close(options: StopOptions = {}): Promise<void> {
    deadlineOf(options, 'close()')
    this.#closing ??= this.#closeOnce(options)
    return this.#closing
  }

  stopOnSignals: Mill['stopOnSignals'] = (options) => {
    if (this.#closing !== undefined) throw new ClosedError()
    const close = (deadline: number, isEnding: boolean): Promise<void> =>
      (this.#closing ??= this.#closeOnce({ deadline }, isEnding))
    return stopOnSignals({ mill: this, close }, this.#signals, this.#log, options)
  }

  async #closeOnce(options: StopOptions, isEnding = false): Promise<void> {
    this.#signals.remove(this)
    await Promise.all([...this.#closers].map(async (closer) => closer()))
    try {
      await this.stop(options)
    } finally {
      // When the process is about to exit, pending results must stay pending: a rejected top-level await would change the exit code.
      if (!isEnding) this.#client.close()
      this.#transitions.close()
      await this.#changes.stopAll()
      await this.#live.close()
      await this.#store.close().finally(() => this.#inside.disable())
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  async #storeLimits(): Promise<void> {
    const limits = queueLimitsOf(this.#options)
    if (limits.length > 0) await this.#store.queues.setLimits(limits)
  }

  #newHealth({ allowedErrorTime, startGrace, onSystemError, onSystemRecovery }: MillOptions): Health {
    return new Health({
      world: this.#world,
      store: this.#store,
      log: this.#log,
      allowedErrorMs: toMs(allowedErrorTime, '15m'),
      startGraceMs: toMs(startGrace, '10m'),
      slowAfterMs: () => toMs(this.#options.slowAfter, '5m'),
      goneError: () => this.#goneError,
      onSystemError,
      onSystemRecovery,
    })
  }

  #newClient(options: MillOptions): Client {
    return new Client({
      world: this.#world,
      store: this.#store,
      registry: this.#registry,
      codec: options.codec ?? defaultCodec,
      capture: this.#hooksAndContext.capture,
      insideHandler: () => this.#inside.getStore() !== undefined,
      live: this.#live,
      callingJob: () => this.#inside.getStore()?.id,
      auditKeepMs: auditKeepMs(options.keep),
      enqueued: (jobs) => this.#events.enqueued(jobs),
      unregistered: (name) => this.#unregistered.note(name),
      chainOf: (name) => this.#recursion.chainOf(name, this.#inside.getStore()),
      changed: (job, to, reason) => this.#events.changed(job, to, reason),
      requested: (job, verb) => this.#events.requested(job, verb),
    })
  }

  #startParts(): Promise<StartedParts> {
    return (this.#parts.startParts ?? startParts)(this.#partsToStart())
  }

  #partsToStart(): PartsToStart {
    return {
      world: this.#world,
      store: this.#store,
      registry: this.#registry,
      executor: this.#hooksAndContext.executor,
      runInContext: this.#hooksAndContext.runInContext,
      quarantineMs: this.#parts.quarantineMs,
      blockGraceMs: this.#parts.blockGraceMs,
      enqueue: (claim, job, payload, options) =>
        this.#enqueuer.enqueue(job, payload, options as EnqueueOptions | undefined, { claim }),
      prepareChild: (job, payload, options, calledBy) =>
        this.#enqueuer.child(job, payload, options as EnqueueOptions | undefined, calledBy),
      prepareInput: (registered, input) => this.#client.encodeInput(registered, input),
      pauseQueue: (claim, queue, when) => pauseQueueUntil(this.#queueParts(), queue, when, { claim }),
      results: (id, parent) => this.#client.results(id, parent),
      events: this.#events,
      log: this.#log,
      uncaught: this.#parts.uncaught,
      options: () => this.#workerOptions(),
      version: this.#options.version,
      warn: () => this.#warn(),
    }
  }

  #queueParts(): QueueParts {
    return {
      world: this.#world,
      store: this.#store,
      auditKeepMs: auditKeepMs(this.#options.keep),
      paused: (queue, pause) => this.#events.queuePaused(queue, pause),
    }
  }

  /** Logs each warning of the store once. Some are known only after a worker has started to listen. */
  #warn(): void {
    const { warnings } = this.#store.info
    for (const warning of warnings.slice(this.#warned)) this.#log.write('warn', {}, warning)
    this.#warned = warnings.length
  }

  /** A store that is gone does not come back: the worker stops at once, and `stop` and `close` only wait for its handlers. */
  #notice(notice: StoreNotice): void {
    if (notice.kind === 'warning') return this.#log.write('warn', {}, notice.text)
    this.#goneError = notice.error
    this.#log.write('error', { err: notice.error }, notice.error.message)
    this.#client.close(notice.error)
    this.#started?.abandon(notice.error)
  }

  #workerOptions(): WorkerOptions {
    return workerOptionsOf(this.#options)
  }

  #next(step: () => Promise<void>): Promise<void> {
    const done = this.#changing.then(step)
    this.#changing = done.catch(() => undefined) // The caller gets the error; the next step must still run.
    return done
  }
}

type StopAttempt = (deadlineMs: number) => Promise<void>

/** `mill.live`. */
function shownLive(live: LiveContext, client: Client): Mill['live'] {
  return Object.freeze({
    get context() {
      return live.context
    },
    get queues() {
      return client.liveQueues()
    },
    get workers() {
      return client.liveWorkers()
    },
  })
}
