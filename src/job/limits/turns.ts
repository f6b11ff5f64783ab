/*
 * The ready jobs of one lane whose definition has a key (a tenant) are in the lane of their turn, not in the lane
 * itself: a number made of both. So the ready jobs of one key are one range of the index that claims read, a claim that
 * knows nothing of limits does not see them, and a claim under limits steps from key to key, one job of each.
 *
 * A key is a number of 32 bits, its hash. Two keys with the same hash share one turn and one limit: together they may get
 * less than each would alone, and never more.
 */

/** How many keys a lane can have. Lanes are small numbers, so that a turn is below 2^53. */
export const TURN_SPAN = 2 ** 32

/** What an enqueue stores of the limit and the rate of its job. */
export interface JobTurn {
  /** The number of its key: that of the limit, else that of the rate. */
  readonly limit: number | null
  /** The number of the rate's key, where limit and rate have different keys. */
  readonly rate: number | null
  /** What a start uses of the rate; null: 1. */
  readonly weight: number | null
}

/** The lane of a turn; of a job without a key, the lane itself. */
export function laneOfTurn(lane: number, key: number | null): number {
  return key === null ? lane : -(lane * TURN_SPAN + key)
}

/** The key of a turn; null for the lane itself. */
export function keyOfTurn(turn: number): number | null {
  return turn < 0 ? -turn % TURN_SPAN : null
}

/** The lowest and the highest turn of a lane. */
export function turnsOfLane(lane: number): { readonly first: number; readonly last: number } {
  return { first: laneOfTurn(lane, TURN_SPAN - 1), last: laneOfTurn(lane, 0) }
}

/** The hash of a key: FNV-1a over its UTF-16 units, then mixed, since similar keys must not be neighbours only. */
export function keyNumber(key: string): number {
  let hash = 0x811c9dc5
  for (let i = 0; i < key.length; i += 1) {
    const unit = key.charCodeAt(i)
    hash = Math.imul(hash ^ (unit & 0xff), 0x01000193)
    hash = Math.imul(hash ^ (unit >>> 8), 0x01000193)
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) >>> 0
}
