import { hasNoParentOrGroup } from '../../conflicts.js'
import type { InsertOptions, Inserted, NewJob } from '../../store.js'
import { WriteBatcher } from '../connection/write-batcher.js'
import type { Call } from '../connection/receipts.js'
import type { Session, VerbParts } from '../connection/session.js'
import { isLocked, LOCK_PATIENCE_MS } from '../connection/while-locked.js'
import { PostgresConflicts, tryLockNames } from './conflicts.js'
import type { InsertCall } from './conflicts.js'
import { countMoves } from './groups.js'
import { insertJobs } from './insert.js'
import { linkSuccessors } from './links.js'

/** The largest number of calls that share a transaction. */
const CALLS_MAX = 500
/** How often a call whose name is locked joins a shared transaction before it waits for the lock alone. */
const SHARED_TRIES = 3

/** A call's answer from a shared transaction. Locked: another transaction holds its name. Null: it was refused. */
type SharedAnswer = Inserted | 'locked' | null

/**
 * Enqueues of one job with a key or a unique slot: calls that arrive while a transaction is in flight share the next
 * one, and so one flush. No call waits for the lock of another: the shared transaction leaves out the calls whose
 * names are locked, and those that are refused; each of these then has a transaction of its own.
 */
export class KeyedInserts {
  readonly #parts: VerbParts
  readonly #batcher: WriteBatcher<InsertCall, SharedAnswer>

  constructor(parts: VerbParts) {
    this.#parts = parts
    this.#batcher = new WriteBatcher({ write: (calls) => this.#together(calls), weigh: () => 1, max: CALLS_MAX })
  }

  /** Undefined: this insert is not of that kind. */
  callFor(jobs: readonly NewJob[], options: InsertOptions): Call<readonly Inserted[]> | undefined {
    const [job] = jobs
    if (job === undefined || jobs.length > 1 || !hasNoParentOrGroup(job)) return undefined
    if (options.claim !== undefined || options.audit !== undefined) return undefined
    const call = { job, options }
    return {
      ids: [job.id],
      write: async (isAgain) => {
        const answer = isAgain ? null : await this.#share(call)
        return [answer === null || answer === 'locked' ? await this.#inOwnTransaction(call, LOCK_PATIENCE_MS) : answer]
      },
      read: (answer, index) => {
        const shared = (JSON.parse(answer as string) as SharedAnswer[])[index] ?? null
        return shared === null || shared === 'locked' ? undefined : [shared]
      },
    }
  }

  async #share(call: InsertCall): Promise<SharedAnswer> {
    let answer: SharedAnswer = 'locked'
    for (let tries = 0; answer === 'locked' && tries < SHARED_TRIES; tries += 1) answer = await this.#batcher.add(call)
    return answer
  }

  async #together(calls: readonly InsertCall[]): Promise<readonly SharedAnswer[]> {
    const [only] = calls
    try {
      if (only !== undefined && calls.length === 1) return [await this.#inOwnTransaction(only, 0)]
      const { lanes, withReceipts } = this.#parts
      const write = (session: Session): Promise<SharedAnswer[]> => insertTogether(session, calls)
      return await lanes.ensureLanes(
        calls.map(({ job }) => job),
        () => withReceipts.transactWithReceipt(write, (answers) => answers, 0),
      )
    } catch (error) {
      // A job that holds a key or a slot is locked: each call waits for it alone.
      if (isLocked(error)) return calls.map(() => null)
      throw error
    }
  }

  #inOwnTransaction({ job, options }: InsertCall, patienceMs: number): Promise<Inserted> {
    const { lanes, withReceipts } = this.#parts
    const write = async (session: Session): Promise<Inserted> => {
      const [inserted] = await insertJobs(session, [job], options)
      return answerOf(inserted as Inserted)
    }
    return lanes.ensureLanes([job], () => withReceipts.transactWithReceipt(write, (inserted) => [inserted], patienceMs))
  }
}

/** What the caller and the receipt get; an insert also returns the whole row of a job that it follows. */
function answerOf({ id, isNew }: Inserted): Inserted {
  return { id, isNew }
}

async function insertTogether(session: Session, calls: readonly InsertCall[]): Promise<SharedAnswer[]> {
  const writable = await tryLockNames(
    session,
    calls.map(({ job }) => job),
  )
  const shared = calls.filter(({ job }) => writable.has(job))
  const results = await new PostgresConflicts(session, await session.now()).insertCalls(shared)
  const inserted = results.filter((result) => result !== undefined)
  await linkSuccessors(session, inserted)
  await countMoves(session)
  const answers = new Map<InsertCall, SharedAnswer>(
    results.map((result, index) => [shared[index] as InsertCall, result === undefined ? null : answerOf(result)]),
  )
  return calls.map((call) => answers.get(call) ?? (writable.has(call.job) ? null : 'locked'))
}
