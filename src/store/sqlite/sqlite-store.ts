import type { Census } from '../census.js'
import { readCensus } from './verbs/census.js'
import { NO_PICK } from '../../job/limits/outage.js'
import type { Probe } from '../../job/limits/outage.js'
import type { World } from '../../world/world.js'
import type { Cancel } from '../../world/timers.js'
import type { Watch } from '../../world/watch.js'
import type {
  Changed,
  ChangeStore,
  Claim,
  Claimed,
  ClaimRequest,
  GuardedChange,
  Hint,
  Inserted,
  InsertOptions,
  JobRow,
  JobStore,
  LeasedJob,
  LeaseStore,
  NewJob,
  Promoted,
  Report,
  SettledJob,
  Store,
} from '../store.js'
import type { CountedPage, FindQuery, FoundPage } from '../find.js'
import { lateAfter } from '../workers.js'
import type { Heartbeat, HeartbeatRequest, Rescue, WorkerBeat, WorkerInfo } from '../workers.js'
import type { GroupStore } from '../groups.js'
import type { LimitedClaimed, LimitedClaimRequest, QueueLimitsChange, QueueState } from '../limits.js'
import type { PruneStore } from '../prune.js'
import { CALL_PACE } from '../info.js'
import type { StoreFinding } from '../info.js'
import type { Appended, AppendedStep, Boundary, SequenceStore } from '../sequences.js'
import type { Inbox, KeptClaim, LogAppend, LogAppended, WorkflowLog, WorkflowStore } from '../workflows.js'
import type { Confirmation, HeldJob, PausedQueue, QueueChange, QueueStore, CurrentPause } from '../queues.js'
import type { JobRequest, PendingRequest, SettleResult } from '../requests.js'
import { readGroup, sealGroup } from '../verbs/groups.js'
import { readRequests, requestChange } from '../verbs/requests.js'
import { pauseQueue, readPause, resumeQueue } from '../verbs/pauses.js'
import { putQueueLimits } from '../verbs/queue-limits.js'
import { readQueueState } from '../verbs/outages.js'
import { Schedules } from '../verbs/schedules.js'
import type { AuditNote } from '../../job/command-options.js'
import type { WorkerAbout } from '../observing/lists.js'
import { changeLogVerbs } from '../verbs/change-log.js'
import { observingVerbs } from '../verbs/observing.js'
import { CHANGE_TRIGGERS, IS_TRIGGER } from './migrations/0001-change-log.js'
import { sequenceVerbs } from '../verbs/sequences.js'
import { workflowVerbs } from '../verbs/workflows.js'
import type { VerbRunner } from '../verbs/verb.js'
import { transactionOf } from './caller-transactions/handles.js'
import { changeJob } from './verbs/change.js'
import { claimJobs, isAnyHeld, nothingToClaim, reportJobs } from './verbs/claim.js'
import { Confirmed } from './verbs/confirmed.js'
import { CommitQueue } from './connection/commit-queue.js'
import { CommitWatch } from './caller-transactions/commit-watch.js'
import { Statements } from './connection/driver.js'
import { FullDisk } from './file/full-disk.js'
import { startHeartbeat } from './connection/heartbeat.js'
import { Hints } from './wake/hints.js'
import { insertJobs } from './verbs/insert.js'
import { schemaFindings } from '../migrations.js'
import { SCHEMA_VERSION, schemaVersion } from './migrations/migrate.js'
import { verbRunner } from './verbs/job-session.js'
import type { OpenedFile } from './connection/open.js'
import { Notices } from './wake/notices.js'
import { claimLimited, claimRetried, nothingLimited } from './verbs/limits.js'
import { pruneVerbs } from './verbs/prune.js'
import { nothingToPromote, promoteJobs } from './verbs/upkeep.js'
import type { Queries } from './queries/queries.js'
import { queries as ownQueries } from './queries/queries.js'
import { countJobs, findJobs } from './verbs/find.js'
import { readJobs, readKeyed } from './verbs/read.js'
import { Session } from './connection/session.js'
import { readLeases, readWorkers, rescueJobs, settleJobs } from './verbs/settle.js'
import { appendStep, readBoundary, withPositions } from './verbs/sequences.js'
import { appendSteps, findUnbegun, readInboxes, readLogs, readUnsuspended } from './verbs/workflows.js'
import { SqliteTransactions } from './caller-transactions/transactions.js'
import { Wal } from './file/wal.js'

