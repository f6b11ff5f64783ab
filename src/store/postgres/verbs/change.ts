import { readOptions } from '../../../job/definition/stored-options.js'
import type { FinalState, State } from '../../../job/rules/states.js'
import { isFinal } from '../../../job/rules/states.js'
import type { AddedParents } from '../../links.js'
import type { Changed, GuardedChange } from '../../store.js'
import type { AuditEntry } from '../../observing/audit.js'
import { entryOfChange, writeAudit } from '../../verbs/audit.js'
import { changeJob as change, isPausedOrRetried, pausedOrRetried } from '../../verbs/commands.js'
import type { CommandSteps, Moved } from '../../verbs/commands.js'
import type { Slot } from '../../verbs/conflicts.js'
import { addParents } from '../../verbs/links.js'
import { awaitVerb } from '../../verbs/verb.js'
import { WriteBatcher } from '../connection/write-batcher.js'
import type { Session, VerbParts } from '../connection/session.js'
import { arrayOf, textOf } from '../connection/session.js'
import { isLocked, LOCK_PATIENCE_MS } from '../connection/while-locked.js'
import { lockNames, readSlot } from './conflicts.js'
import { countMoves } from './groups.js'
import { linkedAmong, PostgresLinks } from './links.js'
import { deleteAll, endAll, freeKeys, laneIn, putIn, takeAllOut, takeOut } from './moves.js'
import { readById, readManyById, readStored } from './read.js'
import type { StoredJob } from './read.js'

/** Commands to jobs: those that arrive while one is in flight are applied together. */
export class Commands {
  readonly #parts: VerbParts
  readonly #batcher: WriteBatcher<GuardedChange, Changed | undefined>

  constructor(parts: VerbParts) {
    this.#parts = parts
    this.#batcher = new WriteBatcher({ write: (changes) => this.#some(changes), weigh: () => 1, max: TOGETHER_MAX })
  }

  change(change: GuardedChange): Promise<Changed> {
    return this.#parts.withReceipts.withKnownOutcome({
      ids: [change.id],
      write: async (isAgain) =>
        (mayShare(change) && !isAgain ? await this.#batcher.add(change) : undefined) ?? this.#inOwnTransaction(change),
      read: (answer, index) => (JSON.parse(answer as string) as (Changed | null)[])[index] ?? undefined,
    })
  }

  async #some(changes: readonly GuardedChange[]): Promise<readonly (Changed | undefined)[]> {
    const [only] = changes
    try {
      if (only !== undefined && changes.length === 1) return [await this.#inOwnTransaction(only, 0)]
      return await this.#parts.withReceipts.transactWithReceipt(
        (session) => changeTogether(session, changes),
        (done) => done,
        0,
      )
    } catch (error) {
      // On a lock conflict each change is made alone and waits for the lock, so that no other change waits behind it.
      if (isLocked(error)) return []
      throw error
    }
  }

  async #inOwnTransaction(command: GuardedChange, patienceMs = LOCK_PATIENCE_MS): Promise<Changed> {
    const { lanes, plain, withReceipts } = this.#parts
    const queue = command.edit?.queue
    const job = queue === undefined ? undefined : await plain((session) => readById(session, command.id))
    const moved = queue === undefined || job === undefined ? [] : [{ queue, name: job.name }]
    return lanes.ensureLanes(moved, () =>
      withReceipts.transactWithReceipt(
        (session) => changeJob(session, command),
        (done) => [done],
        patienceMs,
      ),
    )
  }
}

/** Applies a command. Within a transaction. */
export function changeJob(session: Session, command: GuardedChange): Promise<Changed> {
  return awaitVerb(change(new PostgresCommands(session), command))
}

/** What `store/verbs/commands.ts` needs. A job moves between the tables `ready`, `waiting`, `leases` and `history`. */
class PostgresCommands implements CommandSteps<StoredJob> {
  readonly #session: Session

  constructor(session: Session) {
    this.#session = session
  }

  now(): Promise<number> {
    return this.#session.now()
  }

