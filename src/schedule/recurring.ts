import { show } from '../codec/show.js'
import { InvalidOptionsError, InvalidPayloadError, UnknownScheduleError } from '../errors.js'
import type { LiveState } from '../job/live-state.js'
import type { Problem } from '../errors.js'
import { commandGiven } from '../job/command-options.js'
import type { AuditNote, CommandOptions } from '../job/command-options.js'
import { checkName } from '../job/definition/check-options.js'
import { parseDuration, parseInstant } from '../job/duration/duration.js'
import type { EnqueueOptions, Enqueueable, Handle } from '../job/enqueue.js'
import { MISSED_MAX } from '../job/rules/missed.js'
import type { Encoded } from '../job/rules/outcome.js'
import { thenOrRetry } from '../store/unknown-outcome.js'
import type { Firing, PlannedTick, ScheduleRow, TickRow } from '../store/schedules.js'
import type { NewJob } from '../store/store.js'
import { checkBackfill, checkListOptions, checkRecurring, checkTicksOptions, iso } from './check.js'
import { firingOf, reportFired } from './fire.js'
import type { FireParts } from './fire.js'
import { toScheduleRecord, toTickRecord } from './record.js'
import type { Instant, RecurringOptions, ScheduleRecord, TickRecord } from './record.js'
import { applySpec } from './apply-spec.js'
import { jobOf, readSpec, templateOf, writeSpec } from './spec.js'
import type { ScheduleSpec } from './spec.js'
import { continued, dueTicks, nextAfter, timingOf } from './ticks.js'
import type { Timing } from './ticks.js'

/** A command gives up after this many conflicts with other writers of the schedule. */
const TRIES = 50
/** The default limit of a list. */
const LIST = 1_000
const TICKS = 100

export interface RecurringParts extends FireParts {
  /** Returns the row of a job, checked and encoded; throws all problems, including `problems`. */
  readonly template: (
    job: Enqueueable,
    payload: unknown,
    options: EnqueueOptions,
    problems: readonly Problem[],
  ) => Promise<NewJob>
  /** How long a row of the audit trail is kept. */
  readonly auditKeepMs: number
  readonly toHandle: (id: string) => Handle<unknown>
  readonly decode: (name: string, payload: Encoded, version: number) => unknown
  readonly watch: () => LiveState<ScheduleRecord[]>
}

/** Commands for schedules, by their ids. */
export interface Schedules {
  /** All schedules in the order of their ids: at most 1,000, or `limit`; `after` an id returns the next ones. */
  list(options?: { readonly limit?: number; readonly after?: string }): Promise<ScheduleRecord[]>
  get(id: string): Promise<ScheduleRecord | undefined>
  /** Stops firing until it is resumed. Returns false when there is no such schedule. */
  pause(id: string, options?: CommandOptions): Promise<boolean>
  /** Continues with the next tick; ticks in between are skipped. Returns false when there is no such schedule. */
  resume(id: string, options?: CommandOptions): Promise<boolean>
  /** Enqueues its job now, in addition to the rule, regardless of overlap. Undefined when refused; the ledger has the reason. */
  runNow(id: string, options?: CommandOptions): Promise<Handle<unknown> | undefined>
  /** Enqueues the missing jobs of past ticks between two instants; returns their number. At most 1,000 at a time. */
  backfill(id: string, from: Instant, to: Instant, options?: CommandOptions): Promise<number>
  /** The ledger, newest first: at most 100 rows, or `limit`; `before` an instant returns the older ones. */
  ticks(id: string, options?: { readonly limit?: number; readonly before?: Instant }): Promise<TickRecord[]>
  /** The first 1,000 schedules as live state, which is read while it is observed. */
  watch(): LiveState<ScheduleRecord[]>
}

/** The commands for recurring jobs. Each reads the schedule, decides, and writes under the revision it read, or retries. */
export class Recurring implements Schedules {
  readonly #parts: RecurringParts

  constructor(parts: RecurringParts) {
    this.#parts = parts
  }

