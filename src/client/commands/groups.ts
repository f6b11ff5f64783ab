import { show } from '../../codec/show.js'
import { DuplicateJobError, DuplicateKeyError, InvalidOptionsError, OutcomeUnknownError } from '../../errors.js'
import type { Problem } from '../../errors.js'
import { checkFields, refuseOptions } from '../../job/definition/check-fields.js'
import type { Check } from '../../job/definition/check-fields.js'
import { checkEnqueueOptions, checkName, isName, isTransactionHandle } from '../../job/definition/check-options.js'
import type { Job } from '../../job/definition/define.js'
import type { EnqueueArguments, EnqueueOptions, Enqueueable } from '../../job/enqueue.js'
import { progressOf } from '../../job/rules/group-progress.js'
import type { GroupProgress } from '../../job/rules/group-progress.js'
import type { State } from '../../job/rules/states.js'
import type { LiveState } from '../../job/live-state.js'
import type { WhenDone } from '../../store/groups.js'
import type { FindQuery } from '../../store/find.js'
import { allOrUnknown, withContinuation } from '../../store/unknown-outcome.js'
import type { JobRow, Store } from '../../store/store.js'

/** Members that a command for the whole group reads at a time. */
const PAGE = 500

/** A group of jobs, by its name. It may be empty: nothing is written before `seal()`. */
export interface GroupHandle {
  readonly id: string
  /** How many members are in each state, in all queues or in one. It costs the same for ten members and for a million. */
  progress(options?: { readonly queue?: string | undefined }): Promise<GroupProgress>
  /**
   * Declares that all members have been enqueued. From then on only running members may add to it, by `ctx.enqueue`. When no
   * member is unfinished, `whenDone` is enqueued, once. False when the group was sealed before: then nothing changes.
   */
  seal(options?: { readonly tx?: unknown }): Promise<boolean>
  /** Pauses every member as `mill.pause` does, and returns how many. After a failure, call it again: it continues. */
  pause(): Promise<number>
  /** Resumes every paused member. */
  resume(): Promise<number>
  /** Cancels every unfinished member as `mill.cancel` does; parked ones stay. */
  cancel(): Promise<number>
  /** Runs every failed member again, with all its retries. One whose key another job holds now is left out. */
  retryFailed(): Promise<number>
  /** Its progress as live state, which is read while it is observed. */
  watch(): LiveState<GroupProgress>
}

export interface GroupOptions<Payload = unknown, Result = unknown> {
  /** A job to enqueue once when the group is sealed and no member is unfinished: `[job, payload, options]`. */
  readonly whenDone?:
    | readonly [job: Job<Payload, Result> | string, ...rest: EnqueueArguments<NoInfer<Payload>>]
    | undefined
}

type WhenDoneArguments = readonly [job: Enqueueable, payload?: unknown, options?: EnqueueOptions]

export interface GroupParts {
  readonly store: Store
  readonly watch: (group: string) => LiveState<GroupProgress>
  /** Checks and encodes a job that the store enqueues later. */
  readonly plan: (...args: WhenDoneArguments) => Promise<WhenDone>
  /** The synchronous form, for a call with `tx`. */
  readonly planSync: (...args: WhenDoneArguments) => WhenDone
  readonly command: (row: JobRow, command: 'pause' | 'resume' | 'cancel' | 'retry') => Promise<boolean>
}

const isWhenDone: Check = (value) => {
  if (!Array.isArray(value) || value.length < 1 || value.length > 3)
    return `must be [job, payload, options], got ${Array.isArray(value) ? `an array of ${value.length}` : show(value)}`
  return value[2] === undefined ? undefined : checkEnqueueOptions(value[2], '[2]')
}

