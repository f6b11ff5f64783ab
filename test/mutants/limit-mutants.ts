import { statements, verbs } from './mutants.js'
import type { Mutant } from './mutants.js'

/** Planted bugs of limits, rates, turns and outages. */
export const LIMIT_MUTANTS: readonly Mutant[] = [
  statements('a slot is not freed by a rescue', {
    slotsInUse: ['cross join millrace_live l on l.seq = s.seq and l.fence = s.fence', ''],
    dropSlots: ['where not exists', 'where false and not exists'],
  }),
  statements('slots of other claims are not counted', {
    slotsInUse: ['on s.bucket = e.value', 'on s.bucket = e.value and false'],
  }),
  statements('a window ends before its time, as by the clock of a worker', {
    windowsInUse: ['where w.until > ?', 'where w.until > ? + 600'],
  }),
  statements('no turn is remembered', { putTurn: ['values (?, ?)', 'select ?, ? where false'] }),
  verbs('a lane is probed at every promotion', (right) => ({
    promoteJobs: (limit: number, probe?: { readonly everyMs: number; readonly pick: number }) =>
      right.jobs.promoteJobs(limit, { pick: probe?.pick ?? 0, everyMs: 0 }),
  })),
  statements('retries are not held', { holdRetries: ['and l.due_at <= ?', 'and l.due_at <= ? and false'] }),
  statements('held retries are never released', { releaseHeld: ['where held = ?', 'where held = ? and false'] }),
]
