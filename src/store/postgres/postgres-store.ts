import type { Cancel } from '../../world/timers.js'
import type { World } from '../../world/world.js'
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
import { readRequests, requestChange } from '../verbs/requests.js'
import { pauseQueue, readPause, resumeQueue } from '../verbs/pauses.js'
import { Schedules } from '../verbs/schedules.js'
import type { AuditNote } from '../../job/command-options.js'
import type { WorkerAbout } from '../observing/lists.js'
import { changeLogVerbs } from '../verbs/change-log.js'
import { observingVerbs } from '../verbs/observing.js'
import { changeTriggers, dropChangeTriggers } from './migrations/0001-change-log.js'
import { quoted } from './migrations/migrate.js'
import { sequenceVerbs } from '../verbs/sequences.js'
import { workflowVerbs } from '../verbs/workflows.js'
import type { VerbRunner } from '../verbs/verb.js'
import { thenOrRetry } from '../unknown-outcome.js'
import type { StoreFinding, StoreInfo } from '../info.js'
import type { Inbox, KeptClaim, LogAppend, LogAppended, WorkflowLog, WorkflowStore } from '../workflows.js'
import { putQueueLimits } from '../verbs/queue-limits.js'
import { readQueueState } from '../verbs/outages.js'
import { NO_PICK } from '../../job/limits/outage.js'
import type { Probe } from '../../job/limits/outage.js'
import type { LimitedClaimed, LimitedClaimRequest, QueueLimitsChange, QueueState } from '../limits.js'
import { LimitedClaims } from './verbs/limits.js'
import type { Confirmation, HeldJob, PausedQueue, QueueChange, QueueStore, CurrentPause } from '../queues.js'
import type { JobRequest, PendingRequest, SettleResult } from '../requests.js'
import type { CountedPage, FindQuery, FoundPage } from '../find.js'
import type { Appended, AppendedStep, Boundary, SequenceStore } from '../sequences.js'
import { beatOf, lateAfter } from '../workers.js'
import type { Heartbeat, HeartbeatRequest, Rescue, WorkerBeat, WorkerInfo, WorkerRow } from '../workers.js'
import { readCensus } from './verbs/census.js'
import type { Census } from '../census.js'
import { LastClaim, claimJobs, confirmJobs, heldAfterPause, readLeases, reportJobs, voidClaims } from './verbs/claim.js'
import { Commands } from './verbs/change.js'
import type { Connection } from './connection/connection.js'
import { WriteBatcher } from './connection/write-batcher.js'
import { LOCK_PATIENCE_MS, whileLocked } from './connection/while-locked.js'
import { Hints } from './wake/hints.js'
import { insertJobs } from './verbs/insert.js'
import { inspectServer, ListenerCheck } from './verbs/inspect.js'
import { verbRunner } from './verbs/job-session.js'
import { KeyedInserts } from './verbs/keyed-inserts.js'
import { Lanes } from './verbs/lanes.js'
import type { Opened } from './connection/open.js'
import { countJobs, findJobs } from './verbs/find.js'
import { readJobs, readKeyed } from './verbs/read.js'
import { Runner } from './connection/runner.js'
import type { Call } from './connection/receipts.js'
import { arrayOf, clean } from './connection/session.js'
import type { JobSession } from './verbs/job-session.js'
import { endAlone, endPlain, ReportRows, rescueJobs, settleAndClose, sortSettled } from './verbs/settle.js'
import type { PlainBatch } from './verbs/settle.js'
import { appendStep, readBoundary } from './verbs/sequences.js'
import { readInboxes } from './verbs/inbox.js'
import {
  appendRows,
  appendSteps,
  areRowsOnly,
  childrenOf,
  findUnbegun,
  lockSettled,
  readLogs,
} from './verbs/workflows.js'
import { PostgresGroups } from './verbs/groups.js'
import { PostgresPrune } from './verbs/prune.js'
import { PostgresTransactions } from './caller-transactions/transactions.js'
import { promoteAll } from './verbs/upkeep.js'
import type { Run } from './verbs/upkeep.js'
import { asNew, INSERT_MAX, isOneStatement, keptAnswer, readAnswer, weightOf, writeJobs } from './verbs/write.js'

