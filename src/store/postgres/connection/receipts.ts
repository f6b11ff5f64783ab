import { ClosedError, OutcomeUnknownError, StoreError } from '../../../errors.js'
import type { World } from '../../../world/world.js'
import type { Connection } from './connection.js'
import { ReplyLostError } from './faults.js'
import type { Queries } from '../queries/queries.js'
import { RECEIPT_KEEP_MS } from '../queries/receipts.js'

/*
 * A connection can be lost after a statement or a COMMIT was sent and before its reply came. The caller then does not
 * know whether the write happened, and a second one could write twice. So every call that writes for a caller has a receipt:
 * a row with a random id, written in the transaction of the call.
 *
 *   reply came   the receipt is no longer needed, and is deleted later, together with others
 *   reply lost   the caller gets OutcomeUnknownError; its retry() inserts a void receipt with the same id:
 *                - conflict with a row that is not void: the call was written; its answer is in the row
 *                - conflict with a row of an open transaction: the insert waits until that one ends
 *                - no conflict: the call was not written, and can no longer be, since its own receipt would now
 *                  conflict; it is written again with a new id
 *
 * The rows of jobs cannot serve as receipts: a job may have run and been pruned, and ids are not unique over
 * partitions. docs/decisions/unknown-outcomes.md has the rest.
 */

/** Receipts of calls whose reply came are deleted in batches of this size. */
const DROP_AT = 100
/** A retry relies on a receipt for a little less time than it is kept. */
const LATEST_MS = RECEIPT_KEEP_MS - 600_000
/** Receipts that one step of the sweep reads, and the least time between two steps. */
const SWEEP = 1_000
const SWEEP_EVERY_MS = 60_000
const FIRST_ID = '00000000-0000-0000-0000-000000000000'

/** A call that writes, and how its answer is read from its receipt. */
export interface Call<T> {
  /** The jobs that it writes or changes. */
  readonly ids: readonly string[]
  /** Writes with a new receipt, whose id a ReplyLostError carries. */
  readonly write: (isAgain: boolean) => Promise<T>
  /** The answer that a receipt holds. Undefined: the shared write left this call out, so it must still be written. */
  readonly read: (answer: string | null, index: number) => T | undefined
}

export class Receipts {
  readonly #writes: Connection
  readonly #work: Connection
  readonly #queries: Queries
  readonly #world: World
  readonly #name: string
  #spent: string[] = []
  #sweptTo = FIRST_ID
  #sweepAt = 0

  constructor(
    connections: { readonly writes: Connection; readonly work: Connection },
    queries: Queries,
    world: World,
    name: string,
  ) {
    this.#writes = connections.writes
    this.#work = connections.work
    this.#queries = queries
    this.#world = world
    this.#name = name
  }

  /** Runs a write that inserts the receipt with this id. */
  async withReceipt<T>(write: (receipt: string) => Promise<T>): Promise<T> {
    const receipt = this.#world.ids.jobId(this.#world.clock.now())
    try {
      const result = await write(receipt)
      this.#drop(receipt)
      return result
    } catch (error) {
      throw error instanceof ReplyLostError ? error.withReceipt(receipt) : error
    }
  }

  /** Runs a call; a lost reply is thrown as OutcomeUnknownError. */
  async withKnownOutcome<T>(call: Call<T>, isAgain = false): Promise<T> {
    try {
      return await call.write(isAgain)
    } catch (error) {
      throw error instanceof ReplyLostError && error.receipt !== undefined
        ? this.#unknown(call, error, this.#world.clock.monotonic())
        : error
    }
  }

  #unknown<T>(call: Call<T>, lost: ReplyLostError, lostAt: number, cause: unknown = lost.cause): OutcomeUnknownError {
    const message =
      `${this.#name}: the connection was lost after the write was sent and before its reply came, so it may or may not have been ` +
      'written; call error.retry(): it finds out, writes what is missing, and writes nothing twice'
    return new OutcomeUnknownError(message, call.ids, () => this.#retry(call, lost, lostAt), { cause })
  }

  async #retry<T>(call: Call<T>, lost: ReplyLostError, lostAt: number): Promise<T> {
    if (this.#world.clock.monotonic() - lostAt > LATEST_MS)
      throw new OutcomeUnknownError(
        `${this.#name}: the receipt of this write is kept for an hour and may be deleted, so it can no longer be known whether it was written; look for its effect`,
        call.ids,
        () => this.#retry(call, lost, lostAt),
        { cause: lost.cause },
      )
    const receipt = lost.receipt as string
    const fate = await this.#fateOf(receipt).catch((error: unknown) => {
      // The store cannot be read now: the outcome is still unknown.
      const isStill = error instanceof StoreError && !(error instanceof ClosedError)
      throw isStill ? this.#unknown(call, lost, lostAt, error) : error
    })
    const answer = fate === 'void' ? undefined : call.read(fate.answer, lost.index)
    return answer ?? this.withKnownOutcome(call, true)
  }

  async #fateOf(receipt: string): Promise<'void' | { readonly answer: string | null }> {
    for (;;) {
      const made = await this.#writes.query(this.#queries.voidReceipt, [receipt])
      if (made.length > 0) return 'void'
      const [row] = await this.#writes.query<{ isVoid: boolean; answer: string | null }>(this.#queries.readReceipt, [
        receipt,
      ])
      if (row !== undefined) return row.isVoid ? 'void' : { answer: row.answer }
    }
  }

  /** Deletes the receipts that crashed processes and lost connections left, one step at a time, once a minute. */
  async sweep(): Promise<void> {
    const now = this.#world.clock.monotonic()
    if (now < this.#sweepAt) return
    this.#sweepAt = now + SWEEP_EVERY_MS
    const [row] = await this.#work.query<{ scanned: number; last: string | null }>(this.#queries.sweepReceipts, [
      this.#sweptTo,
      String(SWEEP),
    ])
    const isMore = row !== undefined && row.last !== null && Number(row.scanned) === SWEEP
    this.#sweptTo = isMore ? (row.last as string) : FIRST_ID
    if (isMore) this.#sweepAt = now
  }

  /** On the connection that does not flush: if a crash undoes the delete, the sweep deletes the receipt. */
  #drop(receipt: string): void {
    this.#spent.push(receipt)
    if (this.#spent.length < DROP_AT) return
    const spent = this.#spent
    this.#spent = []
    void this.#work.query(this.#queries.dropReceipts, [`{${spent.join(',')}}`]).catch(() => undefined)
  }
}
