import type { Missed } from '../job/rules/missed.js'
import type { Encoded } from '../job/rules/outcome.js'
import type { Overlap } from '../job/rules/overlap.js'
import { readOptions, fromStoredValue, writeOptions } from '../job/definition/stored-options.js'
import type { StoredValue } from '../job/definition/stored-options.js'
import type { OnDuplicate, UniqueSlotRequest } from '../job/rules/unique.js'
import type { Due, NewJob } from '../store/store.js'

/** A recurring job as it was asked for; the store keeps it as one text. */
export interface ScheduleSpec {
  readonly job: JobTemplate
  /** As the calendar reads it. */
  readonly rule: string | { readonly every: number }
  readonly timezone: string
  readonly missed: Missed
  readonly overlap: Overlap
  readonly jitterMs: number
  readonly fromAt: number | null
  readonly untilAt: number | null
  /** Where `every` counts from since the clock was set back: see `continued` in ticks.ts. */
  readonly anchorAt?: number | undefined
}

/** What each tick's job is made from. */
export interface JobTemplate {
  readonly name: string
  readonly queue: string
  readonly priority: number
  readonly key: string | null
  readonly unique?: UniqueSlotRequest | undefined
  readonly group?: string | undefined
  readonly onDuplicate: OnDuplicate
  readonly payload: StoredValue
  readonly options: string | null
  /** So long after it was due it is called off, if it has not begun. */
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

/** What a schedule says of its times: two that say the same have the same ticks. */
export function timesOf({ rule, timezone, fromAt, untilAt }: ScheduleSpec): string {
  return JSON.stringify([rule, timezone, fromAt, untilAt])
}

/** JSON has no Infinity. */
const FOR_EVER = '\u221e'

export function templateOf(row: NewJob, onDuplicate: OnDuplicate, expiresMs: number | null): JobTemplate {
  const { name, queue, priority, key, unique, group, options, after, onParentFailure } = row
  const payload = writtenOf(row.payload)
  return { name, queue, priority, key, unique, group, onDuplicate, payload, options, expiresMs, after, onParentFailure }
}

function writtenOf(payload: Encoded): StoredValue {
  return typeof payload === 'string' ? { text: payload } : { base64: Buffer.from(payload).toString('base64') }
}

/** The job of one tick. It knows which: that is stored with it. */
export function jobOf(template: JobTemplate, id: string, tick: { schedule: string; at: number }, due: Due): NewJob {
  const { name, queue, priority, key, unique, group, expiresMs, after, onParentFailure } = template
  return {
    id,
    name,
    queue,
    priority,
    key,
    unique,
    group,
    payload: fromStoredValue(template.payload),
    options: writeOptions({ ...readOptions(template.options), tick }),
    due,
    after,
    onParentFailure,
    expires: expiresMs === null ? null : 'at' in due ? { at: due.at + expiresMs } : { inMs: due.inMs + expiresMs },
  }
}
