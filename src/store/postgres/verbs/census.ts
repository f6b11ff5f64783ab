import type { LinkPolicy } from '../../../job/rules/links.js'
import type { RequestKind } from '../../../job/rules/request.js'
import type { State } from '../../../job/rules/states.js'
import type { Census, CensusJob, CensusSequence, CensusWorkflow } from '../../census.js'
import type { Session } from '../connection/session.js'

export async function readCensus(session: Session): Promise<Census> {
  const { census } = await session.one<{ census: string }>(session.queries.readCensus)
  return censusIn(census)
}

/** The census in the answer of the statement `readCensus`. */
export function censusIn(text: string): Census {
  const tables = JSON.parse(text) as Tables
  return {
    jobs: jobsIn(tables),
    strays: straysIn(tables),
    ...groupsIn(tables),
    ...linksIn(tables),
    ...othersIn(tables),
    ...sequencesIn(tables),
    workflows: workflowsIn(tables),
  }
}

/** The rows that the statement reads, with their columns in its order. */
interface Tables {
  readonly jobs: readonly JobRow[]
  readonly lanes: readonly [lane: number, queue: string, name: string][]
  readonly history: readonly EndRow[]
  readonly waiting: readonly [ref: number, state: State][]
  readonly ready: readonly [ref: number, lane: number, sort: number][]
  readonly leases: readonly LeaseRow[]
  readonly reports: readonly [ref: number, fence: number][]
  readonly keys: readonly [name: string, key: string, ref: number][]
  readonly uniques: readonly [name: string, key: string, id: string, until: number | null][]
  readonly workers: readonly [worker: string, beat: number][]
  readonly requests: readonly [ref: number, kind: RequestKind][]
  readonly outages: readonly [lane: number, state: string][]
  readonly pauses: readonly [queue: string, until: number | null][]
  readonly ticks: readonly [schedule: string, at: number, byHand: number, job: string | null][]
  readonly schedules: readonly [id: string, spec: string, nextAt: number | null, lastAt: number | null][]
  readonly groups: readonly [group: string, sealedAt: number | null, completedAt: number | null][]
  readonly counts: readonly CountRow[]
  readonly moves: readonly CountRow[]
  readonly stats: readonly AttemptRow[]
  readonly stats_moves: readonly AttemptRow[]
  readonly links: readonly [parent: number, child: number, policy: LinkPolicy][]
  readonly todos: readonly [parent: number, id: string | null][]
  readonly workflows: readonly WorkflowRow[]
  readonly lists: readonly [list: number, id: string, total: number][]
  readonly items: readonly [list: number][]
  readonly steps: readonly StepRow[]
  readonly inbox: readonly InboxRow[]
  readonly leftovers: readonly [ref: number | null][]
  readonly shaped: readonly [ref: number, shape: string][]
}

type WorkflowRow = readonly [
  ...[ref: number, run: number, waits: string | null],
  ...[wakeAt: number | null, pausedFrom: State | null],
]
type StepRow = readonly [
  ...[ref: number, run: number, address: string],
  ...[no: number | null, attempt: number, value: string | null],
  ...[kind: string, since: number, error: string | null, note: string | null],
]
type InboxRow = readonly [
  ...[ref: number, number: number, kind: CensusWorkflow['inbox'][number]['kind']],
  ...[name: string | null, payload: string | null, taken: boolean],
]

type JobRow = readonly [
  ...[ref: number, id: string, lane: number, key: string | null, group: string | null, payload: string | null],
  ...[options: string | null, createdAt: number, dueAt: number, attempt: number | null, retries: number | null],
  ...[crashes: number | null, streak: number | null, reason: string | null, log: string | null, after: string | null],
  ...[sort: number, place: number],
]
type EndRow = readonly [
  ...[ref: number, state: State, attempt: number | null, retries: number | null, crashes: number | null],
  ...[reason: string | null, worker: string | null, log: string | null, keepUntil: number | null],
]
type LeaseRow = readonly [
  ...[fence: number, worker: string, quarantined: number],
  ...[starting: number, refs: readonly number[], released: readonly number[]],
]
type CountRow = readonly [group: string, queue: string, state: State, members: number]

