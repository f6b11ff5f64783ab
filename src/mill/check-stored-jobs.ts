import { checkFilter } from '../client/check-arguments.js'
import { queryOf } from '../client/read/query.js'
import { reason } from '../codec/show.js'
import { EncryptionError, InvalidOptionsError } from '../errors.js'
import type { Registry } from '../job/definition/registry.js'
import { checkPayload } from '../job/definition/schema.js'
import { fromStoredValue, isSequence, readOptions } from '../job/definition/stored-options.js'
import { upcastPayload } from '../job/definition/upcast.js'
import type { JobFilter } from '../job/record.js'
import type { Encoded } from '../job/rules/outcome.js'
import { isFinal } from '../job/rules/states.js'
import type { State } from '../job/rules/states.js'
import { readSpec } from '../schedule/spec.js'
import type { FindQuery } from '../store/find.js'
import type { ScheduleRow } from '../store/schedules.js'
import type { JobRow, Store } from '../store/store.js'

/** Why a stored job, or the payload of a schedule, cannot be run or read with the code and the keys of this mill. */
export type CheckProblem =
  /** No job of this name is registered here. */
  | 'no-handler'
  /** It is encrypted with a key that is not listed here. */
  | 'no-key'
  /** It is encrypted, and was changed or copied from elsewhere. */
  | 'not-decrypted'
  /** The codec cannot read it. */
  | 'not-decoded'
  /** `upcast` cannot turn it into the current version, or it is of a newer one. */
  | 'not-upcast'
  /** The schema or `accepts` refuses it. */
  | 'not-accepted'

/** One finding of `mill.check()`. */
export interface CheckFinding {
  readonly problem: CheckProblem
  readonly message: string
  /** The name of the job. */
  readonly job: string
  readonly queue: string
  /** The id of the job; undefined when the finding is about a schedule. */
  readonly id: string | undefined
  readonly schedule: string | undefined
  readonly state: State | undefined
  /** A workflow's input is its payload. */
  readonly part: 'payload' | 'result' | 'item' | 'event' | 'step'
  /** Which item (its index), event (its name) or step (its address); undefined for a payload and a result. */
  readonly at: string | undefined
}

export interface CheckParts {
  readonly store: Pick<Store, 'jobs' | 'schedules' | 'sequences' | 'workflows'>
  readonly registry: Registry
}

/** All but the finished: those that a worker may still run. */
const UNFINISHED: readonly State[] = ['scheduled', 'ready', 'running', 'retrying', 'blocked', 'paused', 'parked']
/** Schedules read at a time. */
const SCHEDULES_PAGE = 100
/** Items of a sequence, and rows of the log and the inbox of a workflow, read at a time. */
const ROWS_PAGE = 200

/**
 * Reads stored jobs page by page, and yields those that this mill could not run or read. It writes nothing and calls no handler.
 * Without a filter it reads every unfinished job and every schedule.
 */
export async function* checkStoredJobs(
  parts: CheckParts,
  filter: JobFilter = {},
): AsyncGenerator<CheckFinding, void, undefined> {
  const problems = checkFilter(filter)
  if (problems.length > 0) throw new InvalidOptionsError('check()', problems)
  let left = filter.limit ?? Infinity
  let query: FindQuery | null = queryOf({ ...filter, state: filter.state ?? UNFINISHED }, parts.registry)
  while (query !== null && left > 0) {
    const page = await parts.store.jobs.findJobs({ ...query, limit: Math.min(query.limit, left) })
    for (const row of page.rows) yield* jobFindings(parts, row)
    left -= page.rows.length
    query = page.cursor === null ? null : { ...query, cursor: page.cursor }
  }
  if (Object.values(filter).every((value) => value === undefined)) yield* scheduleFindings(parts)
}

async function* jobFindings(parts: CheckParts, row: JobRow): AsyncGenerator<CheckFinding, void, undefined> {
  const { registry } = parts
  const { id, name, queue, state, payload, options, result } = row
  const about = { job: name, queue, id, schedule: undefined, state, at: undefined }
  const found = await payloadProblem(registry, { name, payload, options })
  if (found !== undefined) yield { ...found, ...about, part: 'payload' }
  if (found?.problem !== 'no-handler' && !isFinal(state))
    for await (const inner of innerProblems(parts, row)) yield { ...about, ...inner }
  const decoded = result === null ? undefined : decode(registry, name, result)
  if (decoded !== undefined && 'problem' in decoded) yield { ...decoded, ...about, part: 'result' }
}

type InnerProblem = Problem & Pick<CheckFinding, 'part' | 'at'>

/** What an unfinished sequence or workflow has yet to read. */
function innerProblems(parts: CheckParts, row: JobRow): AsyncGenerator<InnerProblem> | readonly InnerProblem[] {
  if (isSequence(row.options)) return itemProblem(parts, row)
  return row.shape === 'workflow' ? workflowProblems(parts, row) : []
}

