import type { Census, CensusJob } from '../../store/census.js'
import { isFinal } from '../../job/rules/states.js'
import type { State } from '../../job/rules/states.js'
import { BrokenPromise } from './broken-promise.js'
import { GroupChecker, isWaiting } from './group-checks.js'
import { checkKeys } from './key-checks.js'
import { findUnfreed, LinkChecker } from './link-checks.js'
import type { LinkFacts } from './link-checks.js'
import { SlotChecker } from './unique-checks.js'
import { findUnpruned, PruneChecker } from './prune-checks.js'
import type { SlotFacts } from './unique-checks.js'
import { checkRescues } from './rescue-checks.js'
import type { RescueFacts } from './rescue-checks.js'
import { checkTicks } from './tick-checks.js'
import { checkRequests } from './request-checks.js'
import { SequenceChecker } from './sequence-checks.js'
import type { SequenceFacts } from './sequence-checks.js'
import { findLate, WorkflowChecker } from './workflow-checks.js'
import type { WorkflowFacts } from './workflow-checks.js'

/**
 * The promises as checkers: what must hold of the store after every step, whatever went wrong. They see the store from
 * outside (a census) and the facts of the simulated world, and never rely on the engine's own view.
 */
export interface Facts extends SlotFacts, LinkFacts, RescueFacts, SequenceFacts, WorkflowFacts {
  /** Ids whose enqueue was acknowledged. */
  readonly acknowledged: ReadonlySet<string>
  /** Ids that a recorded command or the keep policy may have deleted. */
  readonly deletable: ReadonlySet<string>
  /** How many recorded commands may have taken this id out of a final state. */
  readonly revivals: ReadonlyMap<string, number>
  /** Ids of jobs of which a cancel was requested. */
  readonly cancelled: ReadonlySet<string>
  readonly crashBudget: number
  /** The time by the database's clock, which may have been set. */
  readonly databaseNow: number
  /** Ids that were written in a transaction that was rolled back. */
  readonly undone: ReadonlySet<string>
  /** Names of jobs whose work and end are one transaction. */
  readonly banking: ReadonlySet<string> | undefined
  /** A job is no longer this claim's; `paused`: it was taken from a worker that held it in advance, and paused. */
  readonly left: (id: string, fence: number, paused: boolean) => void
}

/** What a simulated store holds, and how often each job's own work was written beside it. */
export interface SimulatedCensus extends Census {
  readonly works: readonly { readonly id: string; readonly times: number }[]
}

export class Checker {
  #before: Census | undefined
  #jobsBefore = new Map<string, CensusJob>()
  readonly #revived = new Map<string, number>()
  /** Jobs of ticks that were run by hand. */
  readonly #byHand = new Set<string>()
  readonly #fences = new Set<number>()
  readonly #uniques = new SlotChecker()
  readonly #groups = new GroupChecker()
  readonly #pruned = new PruneChecker()
  readonly #sequences = new SequenceChecker()
  readonly #workflows = new WorkflowChecker()
  readonly links = new LinkChecker()

