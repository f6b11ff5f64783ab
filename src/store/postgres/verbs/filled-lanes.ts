import type { ClaimRequest } from '../../store.js'
import type { Lane } from './lanes.js'
import type { Session } from '../connection/session.js'
import type { Before } from './claim-cursors.js'

/** Lanes with jobs that are looked up at a time. */
const FILLED_AT_ONCE = 500

/** A lane with ready jobs; `sort` is null where only suspects are. */
export interface FilledLane extends Lane {
  readonly sort: unknown
  /** Its queue is. */
  readonly paused: boolean
}

/** The lanes that have jobs which this claim may take, each with the place of its first one. */
export async function filledLanes(s: Session, request: ClaimRequest, before: Before): Promise<FilledLane[]> {
  const names = request.names === undefined ? undefined : before.setOf(request.names)
  const queues = request.queues === undefined ? undefined : new Set(request.queues)
  const lanes: FilledLane[] = []
  const may = ({ name, queue, paused }: FilledLane): boolean =>
    !paused && names?.has(name) !== false && queues?.has(queue) !== false && request.rooms.get(queue) !== 0
  for (let after = 0; ;) {
    const given = [String(after), String(FILLED_AT_ONCE), s.nowText] as const
    const rows = await s.query<FilledLane>(s.queries.filledLanes, ...given)
    lanes.push(...rows.filter(may))
    const filled = rows.filter(({ sort }) => sort !== null)
    if (filled.length < FILLED_AT_ONCE) return lanes
    after = Math.max(...filled.map(({ lane }) => Number(lane)))
  }
}

/** Behind every job. */
const BEYOND = '9223372036854775807'

/**
 * Those whose first jobs come first: twice as many as jobs are wanted, since other workers take from them too, and no more of a
 * queue than it has room for. `until` is where the first job of the last of them stands: what stands behind it comes later.
 */
export function firstLanes(
  lanes: readonly FilledLane[],
  { max, rooms }: ClaimRequest,
): { readonly lanes: readonly Lane[]; readonly until: string } {
  const left = new Map([...rooms].map(([queue, room]) => [queue, 2 * room]))
  const first = lanes.filter(({ sort }) => sort === null)
  const filled = lanes.filter(({ sort }) => sort !== null)
  let taken = 0
  for (const lane of filled.toSorted((one, other) => Number(one.sort) - Number(other.sort))) {
    const room = left.get(lane.queue)
    if (room === 0) continue
    if (room !== undefined) left.set(lane.queue, room - 1)
    first.push(lane)
    taken += 1
    if (taken >= 2 * max) return { lanes: first, until: String(lane.sort) }
  }
  return { lanes: first, until: BEYOND }
}
