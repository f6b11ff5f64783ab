import type { JobRecord } from '../../src/job/record.js'
import type { Mill } from '../../src/mill/mill-type.js'
import { readSpec, writeSpec } from '../../src/schedule/spec.js'
import { nextAfter, timingOf } from '../../src/schedule/ticks.js'
import type { ScheduleStore } from '../../src/store/schedules.js'
import type { JobRow, Store } from '../../src/store/store.js'
import type { Mutant } from './mutants.js'

/** Schedules keep their old anchor after the clock was set. */
function notAnchored(): Mutant {
  const wrapStore = (right: Store): Store => {
    const { schedules } = right
    const putSchedule: ScheduleStore['putSchedule'] = async (row, revision) => {
      const { anchorAt, ...spec } = readSpec(row.spec)
      if (anchorAt === undefined) return schedules.putSchedule(row, revision)
      const { now } = await schedules.readSchedule(row.id)
      const nextAt = row.nextAt === null ? null : nextAfter(timingOf(spec, row.createdAt), now)
      return schedules.putSchedule({ ...row, spec: writeSpec(spec), nextAt }, revision)
    }
    return replaced(right, { schedules: replaced(schedules, { putSchedule }) })
  }
  return { name: 'every is not counted from now when the clock is set back', plants: { wrapStore } }
}

/** The client returns the times of the rows without clamping them. */
function notClamped(): Mutant {
  const rows = new Map<string, JobRow>()
  const wrapStore = (right: Store): Store => {
    const findJobs: Store['jobs']['findJobs'] = async (...given) => {
      const found = await right.jobs.findJobs(...given)
      for (const row of found.rows) rows.set(row.id, row)
      return found
    }
    return replaced(right, { findJobs })
  }
  const wrapMill = (right: Mill): Mill => replaced(right, { find: (filter) => unclamped(right.find(filter), rows) })
  return { name: 'the times of a record are not clamped', plants: { wrapStore, wrapMill } }
}

async function* unclamped(
  found: AsyncIterable<JobRecord>,
  rows: ReadonlyMap<string, JobRow>,
): AsyncIterableIterator<JobRecord> {
  const date = (ms: number | null | undefined): Date | undefined => (typeof ms === 'number' ? new Date(ms) : undefined)
  for await (const record of found) {
    const row = rows.get(record.id)
    yield { ...record, startedAt: date(row?.startedAt), settledAt: date(row?.settledAt) }
  }
}

function replaced<Whole extends object>(right: Whole, parts: Partial<Whole> | object): Whole {
  const proxy: Whole = new Proxy(right, {
    get(target, name) {
      if (Object.hasOwn(parts, name)) return Reflect.get(parts, name) as unknown
      if (name === 'jobs' || name === 'leases' || name === 'queues' || name === 'changes') return proxy
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
  })
  return proxy
}

export const CLOCK_MUTANTS: readonly Mutant[] = [notAnchored(), notClamped()]
