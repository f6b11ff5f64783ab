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
  readonly part: 'payload' | 'result'
}

export interface CheckParts {
  readonly store: Pick<Store, 'jobs' | 'schedules'>
  readonly registry: Registry
}

/** All but the finished: those that a worker may still run. */
const UNFINISHED: readonly State[] = ['scheduled', 'ready', 'running', 'retrying', 'blocked', 'paused', 'parked']
/** Schedules read at a time. */
const SCHEDULES_PAGE = 100

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
    for (const row of page.rows) yield* jobFindings(row, parts.registry)
    left -= page.rows.length
    query = page.cursor === null ? null : { ...query, cursor: page.cursor }
  }
  if (Object.values(filter).every((value) => value === undefined)) yield* scheduleFindings(parts)
}

async function* jobFindings(row: JobRow, registry: Registry): AsyncGenerator<CheckFinding, void, undefined> {
  const { id, name, queue, state, payload, options } = row
  const about = { job: name, queue, id, schedule: undefined, state }
  const found = await payloadProblem(registry, { name, payload, options })
  if (found !== undefined) yield { ...found, ...about, part: 'payload' }
  if (row.result === null) return
  const decoded = decode(registry, name, row.result)
  if ('problem' in decoded) yield { ...decoded, ...about, part: 'result' }
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
        yield { ...found, job: name, queue, id: undefined, schedule: id, state: undefined, part: 'payload' }
      after = id
    }
  } while (page.length === SCHEDULES_PAGE)
}

type Problem = Pick<CheckFinding, 'problem' | 'message'>

/** The first problem that a worker of this mill would meet. */
async function payloadProblem(
  registry: Registry,
  { name, payload, options }: { readonly name: string; readonly payload: Encoded; readonly options: string | null },
): Promise<Problem | undefined> {
  const registered = registry.runnable(name)
  if (registered === undefined)
    return { problem: 'no-handler', message: `no job named ${JSON.stringify(name)} is registered in this mill` }
  // Its items are payloads of their own, and are checked when each runs.
  if (isSequence(options)) return undefined
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
