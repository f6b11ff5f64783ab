import type { Keyring, Owner } from '../../job/secrets/keyring.js'
import { itemAddress } from '../../job/rules/sequence.js'
import type { GroupSeal, GroupStore } from '../groups.js'
import type { Firing, PutSchedule, ScheduleRow, ScheduleStore } from '../schedules.js'
import type { AppendedStep, ItemSlice, NewSequence, OutputRow, SequenceRow, SequenceStore } from '../sequences.js'
import type { SettleResult } from '../requests.js'
import type {
  ClaimedJob,
  GuardedChange,
  JobRow,
  JobStore,
  LeaseStore,
  NewJob,
  Report,
  SettledJob,
  Store,
} from '../store.js'
import type { TransactionStore } from '../transaction-store.js'
import {
  openClaimed,
  openItems,
  openNewJob,
  openRow,
  openSettled,
  sealItems,
  sealNewJob,
  sealSettled,
  sealStep,
  valuePart,
} from './sealed-rows.js'
import { openSpec, sealSpec } from './sealed-spec.js'
import {
  openInboxRow,
  openInboxes,
  openLogs,
  openStep,
  ownerOfClaim,
  sealAppend,
  sealEvent,
  sealWorkflowEnd,
} from './sealed-workflows.js'
import { sealNew, SealedNames } from './sealed-names.js'
import type { Encrypts, Sealing } from './sealed-names.js'
import type { WorkflowStore } from '../workflows.js'
import {
  openError,
  openNote,
  openProgress,
  openText,
  openValue,
  sealOptions,
  sealProgress,
  sealValue,
} from './sealed-values.js'

/*
 * A store in front of the store, for a mill with encryption keys. Jobs with `encrypt: true` are sealed in every verb that
 * writes, and every row that is read is opened, whatever its job says today. So the rest of the engine sees plain
 * values, and the database sees sealed ones. All verbs are listed by hand: a new verb of the contract does not compile
 * until it is decided here what of it is secret. Verbs without a secret pass on whatever they are given.
 */

export interface EncryptedJobs {
  readonly keys: Keyring
  readonly encrypts: Encrypts
}

export function encryptedStore(store: Store, { keys, encrypts }: EncryptedJobs): Store {
  const seals = new SealedNames(encrypts)
  const context: Context = { store, keys, seals }
  return {
    jobs: jobStore(context),
    leases: leaseStore(context),
    queues: store.queues,
    groups: groupStore(context),
    changes: store.changes,
    transactions: transactionStore(context),
    schedules: scheduleStore(context),
    sequences: sequenceStore(context),
    workflows: workflowStore(context),
    observing: observingStore(context),
    changeLog: store.changeLog,
    get info() {
      return store.info
    },
    readCensus: () => store.readCensus(),
    close: () => store.close(),
  }
}

interface Context extends Sealing {
  readonly store: Store
}

function jobStore({ store: { jobs }, keys, seals }: Context): JobStore {
  const open = (row: JobRow): JobRow => {
    seals.found(row)
    return openRow(keys, row)
  }
  return {
    insertJobs: (rows, options) => jobs.insertJobs(sealNew({ keys, seals }, rows, options.onDuplicate), options),
    readJobs: async (ids) => (await jobs.readJobs(ids)).map((row) => row && open(row)),
    readKeyed: async (name, key) => {
      const row = await jobs.readKeyed(name, key)
      return row && open(row)
    },
    findJobs: async (query) => {
      const page = await jobs.findJobs(query)
      return { ...page, rows: page.rows.map(open) }
    },
    countJobs: (...args) => jobs.countJobs(...args),
    changeJob: (change) => jobs.changeJob(sealChange({ keys, seals }, change)),
    requestChange: (...args) => jobs.requestChange(...args),
    promoteJobs: async (...args) => {
      const promoted = await jobs.promoteJobs(...args)
      const followUps = promoted.followUps.map(({ group, job }) => ({ group, job: openNewJob(keys, job) }))
      return { ...promoted, followUps }
    },
    pruneJobs: (...args) => jobs.pruneJobs(...args),
    sweepRows: (...args) => jobs.sweepRows(...args),
  }
}

