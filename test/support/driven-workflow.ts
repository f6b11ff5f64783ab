import { defaultCodec } from '../../src/codec/codec.js'
import { describeError } from '../../src/codec/error-text.js'
import { isAbort, isSnooze } from '../../src/job/attempt/control-errors.js'
import { workflowRules } from '../../src/job/definition/workflow-options.js'
import type { AnyJob } from '../../src/job/definition/define.js'
import { checkPayload } from '../../src/job/definition/schema.js'
import type { Outcome } from '../../src/job/rules/outcome.js'
import { mergeRetry, retryDelayMs } from '../../src/job/rules/retry.js'
import type { NewStep } from '../../src/store/sequences.js'
import type { Inserted } from '../../src/store/store.js'
import type { InboxRow, StepRow } from '../../src/store/workflows.js'
import { VirtualTime } from '../../src/testing/simulation/virtual-time.js'
import { Driver } from '../../src/workflow/driver.js'
import type { DriverHost, LogRest, LogWrite, RunEnd, Warning } from '../../src/workflow/host.js'
import { UNWOUND } from '../../src/workflow/log-row.js'
import type { Operation } from '../../src/workflow/operation.js'
import type { StepContext } from '../../src/workflow/work.js'
import { systemTimers } from '../../src/world/timers.js'

export interface DrivenOptions {
  /** The process is killed once so many rows are written: before the next commit, or right after that one. */
  readonly killAt?: number | undefined
  readonly killsAfterCommit?: boolean | undefined
  /** Keep the frozen run between two claims. */
  readonly sticky?: boolean | undefined
  /** Called with each row that is written, by its commit. */
  readonly onRow?: ((row: NewStep, driven: DrivenWorkflow) => void) | undefined
  readonly input?: unknown
  /** How long each commit takes. */
  readonly commitMs?: number | undefined
  readonly isStrict?: boolean | undefined
}

/** One workflow on a log in memory, in virtual time: claimed, suspended, woken and killed as a worker would. */
export class DrivenWorkflow {
  readonly time = new VirtualTime(1_000_000)
  readonly rows = new Map<string, StepRow>()
  readonly warnings: Warning[] = []
  readonly ends: RunEnd[] = []
  readonly cancelledChildren: string[] = []
  readonly children: { readonly address: string; readonly id: string }[] = []
  inbox: InboxRow[] = []
  draining: ReturnType<DriverHost['draining']>
  run = 0
  deadlineAt: number | null = null
  written = 0
  kills = 0
  job: AnyJob
  /** How many real turns the driver has asked for and not got. */
  #soon = 0
  #sent = 0
  #claims = 0
  #killAt: number
  #kept: Driver | undefined
  #current: Driver | undefined
  #isKilled: () => void = () => undefined
  readonly #options: DrivenOptions
  readonly #acting = new Map<string, AbortController>()

  constructor(job: AnyJob, options: DrivenOptions = {}) {
    this.job = job
    this.#options = options
    this.#killAt = options.killAt ?? Infinity
  }

  /** Claims it again and again until it has ended, or until it waits for something that time does not bring. */
  async toEnd(claimsMax = 10_000): Promise<RunEnd> {
    for (let claims = 0; claims < claimsMax; claims += 1) {
      const end = await this.claim()
      if (end === undefined) continue
      if (end.kind === 'restarted') {
        this.rows.clear()
        this.run += 1
        continue
      }
      if (end.kind === 'yielded') continue
      if (end.kind !== 'suspended') return end
      if (this.inbox.some((row) => isWanted(row, end.waits))) continue
      const next = Math.min(end.wakeAt ?? Infinity, this.time.next ?? Infinity)
      if (next === Infinity) return end
      await this.time.advanceTo(next)
    }
    throw new Error('it does not end')
  }

