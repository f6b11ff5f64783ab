import { ClosedError, OutcomeUnknownError, StoreError } from '../../../errors.js'
import type { World } from '../../../world/world.js'
import type { Connection } from './connection.js'
import { ReplyLostError } from './faults.js'
import type { Queries } from '../queries/queries.js'
import { RECEIPT_KEEP_MS } from '../queries/receipts.js'

/*
 * A connection can be lost after a statement or a COMMIT was sent and before its reply came. Then the caller does not know
 * whether the write happened, and to repeat it could be to write twice. So every call that writes for a caller has a receipt:
 * a row with a random id, written in the transaction of the call.
 *
 *   reply came   the receipt is of no more use, and is deleted later, with others
 *   reply lost   the caller gets OutcomeUnknownError; its retry() inserts a void receipt under the same id:
 *                - conflict with a row that is not void: the call was written; its answer is in the row
 *                - conflict with a row of a transaction that has not ended: the insert waits for its end
 *                - no conflict: the call was not written, and cannot be any more, since its own receipt would now
 *                  conflict; it is written again under a new id
 *
 * The rows of jobs cannot serve as receipts: a job may have run and been removed, and ids are not unique over partitions.
 * docs/decisions/unknown-outcomes.md has the rest.
 */

/** Receipts of calls whose reply came are deleted so many at a time. */
const DROP_AT = 100
/** A receipt is looked for a while less than it is kept. */
const LATEST_MS = RECEIPT_KEEP_MS - 600_000
/** Receipts that one step of the sweep looks at, and the least time between two steps. */
const SWEEP = 1_000
const SWEEP_EVERY_MS = 60_000
const FIRST_ID = '00000000-0000-0000-0000-000000000000'

/** A call that writes, and how it is answered from its receipt. */
export interface Call<T> {
  /** The jobs that it writes or changes. */
  readonly ids: readonly string[]
  /** Writes under a new receipt, which a ReplyLostError names. */
  readonly write: (isAgain: boolean) => Promise<T>
  /** The answer that a receipt holds; undefined: the write of several calls left this one out, and it is to be written. */
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

  /** Does a write that puts this id among the receipts. */
  async under<T>(write: (receipt: string) => Promise<T>): Promise<T> {
    const receipt = this.#world.ids.jobId(this.#world.clock.now())
    try {
      const result = await write(receipt)
      this.#drop(receipt)
      return result
    } catch (error) {
      throw error instanceof ReplyLostError ? error.under(receipt) : error
    }
  }

  /** Makes a call; a lost reply is reported as OutcomeUnknownError. */
  async known<T>(call: Call<T>, isAgain = false): Promise<T> {
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
        `${this.#name}: the receipt of this write is kept for an hour and may be gone, so it can no longer be known whether it was written; look for its effect`,
        call.ids,
        () => this.#retry(call, lost, lostAt),
        { cause: lost.cause },
      )
    const receipt = lost.receipt as string
    const fate = await this.#fateOf(receipt).catch((error: unknown) => {
      // The store cannot tell now: still unknown.
      const isStill = error instanceof StoreError && !(error instanceof ClosedError)
      throw isStill ? this.#unknown(call, lost, lostAt, error) : error
    })
    const answer = fate === 'void' ? undefined : call.read(fate.answer, lost.index)
    return answer ?? this.known(call, true)
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

  /** Deletes what crashed processes and lost connections left, a step at a time, once a minute. */
  async sweep(): Promise<void> {
    const now = this.#world.clock.monotonic()
    if (now < this.#sweepAt) return
    this.#sweepAt = now + SWEEP_EVERY_MS
    const [row] = await this.#work.query<{ looked: number; last: string | null }>(this.#queries.sweepReceipts, [
      this.#sweptTo,
      String(SWEEP),
    ])
    const isMore = row !== undefined && row.last !== null && Number(row.looked) === SWEEP
    this.#sweptTo = isMore ? (row.last as string) : FIRST_ID
    if (isMore) this.#sweepAt = now
  }

  /** By the connection that does not flush: a receipt that comes back with a crash is swept. */
  #drop(receipt: string): void {
    this.#spent.push(receipt)
    if (this.#spent.length < DROP_AT) return
    const spent = this.#spent
    this.#spent = []
    void this.#work.query(this.#queries.dropReceipts, [`{${spent.join(',')}}`]).catch(() => undefined)
  }
}