function sealChange({ keys, seals }: Sealing, change: GuardedChange): GuardedChange {
  const { id, name, edit } = change
  if (edit === undefined || !seals.has(name)) return change
  const owner = { id, name }
  const { payload, options } = edit
  return {
    ...change,
    edit: {
      ...edit,
      ...(payload === undefined ? {} : { payload: sealValue(keys, payload, owner, 'payload') }),
      ...(options === undefined ? {} : { options: sealOptions(keys, options, owner) }),
    },
  }
}

function leaseStore({ store: { leases }, keys, seals }: Context): LeaseStore {
  const opened = (result: SettleResult): SettleResult => ({
    ...result,
    changed: result.changed.map((job) => openSettled(keys, job)),
  })
  const seal = <Job extends SettledJob>(job: Job): Job => sealEnd({ keys, seals }, job)
  const open = <Job extends ClaimedJob>(job: Job): Job => {
    seals.found(job)
    return openClaimed(keys, job)
  }
  return {
    addWorker: (...args) => leases.addWorker(...args),
    reportWorker: (...args) => leases.reportWorker(...args),
    beat: (...args) => leases.beat(...args),
    startHeartbeat: (...args) => leases.startHeartbeat(...args),
    dropWorker: (...args) => leases.dropWorker(...args),
    readWorkers: () => leases.readWorkers(),
    claimJobs: async (request) => {
      const claimed = await leases.claimJobs(request)
      return { ...claimed, jobs: claimed.jobs.map(open) }
    },
    claimLimited: async (request) => {
      const claimed = await leases.claimLimited(request)
      return { ...claimed, jobs: claimed.jobs.map(open) }
    },
    confirmJobs: (...args) => leases.confirmJobs(...args),
    readRequests: () => leases.readRequests(),
    reportJobs: (reports) => leases.reportJobs(reports.map((report) => sealReport({ keys, seals }, report))),
    settleJobs: async (settled, closing) => opened(await leases.settleJobs(settled.map(seal), closing)),
    appendStep: async (appended) => {
      const { id, name, itemsFrom } = appended
      if (id === undefined || name === undefined) return leases.appendStep(appended)
      const owner = { id, name }
      const answer = await leases.appendStep(sealAppended({ keys, seals }, appended, owner))
      const { items } = answer
      return itemsFrom === undefined ? answer : { ...answer, items: openItems(keys, items, itemsFrom.index, owner) }
    },
    readBoundary: (...args) => leases.readBoundary(...args),
    voidClaims: (...args) => leases.voidClaims(...args),
    endQuarantine: (...args) => leases.endQuarantine(...args),
    readLeases: async (...args) => {
      const jobs = await leases.readLeases(...args)
      return jobs.map((job) => ({ ...job, progress: openProgress(keys, job.progress, job) }))
    },
    rescueJobs: async (worker, beat, settled, withinMs) => {
      const written = await leases.rescueJobs(worker, beat, settled.map(seal), withinMs)
      return written && opened(written)
    },
    readLogs: async (claims) => openLogs(keys, claims, await leases.readLogs(claims)),
    findUnbegun: (...args) => leases.findUnbegun(...args),
    readInboxes: async (claims) => openInboxes(keys, claims, await leases.readInboxes(claims)),
    appendSteps: (appends) =>
      leases.appendSteps(
        appends.map((append) => ({ ...append, ...sealAppend({ keys, seals }, append, ownerOfClaim(append)) })),
      ),
  }
}

/** The end of a workflow may enqueue jobs of other names, so it is looked through whatever its own name. */
function sealEnd<Job extends SettledJob>(sealing: Sealing, job: Job): Job {
  const { workflow } = job
  const settled = sealing.seals.has(job.name) ? sealSettled(sealing.keys, job) : job
  if (workflow === undefined) return settled
  const owner = { id: job.id, name: job.name, key: job.key }
  return { ...settled, workflow: { ...workflow, ...sealWorkflowEnd(sealing, workflow, owner) } }
}