  readTarget(id: string): Promise<StoredJob | undefined> {
    return readById(this.#session, id)
  }

  removeFromState(job: StoredJob): Promise<boolean> {
    return takeOut(this.#session, job)
  }

  async insertInState(before: StoredJob, moved: Moved<StoredJob>, now: number): Promise<void> {
    if (isFinal(before.state)) await forgetLeases(this.#session, [before])
    await putIn(this.#session, [moved], now)
  }

  endJob(job: StoredJob, end: { to: State; keepMs: number; reason: string | null }): Promise<void> {
    return endAll(this.#session, [{ ...job, ...end, result: null }])
  }

  async deleteJob(job: StoredJob): Promise<void> {
    await this.#session.query(this.#session.queries.freeSlots, arrayOf([job.ref]))
    await deleteAll(this.#session, [{ ref: job.ref, what: job.state === 'done' ? 'done' : 'gone' }])
    await freeKeys(this.#session, [job])
    this.#session.note({ settled: true })
  }

  async isBlocked(job: StoredJob): Promise<boolean> {
    return (await linkedAmong(this.#session, [job])).has(job.ref)
  }

  addParents(job: StoredJob, added: AddedParents): Promise<readonly string[]> {
    return awaitVerb(addParents(new PostgresLinks(this.#session), job, added))
  }

  laneIn(job: StoredJob, queue: string): Promise<number> {
    return laneIn(this.#session, job, queue)
  }

  countMoves(): Promise<void> {
    return countMoves(this.#session)
  }

  noteRequested(): void {
    this.#session.note({ requested: true })
  }

  writeAudit(entries: readonly AuditEntry[]): Promise<void> {
    return awaitVerb(writeAudit(this.#session, entries))
  }

  lockKeyAndSlot({ name, key }: StoredJob, slot: string | undefined): Promise<void> {
    return lockNames(this.#session, [{ name, key, unique: slot === undefined ? undefined : { key: slot } }])
  }

  async takeKey({ name, key, ref }: StoredJob): Promise<{ readonly holder: string | undefined } | undefined> {
    const { takeKey, keyHolders } = this.#session.queries
    const taken = await this.#session.query(takeKey, name, key, String(ref))
    if (taken.length > 0) return undefined
    const [row] = await this.#session.query<{ ref: unknown }>(keyHolders, JSON.stringify([{ name, key }]))
    return { holder: (await readStored(this.#session, [Number(row?.ref)])).get(Number(row?.ref))?.id }
  }

  readSlot(name: string, key: string): Promise<Slot<StoredJob> | undefined> {
    return readSlot(this.#session, name, key)
  }

  async takeSlot(job: StoredJob, key: string, until: number | null): Promise<void> {
    const values = [job.name, key, String(job.ref), job.id, textOf(until)] as const
    await this.#session.query(this.#session.queries.takeSlot, ...values)
  }
}

async function forgetLeases(session: Session, jobs: readonly StoredJob[]): Promise<void> {
  const refs = jobs.map((job) => job.ref)
  if (refs.length > 0) await session.query(session.queries.forgetLeases, arrayOf(refs))
}

/*
 * Commands that arrive at the same time, such as to all members of a group, share a transaction: a handful of
 * statements and one flush for hundreds of jobs.
 */

/** Limit of commands per transaction: other calls wait for the connection meanwhile. */
const TOGETHER_MAX = 500

/** Whether the command changes only this one job. */
function mayShare({ from, to, edit, due }: GuardedChange): boolean {
  return to !== 'gone' && edit === undefined && (due === undefined || isFinal(from))
}

/** A job whose row was deleted from its table, and its command. */
interface Target {
  readonly job: StoredJob
  readonly change: GuardedChange
  readonly to: State
}

/**
 * Applies those of many commands that need no lock of another process. Undefined for a command that must be applied
 * alone. Within a transaction.
 */
async function changeTogether(
  session: Session,
  changes: readonly GuardedChange[],
): Promise<readonly (Changed | undefined)[]> {
  const now = await session.now()
  const seen = await readManyById(
    session,
    changes.map((each) => each.id),
  )
  const targets = new Map<string, Target>()
  for (const each of changes) {
    const job = seen.get(each.id)
    if (job !== undefined && !targets.has(job.id) && isEasy(job, each))
      targets.set(job.id, { job, change: each, to: each.to as State })
  }
  const wanted = [...targets.values()].map(({ job }) => job)
  const taken = (await takeAllOut(session, wanted, 'skip')).map((job) => targets.get(job.id) as Target)
  await endAll(
    session,
    taken
      .filter(({ to }) => isFinal(to))
      .map(({ job, change: { keepMs, reason }, to }) => ({
        ...job,
        to: to as FinalState,
        keepMs,
        reason: reason ?? null,
        result: null,
      })),
  )
  const moved = await putAll(
    session,
    taken.filter(({ to }) => !isFinal(to)),
    now,
  )
  await countMoves(session)
  await auditAll(session, taken, moved)
  const done = new Set(taken.map(({ change: each }) => each))
  return changes.map((each) => (done.has(each) ? 'changed' : undefined))
}

/**
 * The job is in the state that the decision saw, no worker has claimed it, and it has no key or unique slot to take
 * again.
 */
function isEasy(job: StoredJob, { from, to }: GuardedChange): boolean {
  if (job.state !== from || job.claimed || to === 'gone') return false
  if (isFinal(from)) return job.key === null && readOptions(job.options).unique === undefined
  return isFinal(to) || isPausedOrRetried(from, to)
}

async function auditAll(
  session: Session,
  targets: readonly Target[],
  moved: readonly Moved<StoredJob>[],
): Promise<void> {
  const states = new Map(moved.map(({ job, state }) => [job.id, state]))
  const entries = targets.flatMap(({ job, change: each, to }) =>
    each.audit === undefined ? [] : entryOfChange(each, job, { job, state: states.get(job.id) ?? to }),
  )
  await awaitVerb(writeAudit(session, entries))
}

async function putAll(session: Session, targets: readonly Target[], now: number): Promise<readonly Moved<StoredJob>[]> {
  const jobs = targets.map(({ job }) => job)
  const blocked = await linkedAmong(
    session,
    jobs.filter((job) => job.state === 'paused'),
  )
  await forgetLeases(
    session,
    jobs.filter((job) => isFinal(job.state)),
  )
  const moved = targets.map(({ job, change: each, to }) =>
    pausedOrRetried(job, each, to, { now, isBlocked: blocked.has(job.ref) }),
  )
  await putIn(session, moved, now)
  return moved
}
