import { DefinitionError, JobGoneError } from '../errors.js'
import type { AnyJob, Handler } from '../job/definition/define.js'
import { isLazy, loadHandler } from '../job/definition/lazy.js'
import type { Lazy } from '../job/definition/lazy.js'
import { checkPayload } from '../job/definition/schema.js'
import { readOptions } from '../job/definition/stored-options.js'
import { upcastPayload } from '../job/definition/upcast.js'
import { workflowRules } from '../job/definition/workflow-options.js'
import { queryOf } from '../client/read/query.js'
import type { FindQuery } from '../store/find.js'
import type { JobRow } from '../store/store.js'
import type { StepRow } from '../store/workflows.js'
import { replayLog } from '../workflow/replay.js'
import type { Replayed } from '../workflow/replay.js'
import type { MillInternals } from './internals.js'

const UNFINISHED = ['ready', 'scheduled', 'retrying', 'blocked', 'paused', 'running', 'parked'] as const

/** Every unfinished workflow of the store, or those of one name, also if its code is not known here. */
export async function* unfinishedWorkflows({ store, registry }: MillInternals, name?: string): AsyncGenerator<JobRow> {
  let query: FindQuery | null = queryOf({ job: name, state: [...UNFINISHED], order: 'oldest' }, registry)
  while (query !== null) {
    const page = await store.jobs.findJobs(query)
    for (const row of page.rows) if (row.shape === 'workflow') yield row
    query = page.cursor === null ? null : { ...query, cursor: page.cursor }
  }
}

/** Rows of a log that are read at a time. */
const PAGE_ROWS = 1_000

/** Replays the recorded log of a workflow with this code. Nothing acts, and nothing is written. */
export async function replayStored(parts: MillInternals, id: string, job: AnyJob): Promise<Replayed> {
  const [row] = await parts.store.jobs.readJobs([id])
  const record = await parts.store.workflows.readWorkflow(id)
  if (row === undefined || record === undefined) throw new JobGoneError(id)
  if (!record.isWorkflow || row.name !== job.name)
    throw new DefinitionError(`job ${id} is a ${row.name}, and not the workflow ${JSON.stringify(job.name)}`)
  const { registry, world } = parts
  const codec = registry.codecOf(job.name)
  const workflow = {
    id,
    name: job.name,
    depth: 0,
    body: (await bodyOf(job)) as (input: unknown, w: never) => unknown,
    input: await inputOf(job, row, codec.decode(row.payload)),
    rules: workflowRules(job),
    isStrict: false,
    inHandMs: 0,
    codec,
  }
  const log = { run: record.run, deadlineAt: null, rows: await rowsOf(parts, id), inbox: [] }
  const now = (): number => world.clock.now()
  return replayLog(workflow, log, { timers: world.timers, now, codecOf: (name) => registry.codecOf(name) })
}

async function bodyOf({ options }: AnyJob): Promise<Handler<unknown, unknown>> {
  const run = options.run as Handler<unknown, unknown> | Lazy<unknown, unknown>
  return isLazy(run) ? (loadHandler(run) as Promise<Handler<unknown, unknown>>) : run
}

async function inputOf({ options, name }: AnyJob, row: JobRow, decoded: unknown): Promise<unknown> {
  const current = upcastPayload(options.upcast ?? [], readOptions(row.options).version ?? 0, decoded)
  const checked = await checkPayload(options, current)
  if (checked.ok) return checked.value
  throw new DefinitionError(`the input of ${name} ${row.id} no longer fits: ${checked.problems[0]?.message ?? ''}`)
}

async function rowsOf({ store }: MillInternals, id: string): Promise<readonly StepRow[]> {
  const rows: StepRow[] = []
  for (;;) {
    const page = await store.workflows.readSteps(id, rows.at(-1)?.address, PAGE_ROWS)
    rows.push(...(page?.rows ?? []))
    if ((page?.rows.length ?? 0) < PAGE_ROWS) return rows
  }
}