/** Where the rows of a job are. */
interface Places {
  readonly lanes: ReadonlyMap<number, Tables['lanes'][number]>
  readonly ends: ReadonlyMap<number, EndRow>
  readonly waiting: ReadonlyMap<number, State>
  /** Rows of `ready` by lane, sort and ref: one with another sort is not that of the job. */
  readonly ready: ReadonlySet<string>
  readonly reports: ReadonlySet<string>
  /** The leases that hold each job, the oldest first. */
  readonly leases: ReadonlyMap<number, readonly LeaseRow[]>
  /** The number of rows of each ref in `history`, `waiting` and `ready`. */
  readonly rows: ReadonlyMap<number, number>
}

function sequencesIn(tables: Tables): Pick<Census, 'sequences' | 'long'> {
  const { jobs, workflows, lists, items, steps, inbox, leftovers } = tables
  const refs = new Map(jobs.map(([ref, id]) => [id, ref]))
  const runs = new Map(workflows.map(([ref, run]) => [ref, run]))
  const sequences = lists.flatMap(([list, id, total]): CensusSequence[] => {
    const [ref, run] = [refs.get(id) ?? -1, runs.get(refs.get(id) ?? -1)]
    if (run === undefined) return []
    const rows = steps
      .filter(([of, during]) => of === ref && during === run)
      .map(([, , address, no, attempt, value]) => ({ address, no, attempt, value }))
      .toSorted((one, other) => (one.address < other.address ? -1 : 1))
    return [{ id, run, total, items: items.filter(([of]) => of === list).length, rows }]
  })
  const counts = { steps, workflows, lists, items, inbox, leftovers }
  const long = Object.fromEntries(Object.entries(counts).map(([name, rows]) => [name, rows.length]))
  return { sequences, long: long as unknown as Census['long'] }
}

function workflowsIn({ jobs, shaped, workflows, steps, inbox }: Tables): CensusWorkflow[] {
  const ids = new Map(jobs.map(([ref, id]) => [ref, id]))
  const stored = new Map(workflows.map((row) => [row[0], row]))
  return shaped.flatMap(([ref, shape]): CensusWorkflow[] => {
    if (shape !== 'workflow') return []
    const [, run, waits, wakeAt, pausedFrom] = stored.get(ref) ?? [ref, 0, null, null, null]
    const rows = steps
      .filter((row) => row[0] === ref && row[1] === run)
      .map(([, , address, no, , value, kind, since, error, note]) => ({ address, kind, no, since, value, error, note }))
      .toSorted((one, other) => (one.no ?? Infinity) - (other.no ?? Infinity))
    const open = inbox
      .filter((row) => row[0] === ref && !row[5])
      .map(([, number, kind, name, payload]) => ({ number, kind, name, payload }))
      .toSorted((one, other) => one.number - other.number)
    const id = ids.get(ref) ?? ''
    return [{ id, run, waits: JSON.parse(waits ?? 'null') as string[] | null, wakeAt, pausedFrom, rows, inbox: open }]
  })
}

function jobsIn(tables: Tables): CensusJob[] {
  const places = placesOf(tables)
  return tables.jobs.map((row) => censusJob(row, places))
}

function placesOf({ lanes, history, waiting, ready, reports, leases }: Tables): Places {
  const rows = new Map<number, number>()
  for (const [ref] of [...history, ...waiting, ...ready]) rows.set(ref, (rows.get(ref) ?? 0) + 1)
  const held = new Map<number, LeaseRow[]>()
  for (const lease of leases.toSorted(([one], [other]) => one - other))
    for (const ref of heldBy(lease)) held.set(ref, [...(held.get(ref) ?? []), lease])
  return {
    lanes: new Map(lanes.map((lane) => [lane[0], lane])),
    ends: new Map(history.map((end) => [end[0], end])),
    waiting: new Map(waiting),
    ready: new Set(ready.map(([ref, lane, sort]) => `${lane} ${sort} ${ref}`)),
    reports: new Set(reports.map(([ref, fence]) => `${ref} ${fence}`)),
    leases: held,
    rows,
  }
}

