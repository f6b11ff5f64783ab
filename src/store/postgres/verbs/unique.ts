import type { UniqueSlot } from '../../../job/rules/unique.js'
import { readStanding } from './read.js'
import type { Standing } from './rows.js'
import type { Session } from '../connection/session.js'

/** Who has a place, as the table says; whether that counts, `decidePlace` says. */
export interface PlaceRow {
  readonly ref: number
  readonly id: string
  readonly until: number | null
  /** The job, while it is unfinished. */
  readonly holder: Standing | undefined
}

export interface RawPlace {
  readonly name: string
  readonly key: string
  readonly ref: unknown
  readonly id: string
  readonly until: unknown
}

export function toPlace(row: RawPlace, job: Standing | undefined): PlaceRow {
  const isUnfinished = job !== undefined && job.id === row.id && job.place !== 'history'
  const until = row.until === null ? null : Number(row.until)
  return { ref: Number(row.ref), id: row.id, until, holder: isUnfinished ? job : undefined }
}

export function placeNow(row: Pick<PlaceRow, 'holder' | 'until'> | undefined, now: number): UniqueSlot {
  const holder = row?.holder
  return {
    holder: holder === undefined ? null : { state: holder.state, claimed: holder.claimed },
    windowRuns: row !== undefined && row.until !== null && row.until > now,
  }
}

/** Who has a place now. */
export async function readPlace(s: Session, name: string, key: string): Promise<PlaceRow | undefined> {
  const [row] = await s.query<RawPlace>(s.queries.placeHolders, JSON.stringify([{ name, key }]))
  if (row === undefined) return undefined
  return toPlace(row, (await readStanding(s, [Number(row.ref)])).get(Number(row.ref)))
}