/** The first item that is not done and could not run: the sequence stops there. */
async function* itemProblem({ store, registry }: CheckParts, row: JobRow): AsyncGenerator<InnerProblem> {
  let index = (await store.sequences.readSequence(row.id))?.done ?? 0
  let items: readonly Encoded[]
  do {
    items = await store.sequences.readItems(row, index, ROWS_PAGE)
    for (const payload of items) {
      const found = await valueProblem(registry, { ...row, payload })
      if (found !== undefined) return yield { ...found, part: 'item', at: String(index) }
      index += 1
    }
  } while (items.length > 0)
}

/** Events that a workflow has not taken, and recorded answers of its steps: a replay reads them all. */
async function* workflowProblems(parts: CheckParts, row: JobRow): AsyncGenerator<InnerProblem> {
  yield* stepProblems(parts, row)
  yield* eventProblems(parts, row)
}

/** Kinds of operations whose answers have the codec of the workflow. */
const OWN_VALUES: ReadonlySet<string> = new Set(['step', 'tx', 'wait'])

async function* stepProblems({ store, registry }: CheckParts, { id, name }: JobRow): AsyncGenerator<InnerProblem> {
  for (let after: string | undefined; ;) {
    const rows = (await store.workflows.readSteps(id, after, ROWS_PAGE))?.rows ?? []
    for (const { address, value, kind } of rows) {
      // What a called job returned is of that job.
      const decoded = value === null || !OWN_VALUES.has(kind) ? undefined : decode(registry, name, value)
      if (decoded !== undefined && 'problem' in decoded) yield { ...decoded, part: 'step', at: address }
    }
    after = rows.at(-1)?.address
    if (rows.length < ROWS_PAGE) return
  }
}

async function* eventProblems({ store, registry }: CheckParts, row: JobRow): AsyncGenerator<InnerProblem> {
  for (let after = 0; ;) {
    const rows = await store.workflows.readInbox(row, after, ROWS_PAGE)
    for (const { kind, name, payload } of rows) {
      const decoded = payload === null || kind !== 'event' ? undefined : decode(registry, row.name, payload)
      if (decoded !== undefined && 'problem' in decoded) yield { ...decoded, part: 'event', at: name ?? undefined }
    }
    after = rows.at(-1)?.number ?? after
    if (rows.length < ROWS_PAGE) return
  }
}

async function* scheduleFindings({ store, registry }: CheckParts): AsyncGenerator<CheckFinding, void, undefined> {
  let after = ''
  let page: readonly ScheduleRow[]
  do {
    page = (await store.schedules.listSchedules(after, SCHEDULES_PAGE)).schedules
    for (const { id, spec } of page) {
      const { name, queue, payload, options } = readSpec(spec).job
      const found = await payloadProblem(registry, { name, payload: fromStoredValue(payload), options })
      if (found !== undefined)
        yield {
          ...found,
          job: name,
          queue,
          id: undefined,
          schedule: id,
          state: undefined,
          part: 'payload',
          at: undefined,
        }
      after = id
    }
  } while (page.length === SCHEDULES_PAGE)
}

type Problem = Pick<CheckFinding, 'problem' | 'message'>

/** The first problem that a worker of this mill would meet. A sequence has no payload: its items are payloads. */
async function payloadProblem(registry: Registry, stored: StoredPayload): Promise<Problem | undefined> {
  const { name, options } = stored
  if (registry.runnable(name) === undefined)
    return { problem: 'no-handler', message: `no job named ${JSON.stringify(name)} is registered in this mill` }
  return isSequence(options) ? undefined : valueProblem(registry, stored)
}

interface StoredPayload {
  readonly name: string
  readonly payload: Encoded
  readonly options: string | null
}

async function valueProblem(
  registry: Registry,
  { name, payload, options }: StoredPayload,
): Promise<Problem | undefined> {
  const registered = registry.runnable(name)
  if (registered === undefined) return undefined
  const decoded = decode(registry, name, payload)
  if ('problem' in decoded) return decoded
  try {
    const current = upcastPayload(registered.upcast, readOptions(options).version ?? 0, decoded.value)
    return await acceptProblem(registered.job.options, current)
  } catch (error) {
    return { problem: 'not-upcast', message: reason(error) }
  }
}

async function acceptProblem(
  rules: Parameters<typeof checkPayload>[0],
  payload: unknown,
): Promise<Problem | undefined> {
  try {
    const checked = await checkPayload(rules, payload)
    if (checked.ok) return undefined
    return { problem: 'not-accepted', message: checked.problems.map((p) => `${p.path} ${p.message}`).join('; ') }
  } catch (error) {
    return { problem: 'not-accepted', message: `the check threw ${reason(error)}` }
  }
}

function decode(registry: Registry, name: string, stored: Encoded): Problem | { readonly value: unknown } {
  try {
    return { value: registry.codecOf(name).decode(stored) }
  } catch (error) {
    const code = error instanceof EncryptionError ? error.code : undefined
    const problem = code === undefined ? 'not-decoded' : code === 'E_ENCRYPTION_KEY' ? 'no-key' : 'not-decrypted'
    return { problem, message: reason(error) }
  }
}
