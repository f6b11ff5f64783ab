import type { Duration } from '../duration/duration.js'
import type { UniquePolicy, UniqueWhile } from '../rules/unique.js'

/** How jobs of one name are told to be the same, whatever their payload. */
export interface AnyUniqueOptions {
  readonly by?: string | readonly string[] | ((payload: never) => unknown) | undefined
  /**
   * A window that the first enqueue opens: until it is over a second one is a duplicate, also when the first has finished.
   * With 'reschedule' it is the longest that a job can be put off. Infinity: for ever. Default: none.
   */
  readonly for?: Duration | number | undefined
  /**
   * Which jobs stand in the way: those that are 'unfinished', or only those that are 'waiting', so that one more may wait behind
   * one that runs. Default: 'unfinished'; with 'reschedule' 'waiting'.
   */
  readonly while?: UniqueWhile | undefined
  /**
   * What becomes of a second one: 'ignore' gives the first one's handle, 'reject' throws, 'replace' cancels the one that waits,
   * 'reschedule' gives the one that waits the new payload, options and time. Default: 'ignore'.
   */
  readonly onDuplicate?: UniquePolicy | undefined
}

/** How jobs of one name are told to be the same, for how long, and what becomes of the second one. */
export interface UniqueOptions<Payload = never> extends AnyUniqueOptions {
  /**
   * What makes two jobs the same: a field of the payload (`'user'`, `'order.id'`), several, or a function of the payload as it
   * was given. Default: the whole payload.
   */
  readonly by?: FieldOf<Payload> | readonly FieldOf<Payload>[] | ((payload: Payload) => unknown) | undefined
}

/**
 * The fields that `by` may name: those of the payload, and with a dot what is within one of them. Of a union they are those that
 * all have, since a missing field is refused. Any text where the payload's type is not known, or is no object.
 */
export type FieldOf<Payload> = [Payload] extends [never]
  ? string
  : unknown extends Payload
    ? string
    : Payload extends object
      ? FieldIn<Payload> & string
      : string

type FieldIn<Payload> = {
  [Key in keyof Payload & string]-?: Key | (HoldsFields<Payload[Key]> extends true ? `${Key}.${string}` : never)
}[keyof Payload & string]

type HoldsFields<Value> = unknown extends Value ? true : [Extract<Value, object>] extends [never] ? false : true

/** The levels laid over each other, most specific first, part by part; `false` ends what it stands over. */
export function mergeUnique(levels: readonly (UniqueOptions | false | undefined)[]): UniqueOptions | undefined {
  const end = levels.indexOf(false)
  const said = (end === -1 ? levels : levels.slice(0, end)).filter((level) => level !== undefined && level !== false)
  if (said.length === 0) return undefined
  const pick = <Part extends keyof UniqueOptions>(part: Part): UniqueOptions[Part] =>
    said.find((level) => level[part] !== undefined)?.[part]
  return { by: pick('by'), for: pick('for'), while: pick('while'), onDuplicate: pick('onDuplicate') }
}
