import type { Missed } from '../job/rules/missed.js'
import type { Encoded } from '../job/rules/outcome.js'
import type { Overlap } from '../job/rules/overlap.js'
import { readOptions, fromStoredValue, writeOptions } from '../job/definition/stored-options.js'
import type { StoredValue } from '../job/definition/stored-options.js'
import type { OnDuplicate, UniqueSlotRequest } from '../job/rules/unique.js'
import type { Due, NewJob } from '../store/store.js'

/** The specification of a recurring job; the store keeps it as one text. */
export interface ScheduleSpec {
  readonly job: JobTemplate
  /** In the form that the calendar parses. */
  readonly rule: string | { readonly every: number }
  readonly timezone: string
  readonly missed: Missed
  readonly overlap: Overlap
  readonly jitterMs: number
  readonly fromAt: number | null
  readonly untilAt: number | null
  /** The instant from which `every` counts since the clock was set back: see `continued` in ticks.ts. */
  readonly anchorAt?: number | undefined
}

/** The template of the job of each tick. */
export interface JobTemplate {
  readonly name: string
  readonly queue: string
  readonly priority: number
  readonly key: string | null
  readonly unique?: UniqueSlotRequest | undefined
  readonly group?: string | undefined
  readonly turn?: NewJob['turn']
  readonly onDuplicate: OnDuplicate
  readonly payload: StoredValue
  readonly options: string | null
  /** The job is cancelled if it has not begun this long after it was due. */
  readonly expiresMs: number | null
  readonly after?: NewJob['after']
  readonly onParentFailure?: NewJob['onParentFailure']
}

export function writeSpec(spec: ScheduleSpec): string {
  return JSON.stringify(spec, (_, value: unknown) => (value === Infinity ? FOR_EVER : value))
}

export function readSpec(text: string): ScheduleSpec {
  return JSON.parse(text, (key, value: unknown) =>
    key === 'forMs' && value === FOR_EVER ? Infinity : value,
  ) as ScheduleSpec
}

/** The times of a schedule as a text: schedules with the same text have the same ticks. */
export function timesOf({ rule, timezone, fromAt, untilAt }: ScheduleSpec): string {
  return JSON.stringify([rule, timezone, fromAt, untilAt])
}

/** JSON has no Infinity. */
const FOR_EVER = '\u221e'

export function templateOf(row: NewJob, onDuplicate: OnDuplicate, expiresMs: number | null): JobTemplate {
  const { name, queue, priority, key, unique, group, turn, options, after, onParentFailure } = row
  const payload = writtenOf(row.payload)
  return {
    name,
    queue,
    priority,
    key,
    unique,
    group,
    turn,
    onDuplicate,
    payload,
    options,
    expiresMs,
    after,
    onParentFailure,
  }
}

function writtenOf(payload: Encoded): StoredValue {
  return typeof payload === 'string' ? { text: payload } : { base64: Buffer.from(payload).toString('base64') }
}

/** The job of one tick, which is stored with the job. */
export function jobOf(template: JobTemplate, id: string, tick: { schedule: string; at: number }, due: Due): NewJob {
  const { name, queue, priority, key, unique, group, turn, expiresMs, after, onParentFailure } = template
  return {
    id,
    name,
    queue,
    priority,
    key,
    unique,
    group,
    turn,
    payload: fromStoredValue(template.payload),
    options: writeOptions({ ...readOptions(template.options), tick }),
    due,
    after,
    onParentFailure,
    expires: expiresMs === null ? null : 'at' in due ? { at: due.at + expiresMs } : { inMs: due.inMs + expiresMs },
  }
}
