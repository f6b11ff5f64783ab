import { show } from '../../codec/show.js'
import { DuplicateJobError, DuplicateKeyError, InvalidOptionsError, OutcomeUnknownError } from '../../errors.js'
import type { Problem } from '../../errors.js'
import { commandProblems, toGiven } from '../../job/command-options.js'
import type { AuditNote, CommandGiven, CommandOptions } from '../../job/command-options.js'
import { isOptionsObject } from '../../codec/options-object.js'
import { isCount, isFunction } from '../../job/definition/check-options.js'
import type { Registry } from '../../job/definition/registry.js'
import type { CountFilter, JobCount, JobRecord } from '../../job/record.js'
import { STATES } from '../../job/rules/states.js'
import type { State } from '../../job/rules/states.js'
import type { FindQuery, FoundPage } from '../../store/find.js'
import type { JobRow, Store } from '../../store/store.js'
import { allOrUnknown, thenOrRetry, withContinuation } from '../../store/unknown-outcome.js'
import { checkCountFilter } from '../check-arguments.js'
import { countPages } from '../read/count.js'
import { isNumberCursor } from '../read/page.js'
import { queryOf } from '../read/query.js'

/** Jobs that a bulk reads and commands at a time. */
const PAGE = 500
/** Examples in a preview, and the pages that are read to find them. */
const EXAMPLES = 5
const EXAMPLE_PAGES_MAX = 20

export type BulkVerb = 'retryAll' | 'cancelAll' | 'deleteAll' | 'pauseAll' | 'resumeAll'
export type BulkCommand = 'retry' | 'cancel' | 'delete' | 'pause' | 'resume'

/** The options of `retryAll`, `cancelAll`, `deleteAll`, `pauseAll` and `resumeAll`. */
export interface BulkCommandOptions extends CommandOptions {
  /** Changes nothing, and returns what would be changed. */
  readonly preview?: boolean | undefined
  /** Required with an empty filter, which means every job of the store. */
  readonly all?: boolean | undefined
  /** Continues where an earlier call stopped, or acts on the jobs of a preview: its `cursor`. Later jobs are not included. */
  readonly cursor?: string | undefined
  /** Stop after this many jobs and return the cursor. Default: all. */
  readonly limit?: number | undefined
  /** Called after each page of 500 jobs. */
  readonly onProgress?: ((progress: BulkResult) => void) | undefined
  /** Aborted: stops before the next page, and resolves with the cursor. */
  readonly signal?: AbortSignal | undefined
}

/** What a bulk did. */
export interface BulkResult {
  /** Jobs to which the command was applied. */
  readonly changed: number
  readonly skipped: {
    /** Another unfinished job has its key or unique value, so it was not retried. */
    readonly held: number
    /** It left its state before the command reached it, or the command does not apply to it. */
    readonly moved: number
  }
  /** Undefined: no job is left. Otherwise the same call with this cursor continues. */
  readonly cursor: string | undefined
}

/** What a bulk would do. */
export interface BulkPreview extends JobCount {
  /** How many in each state, each counted up to 10,000. */
  readonly states: { readonly [state in State]?: number }
  /** Matching jobs in states that the command does not change. Counted only when the filter names no state. */
  readonly untouched: JobCount
  /** The newest five. */
  readonly examples: readonly JobRecord[]
  /** Give it to the call that acts: jobs that are enqueued after the preview are not included. Undefined: no job matches. */
  readonly cursor: string | undefined
}

/** `states`: where the command applies. `unless`: of these, the ones that the filter must name. */
const RULES: {
  readonly [verb in BulkVerb]: {
    readonly command: BulkCommand
    readonly states: readonly State[]
    readonly unless?: readonly State[]
  }
} = {
  retryAll: { command: 'retry', states: ['failed', 'parked', 'retrying', 'cancelled'], unless: ['cancelled'] },
  cancelAll: { command: 'cancel', states: ['scheduled', 'ready', 'retrying', 'blocked', 'paused', 'running'] },
  deleteAll: { command: 'delete', states: STATES.filter((state) => state !== 'running') },
  pauseAll: { command: 'pause', states: ['scheduled', 'ready', 'retrying', 'blocked', 'running'] },
  resumeAll: { command: 'resume', states: ['paused', 'running'] },
}

export interface BulkParts {
  readonly store: Store
  readonly registry: Registry
  readonly auditKeepMs: number
  readonly command: (row: JobRow, command: BulkCommand, given: CommandGiven) => Promise<boolean>
  readonly toRecord: (row: JobRow) => JobRecord
}

