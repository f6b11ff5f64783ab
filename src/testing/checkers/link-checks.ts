import type { Census, CensusJob } from '../../store/census.js'
import type { LinkPolicy } from '../../job/rules/links.js'
import { isFinal } from '../../job/rules/states.js'
import { BrokenPromise } from './broken-promise.js'

export interface LinkFacts {
  /** What was said of parents that were added late, by `child parent`. */
  readonly lateLinks: ReadonlyMap<string, LinkPolicy>
  readonly count: (what: string) => void
}

type Jobs = ReadonlyMap<string, CensusJob>

/** That a child comes after a parent, and how that parent has ended since, as the world saw it. */
interface Edge {
  readonly parent: string
  readonly policy: LinkPolicy
  end: 'none' | 'ended' | 'done'
}

/**
 * Jobs after jobs (P1): no child begins before all its parents are done, or have ended where that is enough; none waits for a
 * parent that has ended, unless a to-do for it is pending; and one is cancelled only for a reason that is true. The
 * record of which job waits for which is kept here, from the payloads.
 */
export class LinkChecker {
  readonly #edges = new Map<string, Map<string, Edge>>()
  readonly #policies = new Map<string, LinkPolicy>()

  check(before: Jobs, jobs: Jobs, census: Census, facts: LinkFacts): void {
    for (const job of census.jobs) {
      const was = before.get(job.id)
      if (was === undefined && job.payloadParents.length > 0) checkParents(job)
      if (job.after.length === 0) continue
      this.#enter(job, before, jobs, facts)
      // Retried by command: it runs, whatever its parents do.
      if (was !== undefined && isOver(was) && !isOver(job)) this.#release(job, facts)
      if (job.state === 'cancelled' && was?.state !== 'cancelled') this.#checkCancelled(job, before, jobs, facts)
      for (const edge of this.#edgesOf(job.id)) note(edge, jobs)
      if (was?.state !== job.state) this.#countTransition(was, job, facts)
    }
    this.#checkOpen(jobs, census)
  }

  begins(id: string, read: () => Census): void {
    const isUnmet = (edge: Edge): boolean => !isMet(edge)
    if (!this.#edgesOf(id).some(isUnmet)) return
    // It may have ended since the last check.
    const jobs = new Map(read().jobs.map((job) => [job.id, job]))
    for (const edge of this.#edgesOf(id)) note(edge, jobs)
    const open = this.#edgesOf(id).find(isUnmet)
    if (open !== undefined)
      throw new BrokenPromise(
        `P1: job ${id} begins before its parent ${open.parent}, which ${stateOfParent(open, jobs)}`,
      )
  }

  #release({ id }: CensusJob, { count }: LinkFacts): void {
    const edges = this.#edgesOf(id)
    if (edges.some((edge) => !isMet(edge))) count('retried in spite of their parents')
    for (const edge of edges) edge.end = 'done'
  }

  /** Counts the kinds of transitions that the campaign must cover. */
  #countTransition(was: CensusJob | undefined, job: CensusJob, { count }: LinkFacts): void {
    if (was?.state === 'blocked') count(`blocked jobs that were ${how(job)}`)
    if (job.state === 'blocked' && job.group !== null) count('blocked members of groups')
    if (job.state === 'blocked' && job.tick !== null) count('ticks that waited for another')
    if (job.state === 'running' && this.#edgesOf(job.id).some((edge) => edge.end === 'ended'))
      count('run after a parent that did not succeed')
  }

  #edgesOf(child: string): Edge[] {
    return [...(this.#edges.get(child)?.values() ?? [])]
  }

  #enter(job: CensusJob, before: Jobs, jobs: Jobs, { lateLinks }: LinkFacts): void {
    const edges = this.#edges.get(job.id) ?? new Map<string, Edge>()
    this.#edges.set(job.id, edges)
    // What it does when a parent fails is said when it is written; its payload may be another one later.
    const own = this.#policies.get(job.id) ?? (job.tick === null ? (job.policy ?? 'wait') : 'run-if-parked')
    this.#policies.set(job.id, own)
    for (const parent of job.after) {
      if (edges.has(parent)) continue
      const isBefore = isSuccessor(job, jobs.get(parent) ?? before.get(parent))
      const policy = isBefore ? 'run' : (lateLinks.get(`${job.id} ${parent}`) ?? own)
      edges.set(parent, { parent, policy, end: 'none' })
    }
  }

  /** Cancelled because of a parent that did end so, or was deleted, and never because of one that was done. */
  #checkCancelled(job: CensusJob, before: Jobs, jobs: Jobs, { count }: LinkFacts): void {
    const [, id = '', ended = ''] = /^its parent .*?(\S+) (failed|was cancelled|is gone)/.exec(job.reason ?? '') ?? []
    if (ended === '') return
    const edge = this.#edges.get(job.id)?.get(id)
    if (edge === undefined)
      throw new BrokenPromise(`P1: job ${job.id} was cancelled for job ${id}, which is no parent of it`)
    const isTrue = [before.get(id), jobs.get(id)].some((parent) => fateOf(parent) === ended)
    const isAllowed = edge.policy === 'cancel' || (edge.policy === 'wait' && ended === 'is gone')
    if (!isTrue || !isAllowed || edge.end === 'done')
      throw new BrokenPromise(
        `P1: job ${job.id} was cancelled because its parent ${id} ${ended}, which ${stateOfParent(edge, jobs)} and had policy ${edge.policy}`,
      )
    count(`cancelled because a parent ${ended}`)
  }

  #checkOpen(jobs: Jobs, census: Census): void {
    const bySeq = new Map(census.jobs.map((job) => [job.seq, job]))
    const open = new Map<string, Set<string>>()
    const todos = new Set(census.todos)
    const begun = begunWorkflows(census)
    for (const { parent, child, policy } of census.links) {
      if (isWake(policy)) continue
      const job = bySeq.get(child)
      if (job === undefined || (job.state !== 'blocked' && job.state !== 'paused'))
        throw new BrokenPromise(`P1: job ${job?.id} is ${job?.state}, and waits for ${parent}`)
      if (isOverFor(policy, jobs.get(parent)) && !todos.has(parent))
        throw new BrokenPromise(
          `P1: job ${job.id} waits for ${parent}, which has ended, and no to-do is pending for it`,
        )
      open.set(job.id, (open.get(job.id) ?? new Set()).add(parent))
    }
    for (const job of census.jobs) {
      if (job.state === 'blocked' && !open.has(job.id) && !begun.has(job.id))
        throw new BrokenPromise(`P1: job ${job.id} is blocked, and waits for no parent`)
      if (isOver(job) || job.after.length === 0) continue
      const lost = this.#edgesOf(job.id).find((edge) => !isMet(edge) && open.get(job.id)?.has(edge.parent) !== true)
      if (lost !== undefined)
        throw new BrokenPromise(
          `P1: job ${job.id} does not wait any more for its parent ${lost.parent}, which ${stateOfParent(lost, jobs)}`,
        )
    }
  }
}