  /** One claim; undefined when the process was killed. */
  async claim(): Promise<RunEnd | undefined> {
    const kept = this.#kept
    const host = this.#host()
    const rules = workflowRules(this.job)
    const driver =
      kept ??
      new Driver(
        {
          id: 'w1',
          name: this.job.name,
          depth: 0,
          body: this.job.options.run as never,
          input: this.#options.input,
          rules,
          isStrict: this.#options.isStrict ?? false,
          inHandMs: 250,
          codec: defaultCodec,
        },
        host,
      )
    this.#kept = undefined
    this.#current = driver
    const rows = kept === undefined ? this.#log() : undefined
    const killed = new Promise<undefined>((resolve) => (this.#isKilled = () => resolve(undefined)))
    const driving = driver.drive(host, { run: this.run, deadlineAt: this.deadlineAt, rows, inbox: this.inbox })
    const end = await this.#until(Promise.race([driving, killed]))
    this.#current = undefined
    if (end === undefined) return this.#afterKill()
    this.ends.push(end)
    if ('rest' in end) this.#apply(end.rest)
    if (end.kind === 'suspended' && this.#options.sticky === true) this.#kept = driver
    return end
  }

  send(name: string, payload: unknown): void {
    this.#sent += 1
    const row = { number: this.#sent, kind: 'event', name, payload: defaultCodec.encode(payload), error: null } as const
    this.#receive({ ...row, sentAt: this.time.now })
  }

  endChild(id: string, result: unknown): void {
    this.#sent += 1
    const payload = defaultCodec.encode(result)
    this.#receive({ number: this.#sent, kind: 'call', name: id, payload, error: null, sentAt: this.time.now })
  }

  cancel(): void {
    if (this.inbox.some(({ kind }) => kind === 'cancel') || this.rows.has('!cancel')) return
    this.#sent += 1
    const cancel = { number: this.#sent, kind: 'cancel', name: null, payload: null, error: 'cancelled' } as const
    this.#receive({ ...cancel, sentAt: this.time.now })
  }

  /** What is recorded, by number, then what is open. */
  addresses(): string[] {
    return this.#log().map(({ address }) => address)
  }

  #receive(row: InboxRow): void {
    this.inbox.push(row)
    this.#current?.receive(this.inbox)
  }

  wake(): void {
    this.#current?.wake()
  }

  #afterKill(): undefined {
    this.kills += 1
    this.#killAt = Infinity
    this.#acting.clear()
    return undefined
  }

  #log(): StepRow[] {
    return [...this.rows.values()].toSorted((a, b) => (a.no ?? Infinity) - (b.no ?? Infinity))
  }

  #apply(rest: LogRest): void {
    for (const row of rest.rows) this.#write(row)
    this.cancelledChildren.push(...rest.cancelled)
    this.deadlineAt = rest.deadlineAt
  }

  #write(row: NewStep): void {
    const before = this.rows.get(row.address)
    if (before !== undefined && before.no !== null) throw new Error(`${row.address} is answered twice`)
    this.rows.set(row.address, { ...row, answeredAt: row.no === null ? null : row.endedAt })
    if (row.kind !== UNWOUND) this.written += 1
    this.#options.onRow?.(row, this)
  }

