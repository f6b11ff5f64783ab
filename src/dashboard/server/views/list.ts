import { JobGoneError } from '../../../errors.js'
import type { JobRecord } from '../../../job/record.js'
import type { JobRow } from '../../protocol/jobs.js'
import type { ListFields } from '../../protocol/rows.js'
import type { Sort } from '../../protocol/topics.js'
import { parseSearch } from '../../search.js'
import { Refusal } from '../parts.js'
import type { MakeView, Parts, View } from '../parts.js'
import type { Show } from '../show/redact.js'
import { hiddenNotes, SORTS_NOW } from '../search/scan.js'
import type { Found } from '../search/scan.js'
import { jobRow, readWhys } from './job-row.js'
import { countsOf, exactly, queuesOf } from './reads.js'

const PAGE = 50
const ABSENT = { histogram: 'Matches over time are not in this version.' }

/** The first page of a search. What matches depends on what the user may see, so each role has its own. */
export async function readList(
  parts: Parts,
  { kind, sort, name: query }: { readonly kind: 'list' | 'workflows'; readonly sort: Sort; readonly name: string },
): Promise<MakeView> {
  const roles = parts.hasRules ? (['viewer', 'operator', 'admin'] as const) : (['viewer'] as const)
  const parsed = parseSearch(query)
  // The counters are of all jobs: they are not those of workflows, nor of what a search finds.
  const isUnfiltered = kind === 'list' && parsed.ok && parsed.terms.length === 0
  const counts = isUnfiltered ? countsOf(await queuesOf(parts)) : null
  const base = { query, sort, sorts: SORTS_NOW, counts, newer: exactly(0), histogram: null, keptFromMs: null }
  const empty = { scanned: 0, reachedAt: null, hidden: [] }
  try {
    const found = await Promise.all(
      roles.map((role) =>
        parts.scanner.search(parts, {
          query,
          sort,
          workflows: kind === 'workflows',
          cursor: undefined,
          limit: PAGE,
          show: parts.showFor(role),
        }),
      ),
    )
    const rowsOf = await Promise.all(found.map((each) => foundRows(parts, each, kind === 'workflows')))
    return (show): View => {
      const at = parts.hasRules ? (roles as readonly string[]).indexOf(show.role) : 0
      const { scanned, reachedAt, cursor } = found[at] as Found
      const fields: ListFields = { ...base, scanned, reachedAt, hidden: hiddenNotes(parts, query, show), problem: null }
      return { fields, rows: (rowsOf[at] as RowsOf)(show).map((row) => [row.id, row]), cursor, absent: ABSENT }
    }
  } catch (error) {
    // A wrong search is an answer of the page, and not a failure of the topic.
    if (!(error instanceof Refusal)) throw error
    const problem = {
      text: error.hint === null ? error.message : `${error.message} ${error.hint}`,
      from: error.at?.from ?? 0,
      to: error.at?.to ?? query.length,
    }
    return () => ({ fields: { ...base, ...empty, problem } satisfies ListFields, rows: [], absent: ABSENT })
  }
}

type RowsOf = (show: Show) => readonly JobRow[]

/** The rows of a search, each that waits with its reason. */
export async function foundRows(parts: Parts, { records }: Pick<Found, 'records'>, hasSteps = false): Promise<RowsOf> {
  const [whys, steps] = await Promise.all([
    readWhys(parts, records),
    Promise.all(records.map(async (record) => (hasSteps ? stepOf(parts, record) : null))),
  ])
  return (show) =>
    records.map((record, i) => ({ ...jobRow(parts, record, show, whys.get(record.id)), step: steps[i] ?? null }))
}

/** Steps of one workflow that a list reads; of one with more, the list does not know where it is. */
const STEPS_MAX = 100
const OPEN_AGE_MS = 2_000
const SETTLED_AGE_MS = 60_000

/** The step that a workflow is in, and how many are done. */
function stepOf({ mill, shared }: Parts, { id, settledAt }: JobRecord): Promise<JobRow['step']> {
  const age = settledAt === undefined ? OPEN_AGE_MS : SETTLED_AGE_MS
  return shared.read(`steps ${id} ${settledAt?.getTime() ?? ''}`, age, async () => {
    const steps = await mill.steps(id, { limit: STEPS_MAX }).catch((error: unknown) => {
      // It was deleted after the list was read.
      if (error instanceof JobGoneError) return []
      throw error
    })
    if (steps.length === 0 || steps.length === STEPS_MAX) return null
    const now = steps.findLast(({ state }) => state === 'open' || state === 'retrying')
    const done = steps.filter(({ state, kind }) => state === 'done' && !kind.startsWith('!')).length
    return { name: now?.name ?? '', kind: now?.kind ?? '', done }
  })
}