function sealReport({ keys, seals }: Sealing, report: Report): Report {
  const { id, name, progress } = report
  if (id === undefined || !seals.has(name)) return report
  return { ...report, progress: sealProgress(keys, progress, { id, name }) }
}

function sealAppended({ keys, seals }: Sealing, appended: AppendedStep, owner: Owner): AppendedStep {
  return seals.has(owner.name) ? { ...appended, step: sealStep(keys, appended.step, owner) } : appended
}

/** Neither payloads nor results are in the audit trail or in lists; the errors of sequences are. */
function observingStore({ store: { observing }, keys, seals }: Context): Store['observing'] {
  const open = (row: JobRow): JobRow => {
    seals.found(row)
    return openRow(keys, row)
  }
  return {
    readAudit: (...args) => observing.readAudit(...args),
    addAudit: (...args) => observing.addAudit(...args),
    listWorkers: (...args) => observing.listWorkers(...args),
    listGroups: (...args) => observing.listGroups(...args),
    listQueues: () => observing.listQueues(),
    listSequences: async (query) => {
      const page = await observing.listSequences(query)
      return { ...page, rows: page.rows.map((row) => openSequenceRow(keys, row.id, row)) }
    },
    readStatistics: (...args) => observing.readStatistics(...args),
    countQueues: () => observing.countQueues(),
    readFailures: (...args) => observing.readFailures(...args),
    readWhy: async (...args) => {
      const facts = await observing.readWhy(...args)
      return { ...facts, jobs: facts.jobs.map((job) => job && { ...job, row: open(job.row) }) }
    },
  }
}

function groupStore({ store: { groups }, keys, seals }: Context): GroupStore {
  return {
    readGroup: (...args) => groups.readGroup(...args),
    sealGroup: (seal) => groups.sealGroup(sealWhenDone({ keys, seals }, seal)),
  }
}

/** The store enqueues the job with this id when the group is complete. */
function sealWhenDone(sealing: Sealing, seal: GroupSeal): GroupSeal {
  const { whenDone } = seal
  if (whenDone === null) return seal
  const [job] = sealNew(sealing, [whenDone.job], whenDone.options.onDuplicate)
  return { ...seal, whenDone: { ...whenDone, job: job as NewJob } }
}

/** With a synchronous handle every verb is synchronous: sealing is, so nothing is awaited here. */
function transactionStore({ store: { transactions }, keys, seals }: Context): TransactionStore {
  const seal = (job: SettledJob): SettledJob => sealEnd({ keys, seals }, job)
  return {
    get answersLater() {
      return transactions.answersLater
    },
    insertJobsIn: (tx, rows, options) =>
      transactions.insertJobsIn(tx, sealNew({ keys, seals }, rows, options.onDuplicate), options),
    insertSequenceIn: (tx, sequence) => transactions.insertSequenceIn(tx, sealSequence({ keys, seals }, sequence)),
    sendEventIn: (tx, event) => transactions.sendEventIn(tx, sealEvent({ keys, seals }, event)),
    sealGroupIn: (tx, groupSeal) => transactions.sealGroupIn(tx, sealWhenDone({ keys, seals }, groupSeal)),
    settleJobIn: (tx, settled) => transactions.settleJobIn(tx, seal(settled)),
    guarded: (...args) => transactions.guarded(...args),
    transact: (request) => transactions.transact({ ...request, settle: (value) => seal(request.settle(value)) }),
  }
}

function scheduleStore({ store: { schedules }, keys, seals }: Context): ScheduleStore {
  const open = <Row extends ScheduleRow | undefined>(row: Row): Row =>
    row === undefined ? row : { ...row, spec: openSpec(keys, row.id, row.spec) }
  const seal = (put: PutSchedule): PutSchedule => ({ ...put, spec: sealSpec(keys, put.id, put.spec, seals) })
  return {
    readSchedule: async (id) => {
      const read = await schedules.readSchedule(id)
      return { ...read, schedule: open(read.schedule) }
    },
    listSchedules: async (after, limit) => {
      const page = await schedules.listSchedules(after, limit)
      return { ...page, schedules: page.schedules.map(open) }
    },
    putSchedule: (schedule, revision) => schedules.putSchedule(seal(schedule), revision),
    dropSchedule: (...args) => schedules.dropSchedule(...args),
    dueSchedules: async (limit) => {
      const read = await schedules.dueSchedules(limit)
      return { ...read, due: read.due.map(open) }
    },
    fireTicks: (firing) => schedules.fireTicks(sealFiring({ keys, seals }, firing)),
    readTicks: (...args) => schedules.readTicks(...args),
    upcomingJobs: (...args) => schedules.upcomingJobs(...args),
    upcomingCounts: (...args) => schedules.upcomingCounts(...args),
  }
}

