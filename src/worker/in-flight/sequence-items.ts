import type { Codec } from '../../codec/codec.js'
import { LeaseLostError } from '../../errors.js'
import type { Outcome } from '../../job/rules/outcome.js'
import { itemAddress } from '../../job/rules/sequence.js'
import type { Appended, AppendedStep, Boundary, ClaimedSequence, NewStep, StepNote } from '../../store/sequences.js'
import type { ClaimedJob } from '../../store/store.js'
import type { Running } from '../attempt/running.js'
import type { InFlightParts } from './in-flight-parts.js'
import type { SettledRun } from './outbox.js'

/*
 * A claimed sequence runs one item after the other under the same claim. Each item is an attempt of its own (`Running`),
 * so that time-outs, retries, the log and `ctx` hold for it as for a job. When an item has ended well, its row is
 * appended to the log and the claim goes on; every other end, and the end of the last item, is a settlement of the job
 * that writes the item's row in the same transaction.
 *
 *     claim ─► item n ─► append row n ─► item n + 1 ─► … ─► last item ─► settlement with its row
 *                 │            │
 *                 │            └─► a request, a paused queue, a stop, its second is over: the job is given back
 *                 └─► fails: settlement with the item's open row, which has its attempts
 */

/** The claimed job as the attempt of its next item sees it; undefined when the item is missing. */
export function itemOf(job: ClaimedJob): ClaimedJob | undefined {
  const payload = job.sequence?.items[0]
  if (job.sequence === undefined || payload === undefined) return undefined
  const { attempt } = job.sequence
  return { ...job, payload, attempt, retries: attempt }
}

/** The outcome of a claimed sequence without a next item. It is done when it has no items, which a reset and a start leave ready. */
export function outcomeWithoutItem({ sequence }: ClaimedJob, codec: Codec): Outcome {
  if (sequence !== undefined && sequence.index >= sequence.total)
    return { kind: 'succeeded', result: codec.encode({ done: sequence.total, total: sequence.total }) }
  return {
    kind: 'unreadable',
    error: { name: 'Error', message: 'the next item of the sequence is missing in the store' },
  }
}

export function isLastItem({ index, total }: ClaimedSequence): boolean {
  return index + 1 >= total
}

/** Whether the claim goes on after this end of an item: it is recorded, or its own transaction has recorded it. */
export function goesOn(running: Running, outcome: Outcome): boolean {
  const { sequence } = running.claimed
  if (sequence === undefined || isLastItem(sequence) || running.settled) return false
  if (running.abortReason instanceof LeaseLostError) return false
  return outcome.kind === 'succeeded' || running.isCommitted
}

/** The settlement of a sequence's attempt: with the row of its item, and the result of the whole after the last one. */
export function settleItem(
  settled: SettledRun,
  sequence: ClaimedSequence,
  outcome: Outcome,
  ended: {
    readonly codec: Codec
    readonly endedAt: number
    readonly lines: readonly string[] | undefined
    readonly endsStreak: boolean
  },
): SettledRun {
  const step = stepOf(settled, sequence, outcome, ended)
  if (step === undefined) return settled
  if (step.no === null) return { ...settled, step }
  if (!isLastItem(sequence)) return { ...settled, step, claimGoesOn: true, endsStreak: ended.endsStreak }
  const { total } = sequence
  return { ...settled, reason: null, result: ended.codec.encode({ done: total, total }), step }
}

function stepOf(
  settled: SettledRun,
  { run, index }: ClaimedSequence,
  outcome: Outcome,
  { endedAt, lines }: { readonly endedAt: number; readonly lines: readonly string[] | undefined },
): NewStep | undefined {
  const { attempt, startedAt, error } = settled
  const row = { run, address: itemAddress(index), kind: 'item', attempt, startedAt: startedAt ?? endedAt, endedAt }
  if (outcome.kind === 'succeeded')
    return { ...row, no: index, value: outcome.result, error: null, note: noteOf({ log: lines, why: outcome.note }) }
  // The attempts of an item are counted in its open row: they hold after a crash, and the next item begins at 0.
  if (outcome.kind === 'failed' || outcome.kind === 'aborted')
    return { ...row, no: null, value: null, error, note: null }
  return undefined
}

function noteOf(note: StepNote): string | null {
  return note.log === undefined && note.why === undefined ? null : JSON.stringify(note)
}

/** The claim after an item is recorded: at the next item, with none of its attempts made. */
export function nextItem(
  job: ClaimedJob,
  sequence: ClaimedSequence,
  recorded: NewStep,
  appended: Appended,
): ClaimedJob {
  const items = [...sequence.items.slice(1), ...appended.items]
  const next = { ...sequence, index: sequence.index + 1, attempt: 0, previous: recorded.value, items }
  return { ...job, attempt: 0, retries: 0, crashes: 0, streak: 0, sequence: next }
}

/** The wait before a row that could not be written is tried again, doubled up to the longest. */
const RETRY_FIRST_MS = 50
const RETRY_MAX_MS = 2_000
/** How often the boundary is read again when its answer came too late to begin an item. */
const BOUNDARY_TRIES = 3

/** Appends the rows of items, and says whether the next one may begin. */
export class ItemLog {
  readonly #parts: Pick<InFlightParts, 'store' | 'world' | 'events'>

  constructor(parts: Pick<InFlightParts, 'store' | 'world' | 'events'>) {
    this.#parts = parts
  }

  /** Writes until the store has answered, however often it fails; undefined when `isOver` says that it is not needed. */
  async append(step: AppendedStep, isOver: () => boolean): Promise<FreshlyAppended | undefined> {
    const { store, world, events } = this.#parts
    for (let waitMs = RETRY_FIRST_MS; !isOver(); waitMs = Math.min(RETRY_MAX_MS, waitMs * 2)) {
      const sentAt = world.clock.monotonic()
      try {
        return await this.#fresh(step, await store.leases.appendStep(step), sentAt)
      } catch (error) {
        events.storeFailed('record an item', error)
        await new Promise<void>((next) => world.timers.after(waitMs, next))
      }
    }
    return undefined
  }

  /**
   * A pause resolves after twice `heldUnconfirmedMs`, and no item may begin after that: an answer that is older than that
   * is read again.
   */
  async #fresh({ ref, fence, queue }: AppendedStep, appended: Appended, sentAt: number): Promise<FreshlyAppended> {
    const { store, world } = this.#parts
    const isLate = (since: number): boolean => world.clock.monotonic() - since > store.info.heldUnconfirmedMs
    let [boundary, since]: [Boundary, number] = [appended, sentAt]
    for (let tries = 0; boundary.held && isLate(since) && tries < BOUNDARY_TRIES; tries += 1) {
      since = world.clock.monotonic()
      boundary = await store.leases.readBoundary({ ref, fence, queue })
    }
    return { ...appended, ...boundary, isLate: isLate(since) }
  }
}

export interface FreshlyAppended extends Appended {
  /** The answer is too old to begin an item. */
  readonly isLate: boolean
}