/** Applies a command to all jobs that match, newest first, a page at a time. */
export async function commandAll(
  parts: BulkParts,
  verb: BulkVerb,
  filter: CountFilter,
  options: BulkCommandOptions = {},
): Promise<BulkResult | BulkPreview> {
  checkBulk(verb, filter, options)
  const { command } = RULES[verb]
  const query = { ...queryOf(filter, parts.registry), states: statesOf(verb, filter), cursor: cursorOf(options) }
  if (options.preview === true) return preview(parts, query, filter.state === undefined ? othersOf(query.states) : [])
  if (options.signal?.aborted === true) return { ...NOTHING, cursor: cursorText(await placeBefore(parts.store, query)) }
  const given = toGiven(verb, options, parts.auditKeepMs)
  const done = commandPages(query, parts.store, (row) => parts.command(row, command, given), options)
  return thenOrRetry(done, async (result) => {
    if (given.audit !== undefined && result.changed > 0)
      await parts.store.observing.addAudit(summaryOf(given.audit, query, result.changed))
    return result
  })
}

/** One row for the whole bulk, beside those of its jobs. */
function summaryOf(note: AuditNote, query: FindQuery, count: number): Parameters<Store['observing']['addAudit']>[0] {
  const { order: _order, limit: _limit, cursor: _cursor, ...filter } = query
  const target = `jobs ${JSON.stringify(filter)}`.slice(0, TARGET_MAX)
  return { ...note, target, count, before: null, after: null }
}
const TARGET_MAX = 1_000

function checkBulk(verb: BulkVerb, filter: unknown, options: unknown): void {
  const problems = [
    ...filterProblems(verb, filter, options),
    ...commandProblems(options, { keepsReason: KEEP_REASON.includes(verb), more: BULK_FIELDS }),
  ]
  if (problems.length > 0) throw new InvalidOptionsError(`${verb}()`, problems)
}

const KEEP_REASON: readonly BulkVerb[] = ['cancelAll', 'pauseAll']

const isBoolean = (value: unknown): string | undefined =>
  typeof value === 'boolean' ? undefined : `must be true or false, got ${show(value)}`
const BULK_FIELDS = {
  preview: isBoolean,
  all: isBoolean,
  cursor: isNumberCursor,
  limit: (value: unknown) => (value === Infinity ? undefined : isCount(1)(value)),
  onProgress: isFunction,
  signal: (value: unknown) => (value instanceof AbortSignal ? undefined : `must be an AbortSignal, got ${show(value)}`),
}

/** A filter without a field matches every job: a variable that is undefined by mistake must not delete them all. */
function filterProblems(verb: BulkVerb, filter: unknown, options: unknown): Problem[] {
  const problems = checkCountFilter(filter)
  if (problems.length > 0 || !isOptionsObject(filter)) return problems
  const given = Object.entries(filter).filter(([, value]) => value !== undefined)
  const isAll = isOptionsObject(options) && (options as BulkCommandOptions).all === true
  if (given.length === 0 && !isAll)
    return [
      {
        path: 'filter',
        message: `must name at least one field; to ${RULES[verb].command} every job, write ${verb}({}, { all: true })`,
      },
    ]
  const { states } = RULES[verb]
  const wrong = listOf((filter as CountFilter).state).filter((state) => !states.includes(state))
  return wrong.map((state) => ({
    path: 'state',
    message: `must be ${states.join(', ')} for ${verb}, got ${show(state)}: ${RULES[verb].command} does not apply to a ${state} job`,
  }))
}

function statesOf(verb: BulkVerb, { state }: CountFilter): readonly State[] {
  const { states, unless = [] } = RULES[verb]
  return state === undefined ? states.filter((one) => !unless.includes(one)) : listOf(state)
}

function othersOf(states: readonly State[]): readonly State[] {
  return STATES.filter((state) => !states.includes(state))
}

function listOf(state: CountFilter['state']): readonly State[] {
  if (state === undefined) return []
  return Array.isArray(state) ? (state as readonly State[]) : [state as State]
}

function cursorOf({ cursor }: BulkCommandOptions): number | null {
  return cursor === undefined ? null : Number(cursor)
}

