import { AsyncLocalStorage } from 'node:async_hooks'
import type { Logged } from '../../job/attempt/log-text.js'
import type { Outcome } from '../../job/rules/outcome.js'
import type { ClaimedJob, SettledJob } from '../../store/store.js'
import type { Warning } from '../../workflow/host.js'
import type { Registered } from '../../job/definition/registry.js'
import type { AttemptHost, Running } from '../attempt/running.js'
import { Alarms } from '../in-flight/alarms.js'
import { IndexedSet } from '../in-flight/indexed-set.js'
import type { Members } from '../in-flight/indexed-set.js'
import type { InFlightParts } from '../in-flight/in-flight-parts.js'
import { registeredSteps } from './step-run.js'
import type { StepRun, StepRunParts } from './step-run.js'
import type { WorkerOptions } from '../worker.js'
import { StickyRuns } from './sticky-runs.js'
import { UnbegunWorkflows } from './unbegun-workflows.js'
import { WorkflowClaim } from './workflow-claim.js'
import { WorkflowLogs } from './workflow-logs.js'

/** A wait that ends within this time is waited for in hand. */
const IN_HAND_MS = 250

/**
 * Marks the code of a step, where no verb of `w` can be called. One for all workers: before Node 24, every promise of the process
 * costs more for each storage that has been used.
 */
const insideStep = new AsyncLocalStorage<WorkflowRuns>()

/** What the workflows of a worker need of its jobs in flight. */
export interface WorkflowOwner {
  /** The store's clock. */
  now(): number
  isClosed(): boolean
  /** Whether a claim that has held its slot for long should return it. */
  yields(running: Running): boolean
  settlement(running: Running, outcome: Outcome): SettledJob
  logLine(running: Running, logged: Logged): void
  options(): Pick<WorkerOptions, 'workflows' | 'slowAfterMs'>
}

/** The workflows of one worker: their logs, the runs it keeps, and what all of them share. */
export class WorkflowRuns {
  readonly parts: InFlightParts
  readonly logs: WorkflowLogs
  readonly sticky: StickyRuns
  readonly unbegun: UnbegunWorkflows
  readonly inHandMs: number
  readonly #owner: WorkflowOwner
  /** Claims whose drivers have not ended. */
  #inHand = 0
  readonly #acting = new IndexedSet<StepRun>()
  readonly #alarms: Alarms<StepRun>
  readonly #stepHost: AttemptHost
  /** The definitions of steps, by those of their workflows. */
  readonly #definitions = new WeakMap<Registered, Registered>()
  /** Warnings are logged once for each workflow name and address. */
  readonly #warned = new Set<string>()

  constructor(parts: InFlightParts, owner: WorkflowOwner) {
    this.parts = parts
    this.#owner = owner
    this.inHandMs = parts.inHandMs ?? IN_HAND_MS
    this.logs = new WorkflowLogs(parts, () => this.#inHand)
    this.#alarms = new Alarms(parts.world, this.#acting, (step, now) => step.due(now))
    this.#stepHost = {
      verbs: parts,
      noteProgress: () => undefined,
      logLine: (step, logged) => owner.logLine(step, logged),
      settling: {
        settleIn: () => Promise.reject(new Error('a step has no settleIn; use w.transaction')),
        transaction: () => Promise.reject(new Error('a step has no transaction; use w.transaction')),
      },
    }
    this.unbegun = new UnbegunWorkflows({ store: parts.store, events: parts.events, now: () => owner.now() })
    this.sticky = new StickyRuns(parts.world, () => owner.options().workflows.sticky)
  }

  begin(running: Running): void {
    running.workflow = new WorkflowClaim(this, running)
  }

  /** Before the first of these jobs begins. */
  claimed(jobs: readonly ClaimedJob[]): void {
    const { registry } = this.parts
    const workflows = jobs.filter(({ name }) => registry.runnable(name)?.workflow !== undefined)
    if (workflows.length > 0) void this.unbegun.find(workflows)
  }

  /** A claim begins to read its log. */
  began(): void {
    this.#inHand += 1
  }
  /** The driver of a claim has ended: it writes no more to its log. */
  ended(): void {
    this.#inHand -= 1
  }

  /** Reads what was sent to the workflows in hand. */
  async readInboxes(running: Members<Running>): Promise<void> {
    const claims = [...running].filter(({ workflow, settled }) => workflow !== undefined && !settled)
    if (claims.length === 0) return
    for (const claim of claims) claim.noteActing()
    const takes = new Map(claims.map(({ workflow, claimed }) => [claimed.ref, workflow?.takes ?? 0]))
    const inboxes = await this.parts.store.leases.readInboxes(claims.map(({ claimed }) => claimed))
    const byRef = new Map(inboxes.map(({ ref, inbox }) => [ref, inbox]))
    for (const { workflow, claimed } of claims) {
      const inbox = byRef.get(claimed.ref)
      if (inbox !== undefined) workflow?.receive(inbox, takes.get(claimed.ref) ?? 0)
    }
  }

  stop(): void {
    this.sticky.clear()
    this.#alarms.stop()
  }

  /** Calls the code of a step. */
  callStep<Argument>(step: (argument: Argument) => unknown, argument: Argument): unknown {
    return insideStep.run(this, step, argument)
  }
  isInsideStep(): boolean {
    return insideStep.getStore() === this
  }
  now(): number {
    return this.#owner.now()
  }
  isClosed(): boolean {
    return this.#owner.isClosed()
  }
  isStrict(): boolean {
    return this.#owner.options().workflows.strict
  }
  yields(running: Running): boolean {
    return this.#owner.yields(running)
  }
  settlement(running: Running, outcome: Outcome): SettledJob {
    return this.#owner.settlement(running, outcome)
  }
  logLine(running: Running, logged: Logged): void {
    this.#owner.logLine(running, logged)
  }

  /** What the steps of a claim have in common. */
  stepParts(workflow: Running): StepRunParts {
    const { registered, options } = workflow
    return {
      parts: this.parts,
      workflow,
      registered: this.#registeredSteps(workflow),
      timeoutMs: options.timeout === undefined ? registered.timeoutMs : (options.timeout ?? Infinity),
      slowAfterMs: registered.slowAfterMs ?? this.#owner.options().slowAfterMs,
      host: this.#stepHost,
      began: (step) => {
        this.#acting.add(step)
        this.#alarms.watch(step)
      },
      moved: (step) => this.#alarms.watch(step),
      ended: (step) => void this.#acting.delete(step),
    }
  }

  #registeredSteps(workflow: Running): Registered {
    const { registered, options } = workflow
    if (options.retry !== undefined) return registeredSteps(registered, workflow)
    const known = this.#definitions.get(registered) ?? registeredSteps(registered, workflow)
    this.#definitions.set(registered, known)
    return known
  }

  warn(running: Running, { kind, address }: Warning): void {
    const key = `${running.job} ${kind} ${address}`
    if (this.#warned.has(key) || this.#warned.size >= WARNED_MAX) return
    this.#warned.add(key)
    this.parts.events.workflowWarned(running, kind, address)
  }
}

/** Warnings that are remembered: later ones are in the records only. */
const WARNED_MAX = 10_000
