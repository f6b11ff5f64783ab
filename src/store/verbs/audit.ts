import type { State } from '../../job/rules/states.js'
import { numberOf } from '../rows/columns.js'
import type { Numeric } from '../rows/columns.js'
import { AUDIT_TRIM } from '../observing/audit.js'
import type { AuditNote } from '../../job/command-options.js'
import type { AuditEntry, AuditPage, AuditQuery, AuditRow } from '../observing/audit.js'
import type { GuardedChange, Inserted, JobRow } from '../store.js'
import { awaited } from './verb.js'
import type { Verb, VerbSession } from './verb.js'

/** Writes rows of the audit trail in the transaction of the command, and deletes some whose time is over. */
export function* writeAudit(session: VerbSession, entries: readonly AuditEntry[]): Verb<void> {
  if (entries.length === 0) return
  const rows = entries.map((entry) => ({
    ...Object.fromEntries(TEXTS.map((name) => [name, session.storable(entry[name])])),
    count: entry.count,
    keep: Number.isFinite(entry.keepMs) ? Math.ceil(entry.keepMs) : null,
  }))
  yield* awaited(session.run('addAudit', session.givenNow, JSON.stringify(rows)))
  yield* awaited(session.run('trimAudit', session.givenNow, AUDIT_TRIM))
}

const TEXTS = ['actor', 'role', 'verb', 'target', 'before', 'after', 'reason'] as const

/** The row of a command on one target; none without an actor. */
export function entryOf(
  note: AuditNote | undefined,
  target: string,
  before: string | null,
  after: string | null,
): readonly AuditEntry[] {
  return note === undefined ? [] : [{ ...note, target, count: 1, before, after }]
}

/** The rows of an insert. A job that was there before has one too, with a count of 0. */
export function entriesOfInsert(note: AuditNote | undefined, inserted: readonly Inserted[]): readonly AuditEntry[] {
  return inserted.flatMap(({ id, isNew }) =>
    entryOf(note, `job ${id}`, null, null).map((entry) => ({ ...entry, count: isNew ? 1 : 0 })),
  )
}

/** The row of a command that changed a job. `after`: the job as it was written; undefined when it was deleted. */
export function entryOfChange(
  { id, edit, audit, due }: GuardedChange,
  before: JobRow,
  after: { readonly job: JobRow; readonly state: State } | undefined,
): readonly AuditEntry[] {
  const target = `job ${id}`
  if (after === undefined) return entryOf(audit, target, before.state, 'deleted')
  if (edit === undefined) return entryOf(audit, target, before.state, after.state)
  const moved = due === undefined ? [] : [['due', iso(before.dueAt), iso(after.job.dueAt)] as const]
  const fields = [
    ['priority', before.priority, after.job.priority] as const,
    ['queue', before.queue, after.job.queue] as const,
    ...moved,
  ].filter(([, was, is]) => was !== is)
  const show = (state: State, index: 1 | 2): string =>
    [state, ...fields.map((field) => `${field[0]} ${field[index]}`)].join(', ')
  const payload = edit.payload === undefined ? '' : ', new payload'
  return entryOf(audit, target, show(before.state, 1), show(after.state, 2) + payload)
}

export function iso(at: number): string {
  return new Date(at).toISOString()
}

export function* readAudit(session: VerbSession, query: AuditQuery): Verb<AuditPage> {
  const { actor = null, verb = null, target = null, since = null, limit, cursor } = query
  const given = JSON.stringify({ actor, verb, target, since, cursor })
  // One more than the page shows whether there is another page.
  const rows = yield* awaited(session.rows<StoredAudit>('readAudit', session.givenNow, given, limit + 1))
  const page = rows.slice(0, limit).map(toAuditRow)
  return { rows: page, cursor: rows.length > limit ? (page.at(-1)?.number ?? null) : null }
}

interface StoredAudit extends Omit<AuditRow, 'number' | 'at' | 'count'> {
  readonly number: Numeric
  readonly at: Numeric
  readonly count: Numeric
}

function toAuditRow(row: StoredAudit): AuditRow {
  return { ...row, number: numberOf(row.number), at: numberOf(row.at), count: numberOf(row.count) }
}
