import type { JobRow } from '../../store.js'
import type { Standing, StoredRow } from './rows.js'
import { toJobRow, toStanding } from './rows.js'
import type { Session } from '../connection/session.js'
import { arrayOf } from '../connection/session.js'

export async function readJobs(s: Session, ids: readonly string[]): Promise<(JobRow | undefined)[]> {
  const byId = new Map<string, JobRow>()
  for (let asked = ids; asked.length > 0; asked = asked.filter((id) => !byId.has(id))) {
    const rows = await s.query<BoundedRow>(s.queries.readJobs, JSON.stringify(asked))
    for (const row of rows) byId.set(row.id, toJobRow(row))
    if (!isCut(rows)) break
  }
  return ids.map((id) => byId.get(id))
}

/** A row of an answer that holds only so many bytes. */
export interface BoundedRow extends StoredRow {
  /** How many there would have been. */
  readonly matched: unknown
}

export function isCut(rows: readonly BoundedRow[]): boolean {
  return rows.length < Number(rows[0]?.matched ?? 0)
}

export async function readKeyed(s: Session, name: string, key: string): Promise<JobRow | undefined> {
  const [row] = await s.query<StoredRow>(s.queries.readKeyed, key, name)
  return row === undefined ? undefined : toJobRow(row)
}

/** Jobs with where they stand, for those who are about to move them. */
export async function readStanding(s: Session, refs: readonly number[]): Promise<Map<number, Standing>> {
  if (refs.length === 0) return new Map()
  const rows = await s.query<StoredRow>(s.queries.readRefs, arrayOf(refs))
  return new Map(rows.map((row) => [Number(row.ref), toStanding(row)]))
}

export async function readById(s: Session, id: string): Promise<Standing | undefined> {
  const [row] = await s.query<StoredRow>(s.queries.readJobs, JSON.stringify([id]))
  return row === undefined ? undefined : toStanding(row)
}

/** As many of them as one answer holds. */
export async function readManyById(s: Session, ids: readonly string[]): Promise<Map<string, Standing>> {
  const rows = await s.query<StoredRow>(s.queries.readJobs, JSON.stringify(ids))
  return new Map(rows.map((row) => [row.id, toStanding(row)]))
}