  async put(
    id: string,
    job: Enqueueable,
    payload: unknown,
    rule: unknown,
    options: RecurringOptions | undefined,
  ): Promise<ScheduleRecord> {
    const { problems, own, rest } = checkRecurring(id, rule, options)
    const row = await this.#parts
      .template(job, payload, problems.length > 0 ? {} : rest, problems)
      .catch((error: unknown) => Promise.reject(named(error, id)))
    if (own.overlap === 'wait' && (row.after?.length ?? 0) > 0) refuse(`schedule ${JSON.stringify(id)}`, [WAITS_TWICE])
    const spec = specOf(row, rule, own, (rest as EnqueueOptions).onDuplicate)
    return this.#again(id, async () => {
      const { now, schedule } = await this.#parts.store.schedules.readSchedule(id)
      const next = applySpec(schedule, spec, now)
      if (schedule !== undefined && schedule.spec === next.spec) return this.#record(schedule)
      const putting = this.#parts.store.schedules.putSchedule({ id, ...next }, schedule?.revision ?? null)
      return thenOrRetry(putting, (written) =>
        written ? this.#record({ ...NEW, ...schedule, id, ...next }) : undefined,
      )
    })
  }

  async delete(id: string, options?: CommandOptions): Promise<boolean> {
    const audit = commandGiven('deleteRecurring', 'deleteRecurring()', options, this.#parts.auditKeepMs).audit
    return this.#parts.store.schedules.dropSchedule(checkId(id), audit)
  }

  async list(options: { readonly limit?: number; readonly after?: string } = {}): Promise<ScheduleRecord[]> {
    refuse('schedules.list()', checkListOptions(options))
    const { schedules } = await this.#parts.store.schedules.listSchedules(options.after ?? '', options.limit ?? LIST)
    return schedules.map((row) => this.#record(row))
  }

  watch(): LiveState<ScheduleRecord[]> {
    return this.#parts.watch()
  }

  async get(id: string): Promise<ScheduleRecord | undefined> {
    const { schedule } = await this.#parts.store.schedules.readSchedule(checkId(id))
    return schedule === undefined ? undefined : this.#record(schedule)
  }

  async pause(id: string, options?: CommandOptions): Promise<boolean> {
    const audit = this.#audit('pause', options)
    return this.#move(id, audit, (row, spec, now) =>
      row.pausedAt !== null ? 'as it is' : firingOf(this.#parts, row, spec, { ticks: [], nextAt: null, pausedAt: now }),
    )
  }

  async resume(id: string, options?: CommandOptions): Promise<boolean> {
    const audit = this.#audit('resume', options)
    return this.#move(id, audit, (row, spec, now) => {
      if (row.pausedAt === null) return 'as it is'
      const counted = continued(spec, row, now)
      const timing = timingOf(counted, row.createdAt)
      // After the clock was set back, the ledger has all ticks up to now, so none was passed over.
      if (counted !== spec) return { ...row, spec: writeSpec(counted), nextAt: nextAfter(timing, now), pausedAt: null }
      const ticks = passedOver(timing, row.pausedAt, now)
      return firingOf(this.#parts, row, spec, { ticks, nextAt: nextAfter(timing, now), pausedAt: null })
    })
  }

  async runNow(id: string, options?: CommandOptions): Promise<Handle<unknown> | undefined> {
    const audit = this.#audit('runNow', options)
    const firing = this.#fire(id, audit, (row, spec, now) => {
      const job = this.#jobOf(id, spec, now)
      const ticks = [{ at: now, byHand: true, outcome: 'run now', reason: null, job } as const]
      return { ticks, nextAt: row.nextAt, pausedAt: row.pausedAt, overlap: 'allow' }
    })
    return thenOrRetry(firing, ([tick]) =>
      tick === undefined || tick.job === null ? undefined : this.#parts.toHandle(tick.job),
    )
  }

  async backfill(id: string, from: Instant, to: Instant, options?: CommandOptions): Promise<number> {
    const audit = this.#audit('backfill', options)
    const { problems, fromAt, toAt } = checkBackfill(from, to)
    refuse('schedules.backfill()', problems)
    const firing = this.#fire(id, audit, (row, spec, now) => {
      if (toAt > now)
        refuse('schedules.backfill()', [
          { path: 'to', message: `must not be after now (${iso(now)}), got ${iso(toAt)}` },
        ])
      const times = timesBetween(timingOf(spec, row.createdAt), fromAt, toAt)
      const filled = times.map((at): PlannedTick => {
        return { at, byHand: false, outcome: 'backfilled', reason: null, job: this.#jobOf(id, spec, at) }
      })
      // The caller requested all of them: none is skipped, and none cancels another.
      const overlap = spec.overlap === 'wait' ? 'wait' : 'allow'
      return { ticks: filled, nextAt: row.nextAt, pausedAt: row.pausedAt, overlap }
    })
    return thenOrRetry(firing, (ticks) => ticks.filter((tick) => tick.job !== null).length)
  }

  async ticks(id: string, options: { readonly limit?: number; readonly before?: Instant } = {}): Promise<TickRecord[]> {
    refuse('schedules.ticks()', checkTicksOptions(options))
    const before = parseInstant(options.before)
    const { limit = TICKS } = options
    const rows = await this.#parts.store.schedules.readTicks(checkId(id), before.ok ? before.atMs : null, limit)
    return rows.map(toTickRecord)
  }

  #jobOf(schedule: string, spec: ScheduleSpec, at: number): NewJob {
    const { world } = this.#parts
    return jobOf(spec.job, world.ids.jobId(world.clock.now()), { schedule, at }, { inMs: 0 })
  }

  #record(row: ScheduleRow): ScheduleRecord {
    return toScheduleRecord(row, this.#parts.decode)
  }

  #audit(verb: string, options: unknown): AuditNote | undefined {
    return commandGiven(verb, `schedules.${verb}()`, options, this.#parts.auditKeepMs).audit
  }

  async #move(
    id: string,
    audit: AuditNote | undefined,
    decide: (row: ScheduleRow, spec: ScheduleSpec, now: number) => Firing | ScheduleRow | 'as it is',
  ): Promise<boolean> {
    return this.#again(checkId(id), async () => {
      const { now, schedule } = await this.#parts.store.schedules.readSchedule(id)
      if (schedule === undefined) return false
      const firing = decide(schedule, readSpec(schedule.spec), now)
      if (firing === 'as it is') return true
      if ('spec' in firing) {
        const putting = this.#parts.store.schedules.putSchedule({ ...firing, audit }, schedule.revision)
        return thenOrRetry(putting, (written) => (written ? true : undefined))
      }
      return thenOrRetry(this.#parts.store.schedules.fireTicks({ ...firing, audit }), (fired) =>
        fired === 'stale' ? undefined : true,
      )
    })
  }

  /** Writes ticks outside of the rule, for a schedule that must exist. */
  #fire(
    id: string,
    audit: AuditNote | undefined,
    decide: (row: ScheduleRow, spec: ScheduleSpec, now: number) => Parameters<typeof firingOf>[3],
  ): Promise<readonly TickRow[]> {
    return this.#again(checkId(id), async () => {
      const { now, schedule } = await this.#parts.store.schedules.readSchedule(id)
      if (schedule === undefined) throw new UnknownScheduleError(id)
      const spec = readSpec(schedule.spec)
      const firing = firingOf(this.#parts, schedule, spec, decide(schedule, spec, now))
      return thenOrRetry(this.#parts.store.schedules.fireTicks({ ...firing, audit }), (ticks) => {
        if (ticks !== 'stale') reportFired(this.#parts, firing, ticks)
        return ticks === 'stale' ? undefined : ticks
      })
    })
  }

  #again<T>(id: string, once: () => Promise<T | undefined>, tries = 0): Promise<T> {
    return thenOrRetry(once(), async (done) => {
      if (done !== undefined) return done
      if (tries + 1 === TRIES)
        throw new Error(`schedule ${JSON.stringify(id)} was moved by others ${TRIES} times while it was to be changed`)
      // Give the other writer time to finish.
      await new Promise<void>((resolve) => this.#parts.world.timers.after(tries, resolve))
      return this.#again(id, once, tries + 1)
    })
  }
}