export interface SqliteStoreOptions {
  readonly durability: 'power' | 'process'
  /** The statements; a test may plant a wrong one. */
  readonly queries?: Queries | undefined
  /** Prepared statements to share: the simulator's processes all use one connection. */
  readonly statements?: Statements | undefined
  /** The database's clock; only the simulator passes one. */
  readonly now?: (() => number) | undefined
  /** How to watch for commits of other processes; without it they are found by polling alone. */
  readonly watch?: Watch | undefined
}

const NOT_FLUSHED = { durable: false }

/** The store contract on one SQLite file. The verbs are in `verbs/`; this class passes them to the commit queue. */
export class SqliteStore implements Store, JobStore, LeaseStore, QueueStore, ChangeStore {
  readonly groups: GroupStore
  readonly info: Store['info']
  readonly jobs: JobStore = this
  readonly leases: LeaseStore = this
  readonly queues: QueueStore = this
  readonly changes: ChangeStore = this
  readonly transactions: SqliteTransactions
  readonly schedules: Schedules
  readonly sequences: SequenceStore
  readonly workflows: WorkflowStore
  readonly observing: Store['observing']
  readonly changeLog: Store['changeLog']
  readonly #file: OpenedFile
  readonly #session: Session
  readonly #commits: CommitQueue
  readonly #verbs: VerbRunner
  readonly #confirmed: Confirmed
  readonly #prune: PruneStore
  readonly #disk: FullDisk | undefined
  readonly #watch: CommitWatch
  readonly #hints: Hints
  readonly #notices = new Notices()
  readonly #wal: Wal
  readonly #clock: World['clock']
  /** The last claim under limits took jobs. */
  #hasTakenLimited = false