/** A link that brings the end of a called job to a workflow, and blocks no job. */
function isWake(policy: string): boolean {
  return policy === 'wake'
}

/** Workflows that wait for what their bodies wait for, and no longer for parents. */
function begunWorkflows(census: Census): ReadonlySet<string> {
  return new Set(census.workflows.filter(({ waits, rows }) => waits !== null || rows.length > 0).map(({ id }) => id))
}

/** Those that were named by their ids are its parents, in the order in which they were named. */
function checkParents({ id, payloadParents, after }: CensusJob): void {
  const kept = after.filter((parent) => payloadParents.includes(parent))
  if (kept.join(' ') !== [...new Set(payloadParents)].join(' '))
    throw new BrokenPromise(
      `P1: job ${id} was to come after ${payloadParents.join(', ')}, and comes after ${after.join(', ')}`,
    )
}

/** Written under the key of a job that was running: it runs however that one ends. */
function isSuccessor(job: CensusJob, parent: CensusJob | undefined): boolean {
  return job.key !== null && parent?.key === job.key && parent.name === job.name && !isOver(parent)
}

function note(edge: Edge, jobs: Jobs): void {
  if (edge.end === 'done') return
  const parent = jobs.get(edge.parent)
  if (parent?.state === 'done') edge.end = 'done'
  else if (isOver(parent) || isPassed(edge.policy, parent)) edge.end = 'ended'
}

/** A tick does not wait for one that is parked. */
function isPassed(policy: LinkPolicy, parent: CensusJob | undefined): boolean {
  return policy === 'run-if-parked' && parent?.state === 'parked'
}

function isMet({ policy, end }: Edge): boolean {
  return policy === 'run' || policy === 'run-if-parked' ? end !== 'none' : end === 'done'
}

function isOver(job: CensusJob | undefined): boolean {
  return job === undefined || job.state === null || isFinal(job.state)
}

/** A child of this policy need not wait for this parent any more. */
function isOverFor(policy: LinkPolicy, parent: CensusJob | undefined): boolean {
  if (isPassed(policy, parent)) return true
  return isOver(parent) && (parent === undefined || parent.state === 'done' || policy !== 'wait')
}

function fateOf(parent: CensusJob | undefined): string {
  if (parent === undefined) return 'is gone'
  return parent.state === 'cancelled' ? 'was cancelled' : String(parent.state)
}

function stateOfParent(edge: Edge, jobs: Jobs): string {
  const parent = jobs.get(edge.parent)
  return parent === undefined ? 'is gone' : `is ${parent.state}`
}

function how({ state }: CensusJob): string {
  return state === 'paused' || state === 'cancelled' ? state : 'freed'
}

/** A blocked job waits for a parent that failed, is parked, or is blocked so itself; never for one that has ended, and never for none. */
export function findUnfreed(census: Census): string | undefined {
  if (census.todos.length > 0) return `P1: nothing runs any more, and ${census.todos.length} ends were not looked at`
  const stranded = findStranded(census)
  return stranded === undefined ? undefined : `P1: job ${stranded.id} is blocked, and nothing can free it`
}

function findStranded(census: Census): CensusJob | undefined {
  const begun = begunWorkflows(census)
  const blocked = census.jobs.filter((job) => job.state === 'blocked' && !begun.has(job.id))
  if (blocked.length === 0) return undefined
  const jobs = new Map(census.jobs.map((job) => [job.id, job]))
  const parents = new Map<number, CensusJob[]>()
  const rightly = new Set<string>()
  for (const { parent, child, policy } of census.links) {
    const job = isWake(policy) ? undefined : jobs.get(parent)
    if (job === undefined) continue
    if ((job.state === 'parked' && policy !== 'run-if-parked') || (isOver(job) && !isOverFor(policy, job)))
      rightly.add(job.id)
    parents.set(child, [...(parents.get(child) ?? []), job])
  }
  // From the jobs that block others down to all that wait for them; a cycle has no such beginning.
  for (let found = -1; found !== rightly.size;) {
    found = rightly.size
    for (const { seq, id } of blocked)
      if (parents.get(seq)?.some((parent) => rightly.has(parent.id)) === true) rightly.add(id)
  }
  return blocked.find(({ id }) => !rightly.has(id))
}