  /** Moves virtual time while the driver waits, and lets its turns run in real ones. */
  async #until<T>(promise: Promise<T>): Promise<T> {
    let isOver = false
    void promise.then(() => (isOver = true))
    for (;;) {
      await this.#settled()
      if (isOver) return promise
      if (!(await this.time.step())) throw new Error('nothing is left to happen, and the claim has not ended')
    }
  }

  async #settled(): Promise<void> {
    for (let quiet = 0; quiet < 3; quiet += 1) {
      await new Promise<void>((resolve) => systemTimers.soon(resolve))
      if (this.#soon > 0) quiet = 0
    }
  }

  #host(): DriverHost {
    const claim = (this.#claims += 1)
    return {
      timers: {
        after: (ms, run) => this.time.at(this.time.now + ms, run),
        soon: (run) => {
          this.#soon += 1
          systemTimers.soon(() => {
            this.#soon -= 1
            run()
          })
        },
      },
      now: () => this.time.now,
      append: (write, written) =>
        void this.#append(write, claim).then(
          (inserted) => written(inserted),
          (refused: unknown) => written([], refused),
        ),
      readInbox: () => Promise.resolve([...this.inbox]),
      act: (operation, ended) => void this.#act(operation).then(ended),
      transact: async (operation, record) => {
        const outcome = await this.#act(operation)
        if (outcome.kind !== 'succeeded') return outcome
        const written = await this.#append({ rows: [record(outcome)], taken: [], children: [], cancelled: [] }, claim)
        return written === undefined ? { kind: 'released' } : outcome
      },
      abort: (operation, reason) => this.#acting.get(operation.address)?.abort(reason),
      prepareChild: (deed) =>
        Promise.resolve({
          job: { name: typeof deed.job === 'string' ? deed.job : deed.job.name } as never,
          options: {} as never,
        }),
      prepareInput: (input) => Promise.resolve(defaultCodec.encode(input)),
      readEvent: async (event, payload) => {
        const decoded = payload === null ? undefined : defaultCodec.decode(payload)
        const checked = await checkPayload({ input: event.schema }, decoded)
        if (checked.ok) return { ok: true, payload: checked.value }
        return { ok: false, error: { name: 'InvalidPayloadError', message: String(checked.problems[0]?.message) } }
      },
      codecOf: () => defaultCodec,
      isInsideStep: () => false,
      draining: () => this.draining,
      logLine: (parts) => parts.map(String).join(' '),
      progress: () => undefined,
      warn: (warning) => this.warnings.push(warning),
    }
  }

  async #append(write: LogWrite, claim: number): Promise<readonly Inserted[] | undefined> {
    await (this.#options.commitMs === undefined ? Promise.resolve() : this.after(this.#options.commitMs))
    // What an earlier process still does writes nothing.
    if (claim !== this.#claims) return new Promise<never>(() => undefined)
    if (this.written >= this.#killAt) return this.#die()
    const inserted = write.children.map(({ address }) => {
      const known = this.children.find((child) => child.address === address)
      if (known !== undefined) throw new Error(`${address} has a child already`)
      const child = { address, id: `child-${this.children.length}` }
      this.children.push(child)
      return { id: child.id, isNew: true, address }
    })
    for (const row of write.rows) {
      const child = inserted.find(({ address }) => address === row.address)
      const note = child === undefined ? row.note : JSON.stringify({ ...JSON.parse(row.note ?? '{}'), child: child.id })
      this.#write({ ...row, note })
    }
    this.inbox = this.inbox.filter(({ number }) => !write.taken.includes(number))
    this.cancelledChildren.push(...write.cancelled)
    if (this.written >= this.#killAt && this.#options.killsAfterCommit === true) return this.#die()
    return inserted
  }

  #die(): Promise<never> {
    this.#isKilled()
    return new Promise<never>(() => undefined)
  }

  async #act(operation: Operation): Promise<Outcome> {
    const { deed, address, attempt } = operation
    if (deed.kind === 'results') return { kind: 'succeeded', result: defaultCodec.encode([]) }
    if (deed.kind !== 'step' && deed.kind !== 'tx') throw new Error('it does not act')
    const controller = new AbortController()
    this.#acting.set(address, controller)
    const context: StepContext = {
      id: `w1:${address}`,
      workflow: 'w1',
      attempt: attempt + 1,
      signal: controller.signal,
      log: () => undefined,
      progress: () => undefined,
      enqueue: () => Promise.reject(new Error('not here')),
    }
    try {
      const value: unknown = await (deed.kind === 'tx' ? deed.work({}) : deed.act(context))
      if (value === undefined) return { kind: 'succeeded', result: null }
      try {
        return { kind: 'succeeded', result: defaultCodec.encode(value) }
      } catch (error) {
        return { kind: 'succeeded', result: null, note: `the result is not kept: ${describeError(error).message}` }
      }
    } catch (error) {
      if (isAbort(error)) return { kind: 'aborted', error: describeError(error) }
      if (isSnooze(error)) return { kind: 'snoozed', delayMs: 60_000 }
      const policy = mergeRetry([deed.kind === 'step' ? deed.retry : undefined, this.job.options.retry])
      const delayMs = retryDelayMs({ ...policy, jitter: 0 }, attempt + 1, error, () => 0)
      return { kind: 'failed', error: describeError(error), retryable: true, retryLimit: policy.limit, delayMs }
    } finally {
      this.#acting.delete(address)
    }
  }

  /** Resolves after so much virtual time: for the functions of steps. */
  after(ms: number): Promise<void> {
    return new Promise((resolve) => void this.time.at(this.time.now + ms, resolve))
  }
}

function isWanted({ kind, name }: InboxRow, waits: readonly string[]): boolean {
  return kind === 'cancel' || waits.includes(`${kind}:${name}`)
}