/** A lease still lists a job that it released. */
function heldBy([, , , , refs, released]: LeaseRow): readonly number[] {
  return refs.filter((ref) => !released.includes(ref))
}

function censusJob(row: JobRow, places: Places): CensusJob {
  const [ref, id, lane, key, group, payload, options, createdAt, dueAt, attempt, retries, crashes] = row
  const [, , , , , , , , , , , , streak, reason, log, after, sort, place] = row
  const end = places.ends.get(ref)
  const isReady = places.ready.has(`${place} ${sort} ${ref}`)
  const holders = places.leases.get(ref) ?? []
  const lease = end === undefined && !places.waiting.has(ref) && !isReady ? holders[0] : undefined
  const [, queue = '', name = ''] = places.lanes.get(lane) ?? []
  const ended = end === undefined ? undefined : endOf(end)
  return {
    seq: ref,
    id,
    name,
    queue,
    key,
    group,
    createdAt,
    dueAt,
    ...givenIn(payload),
    ...optionsIn(options),
    ...logOf(ended === undefined ? log : ended.log),
    // A lease still lists a job after its end.
    tableCount: places.rows.get(ref) ?? holders.length,
    state: ended?.state ?? places.waiting.get(ref) ?? stateIn(lease, ref, places),
    fence: lease?.[0] ?? null,
    attempt: ended?.attempt ?? attempt ?? (ended?.state === 'done' ? 1 : 0),
    retries: ended?.retries ?? retries ?? 0,
    crashes: ended?.crashes ?? crashes ?? 0,
    streak: streak ?? 0,
    reason: ended === undefined ? reason : ended.reason,
    worker: ended?.worker ?? null,
    keepUntil: ended?.keepUntil ?? null,
    after: after === null ? [] : (JSON.parse(after) as string[]),
  }
}

function endOf([, state, attempt, retries, crashes, reason, worker, log, keepUntil]: EndRow) {
  return { state, attempt, retries, crashes, reason, worker, log, keepUntil }
}

/** A job that is claimed runs once its lease starts it at once, or its worker has reported its start. */
function stateIn(lease: LeaseRow | undefined, ref: number, { reports }: Places): State {
  if (lease === undefined) return 'ready'
  const [fence, , , starting, refs] = lease
  return reports.has(`${ref} ${fence}`) || refs.indexOf(ref) < starting ? 'running' : 'ready'
}

function givenIn(payload: string | null): Pick<CensusJob, 'follows' | 'payloadParents' | 'policy' | 'n'> {
  const given = read(payload) as Partial<Pick<CensusJob, 'follows' | 'policy' | 'n'>> & { after?: readonly string[] }
  const { follows = null, after: payloadParents = [], policy = null, n = null } = given
  return { follows, payloadParents, policy, n }
}

function optionsIn(options: string | null): Pick<CensusJob, 'slot' | 'while' | 'tick' | 'calledBy'> {
  const { unique, tick, calledBy } = read(options) as {
    calledBy?: { id: string }
    unique?: { key: string; while: CensusJob['while'] }
    tick?: { schedule: string; at: number }
  }
  return {
    slot: unique?.key ?? null,
    while: unique?.while ?? null,
    calledBy: calledBy?.id ?? null,
    tick: tick === undefined ? null : `${tick.schedule} ${tick.at}`,
  }
}

function logOf(log: string | null): Pick<CensusJob, 'lastLogWorker' | 'logEntries'> {
  const entries = (log === null ? [] : JSON.parse(log)) as readonly { readonly worker?: string }[]
  return { lastLogWorker: entries.at(-1)?.worker ?? null, logEntries: entries.length }
}

function straysIn({ jobs, history, waiting, ready, steps, inbox, leftovers }: Tables): number {
  const known = new Set(jobs.map(([ref]) => ref))
  const left = new Set(leftovers.map(([ref]) => ref))
  const logged = [...steps, ...inbox].filter(([ref]) => !known.has(ref) && !left.has(ref)).length
  return logged + [...history, ...waiting, ...ready].filter(([ref]) => !known.has(ref)).length
}