export function groupHandle(parts: GroupParts, id: unknown, options: unknown = {}): GroupHandle {
  const problems = [...checkName('id', id), ...checkFields(options, '', { fields: { whenDone: isWhenDone } })]
  if (problems.length > 0) throw new InvalidOptionsError('group()', problems)
  const group = id as string
  const { whenDone } = options as { readonly whenDone?: WhenDoneArguments }
  const forAll =
    (verb: string, command: Parameters<GroupParts['command']>[1], states: readonly State[]) =>
    async (unexpected?: unknown): Promise<number> => {
      check(group, verb, refuseOptions(unexpected, 'it is for all members'))
      return commandAll(parts, { group, states, order: 'newest', limit: PAGE, cursor: null }, command)
    }
  const handle: GroupHandle = {
    id: group,
    progress: async (narrow = {}) => {
      check(group, 'progress', checkFields(narrow, '', { fields: { queue: isName } }))
      return progressOf(await parts.store.groups.readGroup(group), narrow.queue)
    },
    seal: (sealOptions = {}) => seal(parts, group, whenDone, sealOptions),
    pause: forAll('pause', 'pause', ['scheduled', 'ready', 'retrying', 'blocked', 'running']),
    resume: forAll('resume', 'resume', ['paused', 'running']),
    cancel: forAll('cancel', 'cancel', ['scheduled', 'ready', 'retrying', 'blocked', 'paused', 'running']),
    retryFailed: forAll('retryFailed', 'retry', ['failed']),
    watch: () => parts.watch(group),
  }
  return handle
}

/** With `tx` it is synchronous and throws what it refuses; without, its promise rejects. */
function seal(
  parts: GroupParts,
  group: string,
  args: WhenDoneArguments | undefined,
  options: { readonly tx?: unknown },
): Promise<boolean> {
  const wrong = checkFields(options, '', { fields: { tx: isTransactionHandle } })
  if (wrong.length > 0 || options.tx === undefined) return sealAsync(parts, group, args, wrong)
  const whenDone = args === undefined ? null : parts.planSync(...args)
  const sealed = parts.store.transactions.sealGroupIn(options.tx, { group, whenDone })
  return Promise.resolve(sealed)
}

async function sealAsync(
  parts: GroupParts,
  group: string,
  args: WhenDoneArguments | undefined,
  wrong: readonly Problem[],
): Promise<boolean> {
  check(group, 'seal', wrong)
  const whenDone = args === undefined ? null : await parts.plan(...args)
  return parts.store.groups.sealGroup({ group, whenDone })
}

/** Commands every present member, newest first, a page at a time. Members added meanwhile are newer, so they are not included. */
async function commandAll(
  parts: GroupParts,
  first: FindQuery,
  command: Parameters<GroupParts['command']>[1],
  before = 0,
): Promise<number> {
  let commanded = before
  let query: FindQuery | null = first
  while (query !== null) {
    const page = await parts.store.jobs.findJobs(query)
    const [rest, soFar]: [FindQuery | null, number] = [
      page.cursor === null ? null : { ...query, cursor: page.cursor },
      commanded,
    ]
    const done = await allOrUnknown(page.rows.map((row) => falseIfDuplicate(parts.command(row, command)))).catch(
      (error: unknown) => {
        throw withContinuation(error, (known: boolean[]) => {
          const count = soFar + known.filter(Boolean).length
          return rest === null ? count : commandAll(parts, rest, command, count)
        })
      },
    )
    commanded += done.filter(Boolean).length
    query = rest
  }
  return commanded
}

async function falseIfDuplicate(commanded: Promise<boolean>): Promise<boolean> {
  try {
    return await commanded
  } catch (error) {
    if (error instanceof DuplicateKeyError || error instanceof DuplicateJobError) return false
    if (!(error instanceof OutcomeUnknownError)) throw error
    const { message, ids, cause } = error
    throw new OutcomeUnknownError(message, ids, () => falseIfDuplicate(error.retry<boolean>()), { cause })
  }
}

function check(group: string, verb: string, problems: readonly Problem[]): void {
  if (problems.length > 0) throw new InvalidOptionsError(`group ${JSON.stringify(group)}.${verb}()`, problems)
}