export interface PostgresStoreOptions {
  /** The database's clock; only a test passes one. */
  readonly now?: (() => number) | undefined
}

const CLAIMS_PATIENCE_MS = 1_000

/**
 * The store contract on PostgreSQL. The verbs are in `verbs/`; here they get their connections: `writes` flushes before
 * it answers, `work` does not need to (a lost claim loses no work), and a third one listens and beats.
 */
export class PostgresStore implements Store, JobStore, LeaseStore, QueueStore, ChangeStore {
  readonly groups: PostgresGroups
  readonly info: StoreInfo
  readonly jobs: JobStore = this
  readonly leases: LeaseStore = this
  readonly queues: QueueStore = this
  readonly changes: ChangeStore = this
  readonly transactions: PostgresTransactions
  readonly schedules: Schedules
  readonly sequences: SequenceStore
  readonly workflows: WorkflowStore
  readonly observing: Store['observing']
  readonly changeLog: Store['changeLog']
  readonly #opened: Opened
  readonly #writes: Connection
  readonly #work: Connection
  readonly #lanes: Lanes
  readonly #hints: Hints
  readonly #run: Runner
  readonly #verbs: VerbRunner
  readonly #lastClaim: LastClaim
  readonly #limitedClaims: LimitedClaims
  readonly #inserts: WriteBatcher<readonly NewJob[], void>
  readonly #keyedInserts: KeyedInserts
  readonly #commands: Commands
  readonly #prune: PostgresPrune
  readonly #reports = new ReportRows()

