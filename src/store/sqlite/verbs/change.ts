import { isFinal, isTimed } from '../../../job/rules/states.js'
import { laneOfTurn } from '../../../job/limits/turns.js'
import type { AddedParents } from '../../links.js'
import { sortOf } from '../../rows/ordering.js'
import type { Changed, GuardedChange } from '../../store.js'
import type { AuditEntry } from '../../observing/audit.js'
import { writeAudit } from '../../verbs/audit.js'
import { changeJob as change } from '../../verbs/commands.js'
import type { CommandSteps, CommandTarget, Moved } from '../../verbs/commands.js'
import type { Holder, Slot } from '../../verbs/conflicts.js'
import { addParents } from '../../verbs/links.js'
import { runVerb } from '../../verbs/verb.js'
import type { SqliteValue } from '../connection/driver.js'
import { SessionAt } from '../connection/session.js'
import type { Session } from '../connection/session.js'
import { keyHolder, readSlot, takeKey, takeSlot } from './conflicts.js'
import { countMoves } from './groups.js'
import { dropLabels, replaceLabels } from './labels.js'
import { isBlocked, SqliteLinks } from './links.js'
import { dropLinks, endTaken, freeSlot, noteGone } from './moves.js'
import type { JobEnd } from './moves.js'
import { readForChange } from './read.js'

/** Applies a command within the current transaction. */
export function changeJob(session: Session, command: GuardedChange, now: number): Changed {
  session.takings += 1
  return runVerb(change(new SqliteCommands(session, now), command))
}

/**
 * The steps of `store/verbs/commands.ts`. A job is one row of `live` or of `history`, and a command changes it in
 * place.
 */
class SqliteCommands implements CommandSteps<CommandTarget> {
  readonly #session: Session
  readonly #now: number

  constructor(session: Session, now: number) {
    this.#session = session
    this.#now = now
  }

  now(): number {
    return this.#now
  }

  readTarget(id: string): CommandTarget | undefined {
    return readForChange(this.#session, id)
  }

  removeFromState(job: CommandTarget): boolean {
    this.#session.groupMoves.leave(job, job.state)
    return true
  }

  insertInState(before: CommandTarget, moved: Moved<CommandTarget>, now: number): void {
    const { job, state } = moved
    if (isFinal(before.state)) this.#revive(moved)
    else if (state === 'paused' && before.state !== 'paused') this.#run('pauseJob', job.reason, job.log, job.ref)
    else if (state !== 'paused' && before.state === 'paused' && job.dueAt === before.dueAt)
      this.#run('resumeJob', state, job.log, job.ref)
    else this.#edit(before, moved)
    this.#session.groupMoves.enter(job, state)
    if (state === 'ready') this.#session.note({ ready: true })
    else if (isTimed(state)) this.#session.note({ dueInMs: Math.max(0, job.dueAt - now) })
  }

  endJob(job: CommandTarget, end: JobEnd): void {
    endTaken(this.#session, job, end, this.#now)
  }

  deleteJob({ ref, name, key }: CommandTarget): void {
    freeSlot(this.#session, ref)
    noteGone(this.#session, [ref])
    dropLinks(this.#session, ref)
    for (const statement of ['deleteLive', 'deleteHistory', 'deleteJob'] as const) this.#run(statement, ref)
    dropLabels(this.#session, [ref])
    if (key !== null) this.#run('freeKey', name, key, ref)
    this.#session.note({ settled: true })
  }

  isBlocked(job: CommandTarget): boolean {
    return isBlocked(this.#session, job.ref)
  }

  addParents(job: CommandTarget, added: AddedParents): readonly string[] {
    return runVerb(addParents(new SqliteLinks(this.#session, this.#now), job, added))
  }

  laneIn(job: CommandTarget, queue: string): number {
    return this.#session.lanes.need(queue, job.name).lane
  }

  countMoves(): void {
    countMoves(this.#session)
  }

  noteRequested(): void {
    this.#session.note({ requested: true })
  }

  writeAudit(entries: readonly AuditEntry[]): void {
    runVerb(writeAudit(new SessionAt(this.#session, this.#now), entries))
  }

  lockKeyAndSlot(): void {}

  takeKey({ name, key, ref }: CommandTarget): { readonly holder: string } | undefined {
    const holder = keyHolder(this.#session, name, key ?? '')
    if (holder !== undefined) return { holder: holder.id }
    takeKey(this.#session, name, key ?? '', ref, 0)
    return undefined
  }

  readSlot(name: string, key: string): Slot<Holder> | undefined {
    return readSlot(this.#session, name, key)
  }

  takeSlot(job: CommandTarget, key: string, until: number | null): void {
    takeSlot(this.#session, job, key, job.ref, until)
  }

  #revive({ job, state }: Moved<CommandTarget>): void {
    const { ref, dueAt, priority, attempt, retries, crashes, log } = job
    const lane = laneOfTurn(job.lane, job.jobTurn.limit)
    this.#run('deleteHistory', ref)
    this.#run('reviveJob', ref, lane, state, sortOf(dueAt, priority), dueAt, attempt, retries, crashes, log)
  }

  #edit(before: CommandTarget, { job, state }: Moved<CommandTarget>): void {
    const { ref, lane, priority, payload, options, dueAt, retries, error, reason, log } = job
    const isEdited = payload !== before.payload || priority !== before.priority || lane !== before.lane
    if (isEdited || options !== before.options) this.#run('editJob', payload, options, priority, lane, ref)
    if (job.jobTurn !== before.jobTurn)
      this.#run('turnJob', job.jobTurn.limit, job.jobTurn.rate, job.jobTurn.weight, ref)
    if (options !== before.options) replaceLabels(this.#session, ref, options)
    const place = laneOfTurn(lane, job.jobTurn.limit)
    this.#run('changeLive', state, dueAt, sortOf(dueAt, priority), retries, place, error, reason, log, ref)
  }

  #run(statement: CommandStatement, ...values: readonly SqliteValue[]): void {
    this.#session.statement(this.#session.queries[statement]).run(...values)
  }
}

type CommandStatement =
  | 'pauseJob'
  | 'resumeJob'
  | 'reviveJob'
  | 'changeLive'
  | 'editJob'
  | 'turnJob'
  | 'deleteLive'
  | 'deleteHistory'
  | 'deleteJob'
  | 'freeKey'
