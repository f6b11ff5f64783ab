import { isFinal } from '../../job/rules/states.js'
import type { Census, CensusJob, CensusWorkflow } from '../../store/census.js'
import { BrokenPromise } from './broken-promise.js'

export interface WorkflowFacts {
  /** Tokens of events whose sending was acknowledged, by the workflow; a token is part of the payload. */
  readonly sent?: ReadonlyMap<string, readonly string[]> | undefined
  readonly count: (what: string) => void
}

/**
 * Workflows: numbers of answers are unique, and dense but for those that a retry forgot; an answer never changes, and is
 * written only while a claim holds its job; an event is in the inbox or in the log, once; an address has one child; and a
 * suspended workflow whose inbox has what it waits for is ready.
 */
export class WorkflowChecker {
  #before = new Map<string, CensusWorkflow>()
  /** Numbers that a retry forgot, by workflow and run. */
  readonly #forgotten = new Map<string, Set<number>>()
  /** Children by workflow, run and address. */
  readonly #children = new Map<string, string>()

  check(jobsBefore: ReadonlyMap<string, CensusJob>, census: Census, facts: WorkflowFacts): void {
    if (census.workflows.length === 0 && this.#before.size === 0) return
    const jobs = new Map(census.jobs.map((job) => [job.id, job]))
    for (const workflow of census.workflows) {
      const was = this.#before.get(workflow.id)
      const before = was?.run === workflow.run ? was : undefined
      if (before !== undefined) this.#checkGrowth(before, workflow, jobsBefore.get(workflow.id))
      this.#checkNumbers(workflow)
      this.#checkChildren(workflow)
      checkEvents(workflow, jobs.get(workflow.id), facts)
      checkWoken(workflow, jobs.get(workflow.id))
    }
    this.#before = new Map(census.workflows.map((workflow) => [workflow.id, workflow]))
  }

  #checkGrowth(was: CensusWorkflow, workflow: CensusWorkflow, jobBefore: CensusJob | undefined): void {
    const rows = new Map(workflow.rows.map((row) => [row.address, row]))
    const known = new Map(was.rows.map((row) => [row.address, row]))
    const isRetried = jobBefore !== undefined && jobBefore.state !== null && mayForget(jobBefore.state)
    for (const row of was.rows) {
      if (row.no === null) continue
      const now = rows.get(row.address)
      if (now?.no === row.no && now.value === row.value) continue
      if (now === undefined && isRetried) this.#forget(workflow, row.no)
      else
        throw new BrokenPromise(`LW7: answer ${row.no} of workflow ${workflow.id} (${row.address}) was lost or changed`)
    }
    const isNew = workflow.rows.some(({ address, no }) => no !== null && known.get(address)?.no !== no)
    if (isNew && jobBefore !== undefined && jobBefore.fence === null)
      throw new BrokenPromise(`LW81: an answer of workflow ${workflow.id} was recorded though no claim held it`)
  }

  #forget({ id, run }: CensusWorkflow, no: number): void {
    const name = `${id} ${run}`
    this.#forgotten.set(name, (this.#forgotten.get(name) ?? new Set()).add(no))
  }

  #checkNumbers({ id, run, rows }: CensusWorkflow): void {
    const forgotten = this.#forgotten.get(`${id} ${run}`)
    const numbers = rows.flatMap(({ no }) => (no === null ? [] : [no]))
    if (new Set(numbers).size !== numbers.length)
      throw new BrokenPromise(`LW7: workflow ${id} has a number twice: ${numbers.join(', ')}`)
    const last = Math.max(-1, ...numbers)
    for (let no = 0; no <= last; no += 1)
      if (!numbers.includes(no) && forgotten?.has(no) !== true)
        throw new BrokenPromise(`LW7: workflow ${id} has no answer ${no}, and has ${last}`)
    for (const no of numbers)
      if (forgotten?.has(no) === true) throw new BrokenPromise(`LW61: number ${no} of workflow ${id} was given again`)
  }

  #checkChildren({ id, run, rows }: CensusWorkflow): void {
    for (const { address, note, since } of rows) {
      const child = note === null ? undefined : (JSON.parse(note) as { child?: string }).child
      if (child === undefined) continue
      // An operation that a retry forgot is called again, after other answers.
      const name = `${id} ${run} ${since} ${address}`
      const known = this.#children.get(name)
      if (known !== undefined && known !== child && this.#forgotten.get(`${id} ${run}`) === undefined)
        throw new BrokenPromise(`LW42: ${address} of workflow ${id} has the children ${known} and ${child}`)
      this.#children.set(name, child)
    }
  }
}

/** Time after which a wake-up that was not carried out is late. */
const LATE_MS = 10_000

/** A blocked workflow whose time has passed. */
export function findLate(census: Census, now: number): string | undefined {
  const jobs = new Map(census.jobs.map((job) => [job.id, job]))
  const late = census.workflows.find(
    ({ id, wakeAt }) => jobs.get(id)?.state === 'blocked' && wakeAt !== null && wakeAt < now - LATE_MS,
  )
  return late === undefined ? undefined : `LW92: the time of workflow ${late.id} has passed, and nothing has woken it`
}

function mayForget(state: NonNullable<CensusJob['state']>): boolean {
  return state === 'failed' || state === 'cancelled' || state === 'parked'
}

/** Of an unfinished workflow: an event that was acknowledged is in its inbox or its log, and nowhere twice. */
function checkEvents({ id, rows, inbox }: CensusWorkflow, job: CensusJob | undefined, { sent }: WorkflowFacts): void {
  if (sent === undefined) return
  const tokens = [
    ...inbox.map(({ payload }) => payload),
    ...rows.map(({ kind, value }) => (kind === 'wait' ? value : null)),
  ]
  const seen = new Set<string>()
  for (const token of tokens) {
    if (token === null) continue
    if (seen.has(token)) throw new BrokenPromise(`LW39: the event ${token} of workflow ${id} is taken twice`)
    seen.add(token)
  }
  for (const token of sent.get(id) ?? [])
    if (!seen.has(token) && job?.state !== null && job !== undefined && !isFinal(job.state))
      throw new BrokenPromise(`LW39: the event ${token} of workflow ${id} is neither in its inbox nor in its log`)
}

/** The transaction that sends also wakes: no poll looks for it. */
function checkWoken({ id, waits, inbox }: CensusWorkflow, job: CensusJob | undefined): void {
  if (waits === null || job?.fence !== null || job.state === null) return
  if (job.state !== 'blocked' && job.state !== 'scheduled' && job.state !== 'retrying') return
  const over = inbox.find(({ kind, name }) => kind === 'cancel' || waits.includes(`${kind}:${name}`))
  if (over !== undefined)
    throw new BrokenPromise(`LW84: workflow ${id} is ${job.state}, and its inbox has the ${over.kind} ${over.name}`)
}