  constructor(opened: Opened, world: World, options: PostgresStoreOptions = {}) {
    this.#opened = opened
    this.#writes = opened.connection('writes')
    this.#work = opened.connection('work')
    const listener = new ListenerCheck(opened)
    const inspect = async (): Promise<StoreFinding[]> => [
      ...(await this.#plain(this.#work, inspectServer)),
      ...(await listener.check()),
    ]
    this.info = { ...opened.info, inspect }
    this.#lanes = new Lanes(this.#writes, opened.queries)
    opened.onReconnect(() => {
      this.#lanes.forget()
      this.#prune.reconnected()
    })
    this.#hints = new Hints(opened.self)
    this.#run = new Runner(opened, this.#lanes, this.#hints, options.now)
    this.#lastClaim = new LastClaim(world)
    this.#limitedClaims = new LimitedClaims(
      (work) => this.#plain(this.#work, work),
      // Like other claims it is not flushed, and no enqueue or settlement waits behind its lock.
      (work) => this.#run.transact(work, undefined, this.#work),
    )
    this.#inserts = new WriteBatcher({
      write: (lists) => this.#insertPlain(lists.flat()),
      weigh: weightOf,
      max: INSERT_MAX,
    })
    const plain: Run = (work) => this.#plain(this.#work, work)
    const transact: Run = (work) => this.#run.transact(work, 0, this.#work)
    this.#prune = new PostgresPrune(opened, { plain, transact, receipts: this.#run.receipts })
    const parts = { lanes: this.#lanes, plain, transact: this.#transact.bind(this), withReceipts: this.#run }
    this.#verbs = verbRunner(parts)
    this.schedules = new Schedules(this.#verbs)
    this.sequences = sequenceVerbs(this.#verbs)
    this.workflows = workflowVerbs(this.#verbs)
    this.observing = observingVerbs(this.#verbs)
    this.changeLog = changeLogVerbs(this.#verbs, (isOn) => this.#switchLog(isOn))
    this.groups = new PostgresGroups(parts, this.#verbs)
    this.#keyedInserts = new KeyedInserts(parts)
    this.#commands = new Commands(parts)
    this.transactions = new PostgresTransactions({
      opened,
      lanes: this.#lanes,
      handlerConnections: opened.handlerConnections,
      // Another sender than this process's own: only the server knows when the transaction commits, so its notification
      // must not be ignored here.
      session: (db) => this.#run.session(db, `${opened.self}-tx`),
      run: this.#run,
    })
  }

  async insertJobs(jobs: readonly NewJob[], options: InsertOptions): Promise<readonly Inserted[]> {
    return jobs.length === 0 ? [] : this.#run.withKnownOutcome(this.#insertCall(jobs, options))
  }

  readJobs(ids: readonly string[]): Promise<readonly (JobRow | undefined)[]> {
    return this.#plain(this.#work, (session) => readJobs(session, ids))
  }

  readKeyed(name: string, key: string): Promise<JobRow | undefined> {
    return this.#plain(this.#work, (session) => readKeyed(session, name, key))
  }

  findJobs(query: FindQuery): Promise<FoundPage> {
    return this.#plain(this.#work, (session) => findJobs(session, query))
  }

  countJobs(query: FindQuery): Promise<CountedPage> {
    return this.#plain(this.#work, (session) => countJobs(session, query))
  }

  changeJob(change: GuardedChange): Promise<Changed> {
    return this.#commands.change(change)
  }

  requestChange(request: JobRequest): Promise<'noted' | 'refused' | 'stale'> {
    return this.#verbs.write((session) => requestChange(session, request), { ids: [request.id] })
  }

  pauseQueue(change: QueueChange): Promise<PausedQueue> {
    return thenOrRetry(
      this.#verbs.write((session) => pauseQueue(session, change)),
      async (paused) => {
        if (paused.pause === undefined) return paused
        // The pause is committed. If the wait for open claims fails, jobs count as held.
        const held = await this.#transact(heldAfterPause, CLAIMS_PATIENCE_MS).catch(() => true)
        return { ...paused, held }
      },
    )
  }

  resumeQueue(queue: string, audit?: AuditNote): Promise<boolean> {
    return this.#verbs.write((session) => resumeQueue(session, queue, audit))
  }

  readPause(queue: string): Promise<CurrentPause | undefined> {
    return this.#verbs.read((session) => readPause(session, queue))
  }

  async setLimits(changes: readonly QueueLimitsChange[]): Promise<void> {
    await this.#verbs.write((session) => putQueueLimits(session, changes))
  }

  readQueue(queue: string): Promise<QueueState> {
    return this.#verbs.read((session) => readQueueState(session, queue))
  }

  async promoteJobs(limit: number, probe: Probe = NO_PICK): Promise<Promoted> {
    const whole: Run = (work) => this.#transact(work, 0)
    const { moved, ...promoted } = await promoteAll(limit, probe, (work) => this.#plain(this.#work, work), whole)
    return moved ? this.groups.complete(promoted) : promoted
  }

  pruneJobs: JobStore['pruneJobs'] = (limit) => this.#prune.pruneJobs(limit)
  sweepRows: JobStore['sweepRows'] = (limit) => this.#prune.sweepRows(limit)

  async addWorker({ id, host, pid, identity = null, leaseMs, about }: WorkerInfo): Promise<void> {
    const lease = leaseMs === undefined ? null : String(leaseMs)
    const described = about === undefined ? null : clean(JSON.stringify(about))
    await this.#plain(this.#work, (session) =>
      session.query(session.queries.addWorker, id, host, String(pid), identity, lease, session.nowText, described),
    )
  }

  async reportWorker(worker: string, about: WorkerAbout): Promise<void> {
    const described = clean(JSON.stringify(about))
    await this.#plain(this.#work, (session) => session.query(session.queries.reportWorker, worker, described))
  }

  async beat(worker: string): Promise<boolean> {
    return (await this.#plain(this.#work, (session) => session.query(session.queries.beat, worker))).length > 0
  }

  startHeartbeat(...request: HeartbeatRequest): Promise<Heartbeat | undefined> {
    return this.#opened.startHeartbeat(...request)
  }

  async dropWorker(worker: string): Promise<void> {
    await this.#plain(this.#work, (session) => session.query(session.queries.dropWorker, worker))
  }

  async readWorkers(): Promise<readonly WorkerBeat[]> {
    return (await this.#plain(this.#work, (session) => session.query<WorkerRow>(session.queries.readWorkers))).map(
      beatOf,
    )
  }

  claimJobs(request: ClaimRequest): Promise<Claimed> {
    return this.#plain(this.#work, (session) => claimJobs(session, request, this.#lastClaim))
  }

  claimLimited(request: LimitedClaimRequest): Promise<LimitedClaimed> {
    return this.#limitedClaims.claim(request)
  }

  confirmJobs(held: readonly HeldJob[]): Promise<Confirmation> {
    return this.#plain(this.#work, (session) => confirmJobs(session, held))
  }

  readRequests(): Promise<readonly PendingRequest[]> {
    return this.#verbs.read(readRequests)
  }

  reportJobs(reports: readonly Report[]): Promise<readonly number[]> {
    this.#reports.noted(reports)
    return this.#plain(this.#work, (session) => reportJobs(session, reports))
  }

  async settleJobs(settled: readonly SettledJob[], closeLeases: readonly number[]): Promise<SettleResult> {
    const { plain, other } = sortSettled(settled)
    const written = await this.#settle(plain, other, closeLeases)
    await this.#reports.settled(settled, (refs) =>
      this.#plain(this.#work, (session) => session.query(session.queries.dropReports, arrayOf(refs))),
    )
    return written
  }

  appendStep(appended: AppendedStep): Promise<Appended> {
    return this.#plain(this.#writes, (session) => appendStep(session, appended), 0)
  }

  readLogs(claims: readonly KeptClaim[]): Promise<readonly WorkflowLog[]> {
    return this.#plain(this.#work, (session) => readLogs(session, claims))
  }

  findUnbegun(claims: readonly Claim[]): Promise<readonly number[]> {
    return this.#plain(this.#work, (session) => findUnbegun(session, claims))
  }

  readInboxes(claims: readonly Claim[]): Promise<readonly Inbox[]> {
    const refs = claims.map(({ ref }) => ref)
    return this.#plain(this.#work, (session) => readInboxes(session, refs))
  }

  appendSteps(appends: readonly LogAppend[]): Promise<readonly LogAppended[]> {
    if (areRowsOnly(appends)) return this.#plain(this.#writes, (session) => appendRows(session, appends), 0)
    return this.#lanes.ensureLanes(childrenOf(appends), () =>
      this.#transact((session) => appendSteps(session, appends), 0),
    )
  }

  readBoundary(claim: HeldJob): Promise<Boundary> {
    return this.#plain(this.#work, (session) => readBoundary(session, claim))
  }

  voidClaims(worker: string, fences: readonly number[]): Promise<readonly LeasedJob[]> {
    return this.#plain(this.#work, (session) => voidClaims(session, worker, fences))
  }

  async endQuarantine(worker: string, fence: number): Promise<void> {
    await this.#plain(this.#work, (session) => session.query(session.queries.endQuarantine, String(fence), worker))
  }

  readLeases(worker: string): Promise<readonly LeasedJob[]> {
    return this.#plain(this.#work, (session) => readLeases(session, worker))
  }

  rescueJobs(...[worker, beat, settled, withinMs = Infinity]: Rescue): Promise<SettleResult | null> {
    const isLate = lateAfter(this.#opened.world.clock, withinMs)
    return this.#transact((session) => rescueJobs(session, worker, beat, settled, isLate), 0)
  }

  onHint(callback: (hint: Hint) => void): Cancel {
    const stop = this.#hints.on((hint) => {
      // A new job may sort before the position where the next claim would begin.
      if (hint.ready) this.#lastClaim.cursors.forget()
      callback(hint)
    })
    this.#opened.listen((payload) => this.#hints.notified(payload))
    return stop
  }

  /** Only when it changes: to make a trigger, the server locks its table. */
  async #switchLog(isOn: boolean): Promise<void> {
    const schema = quoted(this.#opened.target.schema)
    await this.#transact(async (session) => {
      const found = await session.query(session.queries.changeTriggers)
      if (found.length > 0 === isOn) return
      for (const sql of isOn ? changeTriggers(schema) : dropChangeTriggers(schema)) await session.query(sql)
    }, 0)
  }

  readCensus(): Promise<Census> {
    return this.#plain(this.#work, (session) => readCensus(session))
  }

  async close(): Promise<void> {
    for (const part of [this.transactions, this.#prune]) part.close()
    await this.#opened.close()
  }

  #insertCall(jobs: readonly NewJob[], options: InsertOptions): Call<readonly Inserted[]> {
    const alone = (): Promise<readonly Inserted[]> =>
      this.#lanes.ensureLanes(jobs, () =>
        this.#run.transactWithReceipt(
          (session) => insertJobs(session, jobs, options),
          (inserted) => keptAnswer(jobs, inserted),
        ),
      )
    const shared = async (): Promise<readonly Inserted[]> => {
      // Each call waits for a lock here, for its own time limit, and not in the shared write, which would delay other
      // calls.
      await whileLocked(this.#opened.world, LOCK_PATIENCE_MS, () => this.#inserts.add(jobs))
      return jobs.map(asNew)
    }
    const isPlain = isOneStatement(jobs, options)
    const keyed = isPlain ? undefined : this.#keyedInserts.callFor(jobs, options)
    const ids = jobs.map(({ id }) => id)
    return keyed ?? { ids, write: isPlain ? shared : alone, read: (answer) => readAnswer(jobs, answer) }
  }

  async #insertPlain(jobs: readonly NewJob[]): Promise<readonly void[]> {
    const write = (receipt: string): Promise<void> =>
      this.#run.plain(this.#writes, (session) => writeJobs(session, jobs), 0, receipt)
    await this.#run.receipts.withReceipt((receipt) => this.#lanes.ensureLanes(jobs, () => write(receipt)))
    return []
  }

  /** One statement if all succeeded; the others are settled under locks. */
  async #settle(
    plain: readonly PlainBatch[],
    other: readonly SettledJob[],
    closeLeases: readonly number[],
  ): Promise<SettleResult> {
    const [only] = plain
    if (only !== undefined && plain.length === 1 && other.length === 0) {
      // The worker that settles, and the rescue, retry by themselves.
      const left = await this.#plain(this.#writes, (session) => endAlone(session, only, closeLeases), 0)
      return left.length === 0 ? NOTHING : this.#transact((session) => settleAndClose(session, left, closeLeases), 0)
    }
    const settle = (): Promise<SettleResult> =>
      this.#transact(async (session) => {
        // Before any lease is locked.
        await lockSettled(session, other)
        const left: SettledJob[] = []
        for (const batch of plain) left.push(...(await endPlain(session, batch, [], session.queries.endPlainAmong)))
        return settleAndClose(session, [...left, ...other], closeLeases)
      }, 0)
    const children = childrenOf(other.flatMap(({ workflow }) => workflow ?? []))
    return children.length === 0 ? settle() : this.#lanes.ensureLanes(children, settle)
  }

  #plain<T>(connection: Connection, work: (session: JobSession) => Promise<T>, patienceMs?: number): Promise<T> {
    return this.#run.plain(connection, work, patienceMs)
  }

  #transact<T>(work: (session: JobSession) => Promise<T>, patienceMs?: number): Promise<T> {
    return this.#run.transact(work, patienceMs)
  }
}

const NOTHING: SettleResult = { refused: [], changed: [] }