const WAITS_TWICE = {
  path: 'options.overlap',
  message: 'cannot be "wait" for a job that comes after others: it says already what it waits for',
}
const NEW = { revision: 1, lastAt: null, open: [] } as const

function specOf(
  row: NewJob,
  rule: unknown,
  own: RecurringOptions,
  onDuplicate: EnqueueOptions['onDuplicate'],
): ScheduleSpec {
  const [jitter, expires] = [parseDuration(own.jitter), parseDuration(own.expires)]
  const every = typeof rule === 'string' ? undefined : parseDuration((rule as { every: unknown }).every)
  return {
    job: templateOf(row, onDuplicate ?? 'return', expires.ok ? expires.ms : null),
    rule: every === undefined ? (rule as string) : { every: every.ok ? every.ms : 0 },
    timezone: own.timezone ?? 'UTC',
    missed: own.missed ?? 'once',
    overlap: own.overlap ?? 'allow',
    jitterMs: jitter.ok ? jitter.ms : 0,
    fromAt: instantOf(own.from),
    untilAt: instantOf(own.until),
  }
}

function instantOf(value: unknown): number | null {
  const parsed = parseInstant(value)
  return parsed.ok ? parsed.atMs : null
}

/** Ticks that came due while the schedule was paused, as one row of the ledger. */
function passedOver(timing: Timing, pausedAt: number, now: number): PlannedTick[] {
  const first = nextAfter(timing, pausedAt)
  if (first === null || first > now) return []
  const { newest, older } = dueTicks(timing, first, now, 1)
  const last = newest.at(-1) ?? first
  const more = older === null ? 'a tick' : `${older.isMore ? 'more than ' : ''}${older.count + 1} ticks`
  const reason = `${more} came while it was paused, from ${iso(pausedAt)} on`
  return [{ at: last, byHand: false, outcome: 'skipped', reason, job: null }]
}

function timesBetween(timing: Timing, fromAt: number, toAt: number): number[] {
  const times: number[] = []
  for (let at = nextAfter(timing, fromAt - 1); at !== null && at < toAt; at = nextAfter(timing, at)) {
    if (times.length === MISSED_MAX)
      refuse('schedules.backfill()', [
        {
          path: 'to',
          message: `must leave at most ${MISSED_MAX} ticks; there are more from ${iso(fromAt)} to ${iso(toAt)}: ask for a part of them`,
        },
      ])
    times.push(at)
  }
  return times
}

/** An app may have many schedules of one job, so the error names the schedule. */
function named(error: unknown, id: unknown): unknown {
  const subject = `schedule ${typeof id === 'string' ? JSON.stringify(id) : show(id)}`
  if (error instanceof InvalidOptionsError) return new InvalidOptionsError(subject, error.problems)
  if (error instanceof InvalidPayloadError)
    return new InvalidPayloadError(subject, error.problems, { cause: error.cause })
  return error
}

function checkId(id: unknown): string {
  refuse('schedule', checkName('id', id))
  return id as string
}

function refuse(subject: string, problems: readonly Problem[]): void {
  if (problems.length > 0) throw new InvalidOptionsError(subject, problems)
}
