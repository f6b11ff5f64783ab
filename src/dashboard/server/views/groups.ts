import type { GroupProgress } from '../../../job/rules/group-progress.js'
import { STATES } from '../../../job/rules/states.js'
import type { State } from '../../../job/rules/states.js'
import type { GroupFields, GroupRow, GroupsFields } from '../../protocol/rows.js'
import { ViewGone } from '../parts.js'
import type { MakeView, Parts } from '../parts.js'
import { asPage, ms } from './reads.js'

const PAGE = 50
const ABSENT = {
  perMinute: 'The rate of a group is not in this version.',
  emptyInMs: 'When a group will be empty is not in this version.',
}

/** Groups by name, unfinished ones first. */
export async function readGroups(parts: Parts, cursor?: string): Promise<MakeView> {
  const page = await asPage(() => parts.mill.groups({ limit: PAGE, cursor }))
  const rows = page.rows
    .map(({ id, ...progress }) => groupRow(id, progress))
    .toSorted((a, b) => Number(b.unfinished > 0) - Number(a.unfinished > 0))
  return () => ({
    fields: { total: page.cursor === undefined && cursor === undefined ? rows.length : null } satisfies GroupsFields,
    rows: rows.map((row) => [row.id, row]),
    cursor: page.cursor ?? null,
    absent: ABSENT,
  })
}

/** One group: its members by state and queue. */
export async function readGroup(parts: Parts, id: string): Promise<MakeView> {
  const progress = await parts.mill.group(id).progress()
  if (progress.total === 0 && !progress.sealed) throw new ViewGone(`No group ${id} has had a member.`)
  const group = groupRow(id, progress)
  const queues = Object.entries(progress.queues).map(([queue, counts]) => ({ queue, counts: byState(counts) }))
  return () => ({ fields: { group, queues } satisfies GroupFields, rows: [], absent: ABSENT })
}

function groupRow(id: string, progress: GroupProgress): GroupRow {
  const { total, unfinished, sealed, completedAt } = progress
  return {
    id,
    total,
    unfinished,
    counts: byState(progress),
    sealed,
    completedAt: ms(completedAt),
    perMinute: null,
    emptyInMs: null,
  }
}

function byState(counts: Readonly<Record<State, number>>): Readonly<Record<State, number>> {
  return Object.fromEntries(STATES.map((state) => [state, counts[state]])) as Record<State, number>
}
