import type { Census, CensusWorkflow } from '../../src/store/census.js'
import type { KnownIds } from './compare.js'
import { isSuspect, isUnfinished } from './reference/state.js'
import type { Model } from './reference/state.js'
import { awaitedCalls } from './reference/workflows.js'
import type { Recorded, Row } from './reference/workflows.js'

/** The answers of a run of a workflow, in the order in which they were recorded. A run that is over has left no order. */
export function recordedIn({ workflows, jobs }: Census, id: string | undefined, model: Model): Recorded {
  const { run = 0, rows = [] } = workflows.find((each) => each.id === id) ?? {}
  const isReady = jobs.some((job) => job.id === id && job.state === 'ready')
  return {
    run,
    addresses: rows.flatMap(({ address, no }) => (no === null ? [] : [address])),
    called: new Set(rows.flatMap(({ address, note }) => (childOf(note) === undefined ? [] : [address]))),
    hasYielded: isReady && model.jobs.some((job) => job.state === 'ready' && isSuspect(job)),
  }
}

/** Jobs that workflows called are known by the rows of their calls. */
export function noteChildren(model: Model, census: Census, ids: KnownIds): void {
  for (const { id, rows } of census.workflows) {
    const flow = model.jobs[ids.number(id) ?? -1]?.workflow
    for (const { address, note } of rows) {
      const child = flow?.rows.find((row) => row.address === address)?.child ?? null
      if (child !== null && ids.id(child) === undefined) ids.set(child, childOf(note) ?? '')
    }
  }
}

function childOf(note: string | null): string | undefined {
  return note === null ? undefined : (JSON.parse(note) as { child?: string }).child
}

type Compared = readonly unknown[]

/** Every row and everything in the inbox of each workflow, as the store has it. */
export function storedLogs({ workflows }: Census, ids: KnownIds): Compared[] {
  return workflows.map(({ id, run, rows, inbox }) => [
    ids.number(id) ?? '?',
    run,
    rows.map((row) => storedRow(row, ids)).toSorted(),
    inbox
      // What an earlier run called may still come, and no operation takes it.
      .filter(({ kind, name }) => kind !== 'call' || rows.some(({ note }) => childOf(note) === name))
      .map(({ kind, name }) => (kind === 'call' ? `call ${ids.number(name ?? '')}` : `${kind} ${name ?? ''}`)),
  ])
}

function storedRow(row: CensusWorkflow['rows'][number], ids: KnownIds): string {
  const { address, kind, no, since, error, note } = row
  const child = childOf(note)
  const rest = [no === null ? 'open' : no, since, no === null ? kind : error === null ? 'ok' : 'error']
  return [address, ...rest, child === undefined ? '' : ids.number(child)].join(' ')
}

export function expectedLogs(model: Model): Compared[] {
  return model.jobs.flatMap((job) => {
    const { workflow, state, number } = job
    if (workflow === null || state === 'gone') return []
    const { run, rows, inbox } = workflow
    return [[number, run, rows.map(expectedRow).toSorted(), inbox.map(({ kind, name }) => `${kind} ${name}`)]]
  })
}

function expectedRow({ address, no, since, isError, isUnwound, child, verb }: Row): string {
  const end = no === null ? (isUnwound ? 'unwound' : verb) : isError ? 'error' : 'ok'
  return [address, no ?? 'open', since, end, child ?? ''].join(' ')
}

/** The jobs whose ends workflows wait for. */
export function expectedCalls(model: Model): Compared[] {
  return model.jobs.flatMap((job) => {
    if (job.workflow === null || !isUnfinished(job)) return []
    return [...new Set(awaitedCalls(job))].map((child) => [child, job.number, 'wake'])
  })
}

/** Jobs that an earlier run of a workflow called may still end: nothing waits for them. */
export function isOfThisRun({ parent, child, policy }: Census['links'][number], { jobs, workflows }: Census): boolean {
  if ((policy as string) !== 'wake') return true
  const caller = jobs.find(({ seq }) => seq === child)?.id
  return workflows.find(({ id }) => id === caller)?.rows.some(({ note }) => childOf(note) === parent) === true
}