function sealFiring({ keys, seals }: Sealing, firing: Firing): Firing {
  const { onDuplicate } = firing
  const ticks = firing.ticks.map((tick) =>
    tick.job !== null && seals.has(tick.job.name) ? { ...tick, job: sealNewJob(keys, tick.job, onDuplicate) } : tick,
  )
  return { ...firing, ticks }
}

function sequenceStore({ store: { sequences }, keys, seals }: Context): SequenceStore {
  return {
    addItems: (slice) => sequences.addItems(sealSlice({ keys, seals }, slice, slice.name)),
    insertSequence: (sequence) => sequences.insertSequence(sealSequence({ keys, seals }, sequence)),
    changeSequence: (...args) => sequences.changeSequence(...args),
    readSequence: async (id) => {
      const row = await sequences.readSequence(id)
      return row && openSequenceRow(keys, id, row)
    },
    readOutput: async (id, from, limit) => {
      const output = await sequences.readOutput(id, from, limit)
      if (output === undefined) return output
      return { ...output, rows: output.rows.map((row) => openOutput(keys, row, { id, name: output.name })) }
    },
    readItems: async (owner, from, limit) =>
      openItems(keys, await sequences.readItems(owner, from, limit), from, owner),
  }
}

function openSequenceRow<Row extends SequenceRow>(keys: Keyring, id: string, row: Row): Row {
  const owner = { id, name: row.name }
  return {
    ...row,
    error: openError(keys, row.error, owner),
    reason: openText(keys, row.reason, owner, 'reason'),
    progress: openProgress(keys, row.progress, owner),
  }
}

function sealSlice({ keys, seals }: Sealing, slice: ItemSlice, name: string | undefined): ItemSlice {
  if (!seals.has(name)) return slice
  return { ...slice, payloads: sealItems(keys, slice.payloads, slice.from, { id: slice.id, name }) }
}

function sealSequence({ keys, seals }: Sealing, sequence: NewSequence): NewSequence {
  const { job, last, empty, options } = sequence
  if (!seals.has(job.name)) return sequence
  return {
    ...sequence,
    job: sealNewJob(keys, job, options.onDuplicate),
    last: sealSlice({ keys, seals }, last, job.name),
    empty: { ...empty, result: sealValue(keys, empty.result, { id: job.id, name: job.name }, 'result') },
  }
}

function openOutput(keys: Keyring, row: OutputRow, owner: Owner): OutputRow {
  const address = itemAddress(row.index)
  return {
    ...row,
    result: openValue(keys, row.result, owner, valuePart(address)),
    note: openNote(keys, row.note, owner, address),
  }
}

function workflowStore({ store: { workflows }, keys, seals }: Context): WorkflowStore {
  return {
    sendEvent: (event) => workflows.sendEvent(sealEvent({ keys, seals }, event)),
    changeWorkflow: (...args) => workflows.changeWorkflow(...args),
    readWorkflow: async (id) => {
      const row = await workflows.readWorkflow(id)
      // A step is bound to the id of its workflow alone.
      return row && { ...row, open: row.open.map((step) => openStep(keys, step, { id, name: '' })) }
    },
    readSteps: async (id, after, limit) => {
      const page = await workflows.readSteps(id, after, limit)
      return page && { ...page, rows: page.rows.map((step) => openStep(keys, step, { id, name: page.name })) }
    },
    readInbox: async (owner, after, limit) =>
      (await workflows.readInbox(owner, after, limit)).map((row) => openInboxRow(keys, row, owner)),
  }
}