  constructor(file: OpenedFile, world: World, options: SqliteStoreOptions) {
    this.#clock = world.clock
    this.#file = file
    const queries = options.queries ?? ownQueries
    this.#session = new Session(options.statements ?? new Statements(file.database), queries)
    this.#confirmed = new Confirmed(this.#session)
    this.#commits = new CommitQueue(this.#session.statements, queries, world, {
      name: file.path,
      durability: options.durability,
      now: options.now,
      isTaken: file.given === file.database ? () => transactionOf(file.database) === 'open' : undefined,
      onBegin: () => void (this.#session.isInOrder = false),
      onCommit: (durable) => this.#committed(durable),
      onRollback: () => this.#session.forget(),
      onFailure: (error) => this.#disk?.failed(error),
      identity: file.identity,
    })
    this.#prune = pruneVerbs(this.#commits, this.#session)
    this.#verbs = verbRunner(this.#commits, this.#session)
    this.schedules = new Schedules(this.#verbs)
    this.sequences = sequenceVerbs(this.#verbs)
    this.workflows = workflowVerbs(this.#verbs)
    this.observing = observingVerbs(this.#verbs)
    this.changeLog = changeLogVerbs(this.#verbs, (isOn) => this.#switchLog(isOn))
    this.groups = {
      readGroup: (group) => this.#verbs.read((at) => readGroup(at, group)),
      sealGroup: (seal) => this.#verbs.write((at) => sealGroup(at, seal)),
    }
    this.#disk = file.path === ':memory:' ? undefined : new FullDisk(file.path, world)
    const [session, warnings, { identity }] = [this.#session, [...file.warnings], file]
    const onNotice = this.#notices.on.bind(this.#notices)
    const inspect = (): Promise<readonly StoreFinding[]> => this.#commits.read(() => this.#inspect(file.database))
    this.info = { name: file.path, engine: `SQLite ${file.version}`, warnings, inspect, onNotice, ...CALL_PACE.sqlite }
    const note = (sentence: string): void => void warnings.push(sentence)
    this.#hints = new Hints({ session, path: file.path, world, watch: options.watch, identity, note })
    this.#watch = new CommitWatch(world, {
      version: () => this.#hints.version(),
      isOwn: (handle) => handle === file.database,
      committed: () => this.#hints.callerCommitted(),
    })
    this.transactions = new SqliteTransactions({
      file,
      world,
      queries,
      durability: options.durability,
      now: () => this.#commits.now(),
      refusal: () => this.#disk?.refusal,
      expectCommit: (handle) => this.#watch.expect(handle),
      committed: () => this.#hints.callerCommitted(),
    })
    this.#wal = new Wal(file, this.#session, world, (text) => this.#notices.send({ kind: 'warning', text }))
    identity?.watch({
      verified: (walBytes) => this.#wal.noticed(walBytes),
      gone: (error) => {
        this.#rest()
        this.#notices.send({ kind: 'gone', error })
      },
    })
  }

  insertJobs(jobs: readonly NewJob[], options: InsertOptions): Promise<readonly Inserted[]> {
    const refusal = this.#disk?.refusal
    if (refusal !== undefined) return Promise.reject(refusal)
    return this.#commits.write((now) => insertJobs(this.#session, jobs, options, now))
  }

  readJobs(ids: readonly string[]): Promise<readonly (JobRow | undefined)[]> {
    return this.#commits.read(() => readJobs(this.#session, ids))
  }

  readKeyed(name: string, key: string): Promise<JobRow | undefined> {
    return this.#commits.read(() => readKeyed(this.#session, name, key))
  }

  findJobs(query: FindQuery): Promise<FoundPage> {
    return this.#commits.read(() => findJobs(this.#session, query))
  }

  countJobs(query: FindQuery): Promise<CountedPage> {
    return this.#commits.read(() => countJobs(this.#session, query))
  }

  changeJob(change: GuardedChange): Promise<Changed> {
    return this.#commits.write((now) => changeJob(this.#session, change, now))
  }

  requestChange(request: JobRequest): Promise<'noted' | 'refused' | 'stale'> {
    return this.#verbs.write((at) => requestChange(at, request))
  }

  pauseQueue(change: QueueChange): Promise<PausedQueue> {
    const session = this.#session
    return this.#verbs.write(function* (at) {
      session.takings += 1
      const paused = yield* pauseQueue(at, change)
      return { ...paused, held: paused.held && isAnyHeld(session) }
    })
  }

  resumeQueue(queue: string, audit?: AuditNote): Promise<boolean> {
    return this.#verbs.write((at) => resumeQueue(at, queue, audit))
  }

  readPause(queue: string): Promise<CurrentPause | undefined> {
    return this.#verbs.read((at) => readPause(at, queue))
  }

  async setLimits(changes: readonly QueueLimitsChange[]): Promise<void> {
    await this.#verbs.write((at) => putQueueLimits(at, changes))
  }

  readQueue(queue: string): Promise<QueueState> {
    return this.#verbs.read((at) => readQueueState(at, queue))
  }

  promoteJobs(limit: number, probe: Probe = NO_PICK): Promise<Promoted> {
    const readFirst = (now: number): Promoted | undefined => nothingToPromote(this.#session, now)
    return this.#commits.write((now) => promoteJobs(this.#session, limit, now, probe), { ...NOT_FLUSHED, readFirst })
  }

  pruneJobs: JobStore['pruneJobs'] = (limit) => this.#prune.pruneJobs(limit)
  sweepRows: JobStore['sweepRows'] = (limit) => this.#prune.sweepRows(limit)

  async addWorker({ id, host, pid, identity = null, leaseMs, about }: WorkerInfo): Promise<void> {
    this.#hints.hasLocalWorker = true
    const sql = this.#session.queries.addWorker
    const row = [id, host, pid, identity, leaseMs ?? null, about === undefined ? null : JSON.stringify(about)] as const
    const add = (now: number): unknown => this.#session.statement(sql).run(...row, now)
    await this.#commits.write(add, NOT_FLUSHED)
  }

  async reportWorker(worker: string, about: WorkerAbout): Promise<void> {
    const sql = this.#session.queries.reportWorker
    await this.#commits.write(() => this.#session.statement(sql).run(JSON.stringify(about), worker), NOT_FLUSHED)
  }

  beat(worker: string): Promise<boolean> {
    const sql = this.#session.queries.beat
    return this.#commits.write(() => Number(this.#session.statement(sql).run(worker).changes) > 0, NOT_FLUSHED)
  }

  startHeartbeat(...[worker, everyMs, onLost, loop]: HeartbeatRequest): Promise<Heartbeat | undefined> {
    const { path, library, identity } = this.#file
    if (path === ':memory:') return Promise.resolve(undefined)
    return startHeartbeat({ library, path, worker, everyMs, queries: this.#session.queries, identity, onLost, loop })
  }

  async dropWorker(worker: string): Promise<void> {
    this.#hints.hasLocalWorker = false
    await this.#commits.write(() => this.#session.statement(this.#session.queries.dropWorker).run(worker), NOT_FLUSHED)
  }

  readWorkers(): Promise<readonly WorkerBeat[]> {
    return this.#commits.read(() => readWorkers(this.#session))
  }

  claimJobs(request: ClaimRequest): Promise<Claimed> {
    const refusal = this.#disk?.refusal
    if (refusal !== undefined) return Promise.reject(refusal)
    const claim = (now: number): Claimed => {
      const claimed = claimJobs(this.#session, request, now)
      if (claimed.jobs.length > 0) this.#confirmed.claimed(request.fence)
      return { ...claimed, jobs: withPositions(this.#session, claimed.jobs) }
    }
    if (this.#hints.takeMadeReady()) return this.#commits.write(claim, NOT_FLUSHED)
    const readFirst = (now: number): Claimed | undefined => nothingToClaim(this.#session, request, now)
    return this.#commits.write(claim, { ...NOT_FLUSHED, readFirst })
  }

  #inspect(database: OpenedFile['database']): StoreFinding[] {
    return [...this.#wal.findings(), ...schemaFindings(schemaVersion(database), SCHEMA_VERSION)]
  }

  claimLimited(request: LimitedClaimRequest): Promise<LimitedClaimed> {
    const refusal = this.#disk?.refusal
    if (refusal !== undefined) return Promise.reject(refusal)
    const { only } = request
    const claim = (now: number): LimitedClaimed => {
      const claimed =
        only === undefined ? claimLimited(this.#session, request, now) : claimRetried(this.#session, request, only, now)
      this.#hasTakenLimited = claimed.jobs.length > 0
      if (claimed.jobs.length > 0) this.#confirmed.claimed(request.fence)
      return { ...claimed, jobs: withPositions(this.#session, claimed.jobs) }
    }
    // After a claim that took jobs there are probably more: it does not read first whether there are.
    if (this.#hasTakenLimited || only !== undefined) return this.#commits.write(claim, NOT_FLUSHED)
    const readFirst = (now: number): LimitedClaimed | undefined => nothingLimited(this.#session, request, now)
    return this.#commits.write(claim, { ...NOT_FLUSHED, readFirst })
  }

  confirmJobs(held: readonly HeldJob[]): Promise<Confirmation> {
    return this.#commits.read((now) => this.#confirmed.confirm(held, now))
  }

  readRequests(): Promise<readonly PendingRequest[]> {
    return this.#verbs.read(readRequests)
  }

  reportJobs(reports: readonly Report[]): Promise<readonly number[]> {
    return this.#commits.write(() => reportJobs(this.#session, reports), NOT_FLUSHED)
  }

  settleJobs(settled: readonly SettledJob[], closeLeases: readonly number[]): Promise<SettleResult> {
    this.#confirmed.closed(closeLeases)
    return this.#commits.write((now) => settleJobs(this.#session, settled, closeLeases, now))
  }

  appendStep(appended: AppendedStep): Promise<Appended> {
    return this.#commits.write((now) => appendStep(this.#session, appended, now))
  }

  readLogs(claims: readonly KeptClaim[]): Promise<readonly WorkflowLog[]> {
    const readFirst = (now: number): WorkflowLog[] | undefined => readUnsuspended(this.#session, claims, now)
    return this.#commits.write((now) => readLogs(this.#session, claims, now), { ...NOT_FLUSHED, readFirst })
  }

  findUnbegun(claims: readonly Claim[]): Promise<readonly number[]> {
    return this.#commits.read(() => findUnbegun(this.#session, claims))
  }

  readInboxes(claims: readonly Claim[]): Promise<readonly Inbox[]> {
    return this.#commits.read(() => readInboxes(this.#session, claims))
  }

  appendSteps(appends: readonly LogAppend[]): Promise<readonly LogAppended[]> {
    return this.#commits.write((now) => appendSteps(this.#session, appends, now))
  }

  readBoundary(claim: HeldJob): Promise<Boundary> {
    return this.#commits.read((now) => readBoundary(this.#session, claim, now))
  }

  /** A claim on SQLite ends with its call, so no claim can still be in flight. */
  async voidClaims(worker: string, fences: readonly number[]): Promise<readonly LeasedJob[]> {
    return (await this.readLeases(worker)).filter(({ fence }) => fences.includes(fence))
  }

  endQuarantine(worker: string, fence: number): Promise<void> {
    const end = (): void => void this.#session.statement(this.#session.queries.endQuarantine).run(fence, worker)
    return this.#commits.write(end)
  }

  readLeases(worker: string): Promise<readonly LeasedJob[]> {
    return this.#commits.read(() => readLeases(this.#session, worker))
  }

  rescueJobs(...[worker, beat, settled, withinMs = Infinity]: Rescue): Promise<SettleResult | null> {
    const isLate = lateAfter(this.#clock, withinMs)
    return this.#commits.write((now) => (isLate() ? null : rescueJobs(this.#session, worker, beat, settled, now)))
  }

  onHint(callback: (hint: Hint) => void): Cancel {
    return this.#hints.on(callback)
  }

  readCensus(): Promise<Census> {
    return Promise.resolve(readCensus(this.#session.statements))
  }

  async close(): Promise<void> {
    await this.#commits.close()
    this.#rest()
    this.transactions.close()
    await this.#wal.close()
    this.#session.statements.clear()
    this.#file.close()
  }

  /** Stops the background work, so that nothing more is written, and no file is created, at this path. */
  #rest(): void {
    this.#wal.stop()
    for (const part of [this.#disk, this.#watch, this.#hints]) part?.close()
  }

  /** A statement that changes the schema makes every connection prepare its statements again: only when it changes. */
  async #switchLog(isOn: boolean): Promise<void> {
    const { statements } = this.#session
    await this.#commits.write(() => {
      for (const [name, create] of Object.entries(CHANGE_TRIGGERS)) {
        const isThere = statements.database.prepare(IS_TRIGGER).get(name) !== undefined
        if (isThere !== isOn) statements.database.exec(isOn ? create : `drop trigger ${name}`)
      }
    })
  }

  #committed(durable: boolean): void {
    this.#wal.committed(durable)
    this.#hints.committed()
  }
}