  /** Compares the store with itself as it was at the last check, and with the facts. */
  check(census: SimulatedCensus, facts: Facts): void {
    const jobs = new Map(census.jobs.map((job) => [job.id, job]))
    this.#checkPlaces(census)
    checkKeys(this.#jobsBefore, census, facts)
    this.#checkLeases(census)
    checkRescues(this.#before, census, facts)
    this.#pruned.check(this.#jobsBefore, jobs, facts)
    for (const id of facts.acknowledged)
      if (!jobs.has(id) && !facts.deletable.has(id) && !this.#pruned.has(id))
        throw new BrokenPromise(`I1: acknowledged job ${id} is not there, and no call deleted it`)
    checkWork(census, facts)
    checkTicks(census, this.#byHand)
    checkRequests(this.#before, census, facts.count, this.#sequences.resets(census))
    this.#sequences.check(this.#jobsBefore, census, facts)
    this.#workflows.check(this.#jobsBefore, census, facts)
    this.#uniques.check(this.#jobsBefore, census, facts)
    this.#groups.check(census)
    this.links.check(this.#jobsBefore, jobs, census, facts)
    for (const job of this.#jobsBefore.values()) this.#noteLeft(job, jobs.get(job.id), facts)
    const items = new Set(census.sequences.map(({ id }) => id))
    const workflows = new Set(census.workflows.map(({ id }) => id))
    for (const job of census.jobs)
      this.#checkJob(this.#jobsBefore.get(job.id), job, census, facts, {
        countsItems: items.has(job.id),
        // An answer ends the count of crashes, and the end of the claim writes the number that it began with.
        showsCrashes: workflows.has(job.id) && job.fence === null,
      })
    this.#before = census
    this.#jobsBefore = jobs
  }

  #noteLeft(was: CensusJob, job: CensusJob | undefined, facts: Facts): void {
    if (was.fence === null || was.fence === job?.fence) return
    const isHeld = was.state === 'ready'
    facts.left(was.id, was.fence, isHeld && job?.state === 'paused')
    if (isHeld && (job?.state === 'paused' || job?.state === 'cancelled')) facts.count(`held jobs ${job.state}`)
  }

  #checkPlaces(census: Census): void {
    if (census.strays > 0) throw new BrokenPromise(`G3: ${census.strays} rows belong to no job`)
    for (const job of census.jobs) {
      if (job.tableCount !== 1)
        throw new BrokenPromise(`G3: job ${job.id} is in ${job.tableCount} places instead of one`)
      if (job.state === 'running' && job.fence === null)
        throw new BrokenPromise(`G3: job ${job.id} runs without a fence`)
    }
  }

  /** A job that is held must be findable by a rescuer, and no fence serves two claims. */
  #checkLeases(census: Census): void {
    const leases = new Map(census.leases.map((lease) => [lease.fence, lease]))
    for (const job of census.jobs)
      if (job.fence !== null && leases.get(job.fence)?.jobs.includes(job.seq) !== true)
        throw new BrokenPromise(`G3: job ${job.id} is held by a fence that no lease has, so no worker could rescue it`)
    const known = new Set(this.#before?.leases.map((lease) => lease.fence))
    for (const { fence } of census.leases) {
      if (!known.has(fence) && this.#fences.has(fence)) throw new BrokenPromise(`I3: fence ${fence} was used before`)
      this.#fences.add(fence)
    }
  }

  #checkJob(
    was: CensusJob | undefined,
    job: CensusJob,
    census: Census,
    facts: Facts,
    { countsItems, showsCrashes }: { readonly countsItems: boolean; readonly showsCrashes: boolean },
  ): void {
    if (was === undefined || was === job) return
    // The attempts of a sequence are those of its present item.
    if (job.attempt < was.attempt && !countsItems)
      throw new BrokenPromise(`I3: job ${job.id} went from attempt ${was.attempt} back to ${job.attempt}`)
    if (isFinal(was.state as State) && job.state !== was.state) this.#checkRevival(was, job, facts)
    if (job.state === 'cancelled' && was.state !== 'cancelled') checkCancelled(job, facts)
    if (job.attempt > was.attempt || job.logEntries > was.logEntries) this.#checkRecorder(was, job)
    if ((job.state === 'done' || job.state === 'failed') && job.state !== was.state) this.#checkEnd(was, job)
    if (job.crashes > was.crashes && !showsCrashes) this.#checkCharge(was, job, census)
    if (job.state === 'parked' && job.crashes > 0 && job.crashes < facts.crashBudget && was.state !== 'parked')
      throw new BrokenPromise(
        `G6: job ${job.id} was parked after ${job.crashes} crashes, before its budget of ${facts.crashBudget}`,
      )
    if (job.crashes >= facts.crashBudget && job.state === 'ready' && was.crashes < job.crashes)
      throw new BrokenPromise(`G6: job ${job.id} spent its crash budget and was not parked`)
  }

  /** Only the holder of the current fence records an attempt; a rescuer records it for the dead worker. */
  #checkRecorder(was: CensusJob, job: CensusJob): void {
    if (was.fence === null && job.attempt > was.attempt)
      throw new BrokenPromise(`G5: an attempt of job ${job.id} was recorded though no claim held it`)
    const lease = this.#before?.leases.find((each) => each.fence === was.fence)
    if (
      lease !== undefined &&
      job.logEntries > was.logEntries &&
      job.lastLogWorker !== '' &&
      job.lastLogWorker !== lease.worker
    )
      throw new BrokenPromise(`G5: the history of job ${job.id} was written by a worker that did not hold it`)
  }

  /** Only the holder of the current fence ends a job, never another process and never for a job that none holds. */
  #checkEnd(was: CensusJob, job: CensusJob): void {
    const lease = this.#before?.leases.find((each) => each.fence === was.fence)
    if (was.fence === null) throw new BrokenPromise(`G5: job ${job.id} became ${job.state} though no claim held it`)
    if (lease !== undefined && job.worker !== lease.worker)
      throw new BrokenPromise(`G5: job ${job.id} became ${job.state} by a worker that did not hold it`)
  }

  #checkRevival(was: CensusJob, job: CensusJob, facts: Facts): void {
    const revived = (this.#revived.get(job.id) ?? 0) + 1
    this.#revived.set(job.id, revived)
    if (revived > (facts.revivals.get(job.id) ?? 0))
      throw new BrokenPromise(`I2: job ${job.id} left the final state ${was.state} for ${job.state} without a command`)
  }

  /** A crash is charged to a job only if the worker that was lost held nothing else. */
  #checkCharge(was: CensusJob, job: CensusJob, census: Census): void {
    if (job.crashes !== was.crashes + 1)
      throw new BrokenPromise(`G6: job ${job.id} was charged ${job.crashes - was.crashes} crashes at once`)
    const lease = this.#before?.leases.find((each) => each.fence === was.fence)
    const held = (this.#before?.leases ?? []).filter((each) => each.worker === lease?.worker)
    const neighbours = (this.#before?.jobs ?? []).filter(
      (each) => each.id !== job.id && held.some((l) => l.fence === each.fence),
    )
    if (lease === undefined || neighbours.length > 0)
      throw new BrokenPromise(
        `G6: job ${job.id} was charged with a crash though ${neighbours.length} others were held by the same worker`,
      )
    if (census.workers.some((each) => each.worker === lease.worker))
      throw new BrokenPromise(`G6: job ${job.id} was charged with a crash though its worker is on the list`)
  }
}

/** A job ends as cancelled by command only if there was one. */
function checkCancelled({ id, reason }: CensusJob, { cancelled }: Facts): void {
  if (reason === 'cancel() was called' && !cancelled.has(id))
    throw new BrokenPromise(`X7: job ${id} was cancelled, and no call requested it`)
}

/** A job that was rolled back is not there (G2); a job and the work it writes in its own transaction are one (I5). */
function checkWork(census: SimulatedCensus, facts: Facts): void {
  const works = new Map(census.works.map(({ id, times }) => [id, times]))
  for (const job of census.jobs) {
    if (facts.undone.has(job.id))
      throw new BrokenPromise(`G2: job ${job.id} is there, and the transaction it was written in was rolled back`)
    const times = works.get(job.id) ?? 0
    works.delete(job.id)
    if (facts.banking?.has(job.name) === true && times !== (job.state === 'done' ? 1 : 0))
      throw new BrokenPromise(`I5: job ${job.id} is ${job.state}, and its work was done ${times} times`)
  }
  for (const [id, times] of works)
    if (times !== 1 || !facts.deletable.has(id))
      throw new BrokenPromise(`I5: the work of job ${id} was done ${times} times, and the job is not there`)
}

/** Whether everything has drained: each job is final, parked, pruned, or blocked by one that was not retried. */
export function isDrained(census: Census, now: number): boolean {
  return findLeft(census, now) === undefined
}

export function checkDrained(census: Census, now: number): void {
  const left = findLeft(census, now)
  if (left !== undefined) throw new BrokenPromise(left)
}

function findLeft(census: Census, now: number): string | undefined {
  const stuck = census.jobs.filter(({ state }) => state === null || !(AT_REST.has(state) || isFinal(state)))
  if (stuck.length > 0) {
    const shown = stuck
      .slice(0, 5)
      .map((job) => `${job.id} (${job.name}) is ${job.state}${job.fence === null ? '' : ', held'}`)
    return `I10: faults have stopped, and ${stuck.length} jobs do not end: ${shown.join('; ')}`
  }
  if (census.requests.length > 0) return `X7: nothing runs any more, and ${census.requests.length} requests are left`
  const late = findLate(census, now)
  if (late !== undefined) return late
  const open = census.groups.find(isWaiting)
  if (open !== undefined) return `G1: group ${open.group} is complete, and its completion was not recorded`
  return findUnfreed(census) ?? findUnpruned(census, now)
}

/** A parked job waits for a command; a blocked job may wait for a parked one. */
const AT_REST: ReadonlySet<State> = new Set(['parked', 'blocked'])
