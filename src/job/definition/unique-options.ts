import type { Duration } from '../duration/duration.js'
import type { UniquePolicy, UniqueWhile } from '../rules/unique.js'

/** The unique options of a job with any payload type. */
export interface AnyUniqueOptions {
  readonly by?: string | readonly string[] | ((payload: never) => unknown) | undefined
  /**
   * A window that the first enqueue opens: until it ends, a second enqueue is a duplicate, also when the first job has finished.
   * With 'reschedule' it is the longest time that a job can be postponed. Infinity: for ever. Default: none.
   */
  readonly for?: Duration | number | undefined
  /**
   * Which jobs make a later one a duplicate: 'unfinished' jobs, or only 'waiting' ones, so that one more may wait while one runs.
   * Default: 'unfinished'; with 'reschedule' 'waiting'.
   */
  readonly while?: UniqueWhile | undefined
  /**
   * What to do with a duplicate: 'ignore' returns the first job's handle, 'reject' throws, 'replace' cancels the waiting job,
   * 'reschedule' gives the waiting job the new payload, options and time. Default: 'ignore'.
   */
  readonly onDuplicate?: UniquePolicy | undefined
}

/** Which jobs of one name are duplicates, for how long, and what to do with a duplicate. */
export interface UniqueOptions<Payload = never> extends AnyUniqueOptions {
  /**
   * The value that two duplicates share: a field of the payload (`'user'`, `'order.id'`), several fields, or a function of the
   * enqueued payload. Default: the whole payload.
   */
  readonly by?: FieldOf<Payload> | readonly FieldOf<Payload>[] | ((payload: Payload) => unknown) | undefined
}

/**
 * The fields that `by` may name: those of the payload, and paths with a dot into their objects. Of a union type only the fields that
 * all members have, since a missing field is refused. Any string when the payload's type is unknown, or is no object.
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

/** Merges the levels, most specific first, part by part; `false` hides every level below it. */
export function mergeUnique(levels: readonly (UniqueOptions | false | undefined)[]): UniqueOptions | undefined {
  const end = levels.indexOf(false)
  const visible = (end === -1 ? levels : levels.slice(0, end)).filter((level) => level !== undefined && level !== false)
  if (visible.length === 0) return undefined
  const pick = <Part extends keyof UniqueOptions>(part: Part): UniqueOptions[Part] =>
    visible.find((level) => level[part] !== undefined)?.[part]
  return { by: pick('by'), for: pick('for'), while: pick('while'), onDuplicate: pick('onDuplicate') }
}