/** Members of groups by queue and state: the counts, and the moves that are not folded into them yet. */
function groupsIn({ groups, counts, moves }: Tables): Pick<Census, 'groups' | 'counts'> {
  const sums = new Map<string, { group: string; queue: string; state: State; members: number }>()
  for (const [group, queue, state, members] of [...counts, ...moves]) {
    const name = JSON.stringify([group, queue, state])
    const sum = sums.get(name) ?? { group, queue, state, members: 0 }
    sum.members += members
    sums.set(name, sum)
  }
  const all = [...sums.values()]
  const isOpen = (state: State): boolean => state !== 'done' && state !== 'failed' && state !== 'cancelled'
  const unfinishedIn = (id: string): number =>
    all.reduce((sum, { group, state, members }) => (group === id && isOpen(state) ? sum + members : sum), 0)
  return {
    groups: groups.map(([group, sealedAt, completedAt]) => {
      const unfinished = unfinishedIn(group)
      return { group, unfinished, sealedAt, completedAt }
    }),
    counts: all.filter(({ members }) => members !== 0),
  }
}

/** A parent may be deleted: then only its to-do has its id. */
function linksIn({ jobs, links, todos }: Tables): Pick<Census, 'links' | 'todos'> {
  const ids = new Map<number, string>()
  for (const [ref, id] of todos) if (id !== null) ids.set(ref, id)
  for (const [ref, id] of jobs) ids.set(ref, id)
  const idOf = (ref: number): string => ids.get(ref) as string
  return {
    links: links.map(([parent, child, policy]) => ({ parent: idOf(parent), child, policy })),
    todos: todos.map(([parent]) => idOf(parent)),
  }
}

function othersIn(
  tables: Tables,
): Omit<Census, 'jobs' | 'strays' | 'groups' | 'counts' | 'links' | 'todos' | 'sequences' | 'workflows' | 'long'> {
  return {
    attempts: attemptsIn(tables),
    keys: tables.keys.map(([name, key, seq]) => ({ name, key, seq })),
    slots: tables.uniques.map(([name, key, job, until]) => ({ name, key, job, until })),
    workers: tables.workers.map(([worker, beat]) => ({ worker, beat })),
    leases: tables.leases.map((lease) => {
      const [fence, worker, quarantined] = lease
      return { fence, worker, quarantined, jobs: heldBy(lease) }
    }),
    requests: tables.requests.map(([seq, kind]) => ({ seq, kind })),
    outages: tables.outages.map(([number, state]) => {
      const [, queue = '', name = ''] = tables.lanes.find(([lane]) => lane === number) ?? []
      return { queue, name, state }
    }),
    pauses: tables.pauses.map(([queue, until]) => ({ queue, until })),
    ticks: tables.ticks.map(([schedule, at, byHand, job]) => ({ schedule, at, byHand, job })),
    schedules: tables.schedules.map(scheduleOf),
  }
}

function scheduleOf([id, text, nextAt, lastAt]: Tables['schedules'][number]): Census['schedules'][number] {
  const spec = read(text) as { rule?: { every?: number }; fromAt?: number | null; anchorAt?: number | null }
  const waitsForFrom = (spec.fromAt ?? -Infinity) > (lastAt ?? 0) && (spec.anchorAt ?? null) === null
  return { id, everyMs: spec.rule?.every ?? null, nextAt, waitsForFrom: waitsForFrom ? 1 : 0 }
}

function read(text: string | null): object {
  const value: unknown = text === null ? {} : JSON.parse(text)
  return typeof value === 'object' && value !== null ? value : {}
}

type AttemptRow = readonly [queue: string, name: string, done: number, failed: number, retried: number]

/** Ended attempts by lane: the buckets, and the rows that are not folded into them yet. */
function attemptsIn({ stats, stats_moves }: Tables): Census['attempts'] {
  const sums = new Map<string, { queue: string; name: string; done: number; failed: number; retried: number }>()
  for (const [queue, name, done, failed, retried] of [...stats, ...stats_moves]) {
    const sum = sums.get(`${queue}\n${name}`) ?? { queue, name, done: 0, failed: 0, retried: 0 }
    sum.done += done
    sum.failed += failed
    sum.retried += retried
    sums.set(`${queue}\n${name}`, sum)
  }
  return [...sums].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, sum]) => sum)
}