async function preview(
  parts: BulkParts,
  query: FindQuery & { readonly states: readonly State[] },
  others: readonly State[],
): Promise<BulkPreview> {
  const { rows } = await firstRows(parts.store, query, EXAMPLES)
  const [first] = rows
  // The bulk continues from here, so it meets no later job.
  const from = { ...query, cursor: first === undefined ? query.cursor : first.ref + 1 }
  const counted = await Promise.all(
    query.states.map(async (state) => ({ state, ...(await countPages({ ...from, states: [state] }, parts.store)) })),
  )
  const count = counted.reduce((sum, each) => sum + each.count, 0)
  return {
    count,
    exact: counted.every((each) => each.exact),
    states: Object.fromEntries(counted.filter((each) => each.count > 0).map((each) => [each.state, each.count])),
    untouched: others.length === 0 ? NONE : await countPages({ ...from, states: others }, parts.store),
    examples: rows.map((row) => parts.toRecord(row)),
    cursor: first === undefined ? undefined : String(from.cursor),
  }
}
const NONE: JobCount = { count: 0, exact: true }

/** Where a bulk begins: just before the newest match; null when no job matches. */
async function placeBefore(store: Store, query: FindQuery): Promise<number | null> {
  if (query.cursor !== null) return query.cursor
  const { rows } = await firstRows(store, query, 1)
  return rows[0] === undefined ? null : rows[0].ref + 1
}

async function firstRows(store: Store, first: FindQuery, most: number): Promise<{ rows: readonly JobRow[] }> {
  const rows: JobRow[] = []
  let query = first
  for (let pages = 0; pages < EXAMPLE_PAGES_MAX && rows.length < most; pages += 1) {
    const page = await store.jobs.findJobs({ ...query, limit: most - rows.length })
    rows.push(...page.rows)
    if (page.cursor === null) break
    query = { ...query, cursor: page.cursor }
  }
  return { rows }
}

type Commanded = 'changed' | 'held' | 'moved'
const NOTHING: BulkResult = { changed: 0, skipped: { held: 0, moved: 0 }, cursor: undefined }

/** The next page of a bulk, and what the pages before it did. */
interface BulkStep {
  readonly query: FindQuery
  readonly left: number
  readonly result: BulkResult
}

/**
 * Commands every present match, newest first, a page at a time. Jobs that are added meanwhile are newer, so they are not
 * included.
 */
export function commandPages(
  query: FindQuery,
  store: Store,
  command: (row: JobRow) => Promise<boolean>,
  options: Pick<BulkCommandOptions, 'limit' | 'onProgress' | 'signal'> = {},
): Promise<BulkResult> {
  const run = async (from: BulkStep): Promise<BulkResult> => {
    let step: BulkStep | undefined = from
    let result = { ...from.result, cursor: cursorText(from.query.cursor) }
    while (step !== undefined && step.left > 0 && options.signal?.aborted !== true) {
      const [at, page]: [BulkStep, FoundPage] = [step, await store.jobs.findJobs(pageOf(step))]
      const after = (commanded: readonly Commanded[]): BulkStep | undefined => {
        result = added(at.result, commanded, page.cursor)
        options.onProgress?.(result)
        if (page.cursor === null) return undefined
        return { query: { ...at.query, cursor: page.cursor }, left: at.left - page.rows.length, result }
      }
      const commanded = await allOrUnknown(page.rows.map((row) => heldIfDuplicate(command(row)))).catch(
        (error: unknown) => {
          throw withContinuation(error, (known: readonly Commanded[]) => {
            const rest = after(known)
            return rest === undefined ? result : run(rest)
          })
        },
      )
      step = after(commanded)
    }
    return result
  }
  return run({ query, left: options.limit ?? Infinity, result: NOTHING })
}

function pageOf({ query, left }: BulkStep): FindQuery {
  return { ...query, limit: Math.min(PAGE, left) }
}

function cursorText(cursor: number | null): string | undefined {
  return cursor === null ? undefined : String(cursor)
}

function added(before: BulkResult, commanded: readonly Commanded[], cursor: number | null): BulkResult {
  const count = (what: Commanded): number => commanded.filter((each) => each === what).length
  return {
    changed: before.changed + count('changed'),
    skipped: { held: before.skipped.held + count('held'), moved: before.skipped.moved + count('moved') },
    cursor: cursorText(cursor),
  }
}

async function heldIfDuplicate(commanded: Promise<boolean>): Promise<Commanded> {
  try {
    return (await commanded) ? 'changed' : 'moved'
  } catch (error) {
    if (error instanceof DuplicateKeyError || error instanceof DuplicateJobError) return 'held'
    if (!(error instanceof OutcomeUnknownError)) throw error
    const { message, ids, cause } = error
    throw new OutcomeUnknownError(message, ids, () => heldIfDuplicate(error.retry<boolean>()), { cause })
  }
}
