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
import type { WhenDone } from '../../store/groups.js'
import type { FindQuery } from '../../store/find.js'
import { allKnown, continued } from '../../store/followed.js'
import type { JobRow, Store } from '../../store/store.js'
import { refuseWatch } from '../refuse-watch.js'
import type { NotWatched } from '../refuse-watch.js'

/** Members that one page of a command to all of them takes. */
const PAGE = 500

/** A group of jobs, by its name: it need not have any. Nothing is written before `seal()`. */
export interface GroupHandle {
  readonly id: string
  /** How many members stand where, in all or in one queue. It costs the same for ten members and for a million. */
  progress(options?: { readonly queue?: string | undefined }): Promise<GroupProgress>
  /**
   * Says that all have been enqueued. From then on only members that run may add, by `ctx.enqueue`; when none is unfinished,
   * `whenDone` is enqueued, once. False when the group was sealed before: then nothing changes.
   */
  seal(options?: { readonly tx?: unknown }): Promise<boolean>
  /** Pauses every member as `mill.pause` does; gives how many. Called again after a failure it goes on where it was. */
  pause(): Promise<number>
  /** Resumes every paused member. */
  resume(): Promise<number>
  /** Cancels every unfinished member as `mill.cancel` does; parked ones stay. */
  cancel(): Promise<number>
  /** Runs every failed member again, with all its retries. One whose key another job holds now is left out. */
  retryFailed(): Promise<number>
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
  /** Checks and encodes a job that is enqueued later. */
  readonly plan: (...given: WhenDoneArguments) => Promise<WhenDone>
  /** The same within the call. */
  readonly planSync: (...given: WhenDoneArguments) => WhenDone
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
    async (asked?: unknown): Promise<number> => {
      check(group, verb, refuseOptions(asked, 'it is for all members'))
      return commandAll(parts, { group, states, order: 'newest', limit: PAGE, cursor: null }, command)
    }
  const handle: GroupHandle & NotWatched = {
    id: group,
    progress: async (asked = {}) => {
      check(group, 'progress', checkFields(asked, '', { fields: { queue: isName } }))
      return progressOf(await parts.store.groups.readGroup(group), asked.queue)
    },
    seal: (asked = {}) => seal(parts, group, whenDone, asked),
    pause: forAll('pause', 'pause', ['scheduled', 'ready', 'retrying', 'blocked', 'running']),
    resume: forAll('resume', 'resume', ['paused', 'running']),
    cancel: forAll('cancel', 'cancel', ['scheduled', 'ready', 'retrying', 'blocked', 'paused', 'running']),
    retryFailed: forAll('retryFailed', 'retry', ['failed']),
    watch: () => refuseWatch('group', 'read group.progress() now and then'),
  }
  return handle
}

/** With `tx` all of it within the call, refusals too; else all by the promise. */
function seal(
  parts: GroupParts,
  group: string,
  given: WhenDoneArguments | undefined,
  options: { readonly tx?: unknown },
): Promise<boolean> {
  const wrong = checkFields(options, '', { fields: { tx: isTransactionHandle } })
  if (wrong.length > 0 || options.tx === undefined) return sealAlone(parts, group, given, wrong)
  const whenDone = given === undefined ? null : parts.planSync(...given)
  const sealed = parts.store.transactions.sealGroupIn(options.tx, { group, whenDone })
  return Promise.resolve(sealed)
}

async function sealAlone(
  parts: GroupParts,
  group: string,
  given: WhenDoneArguments | undefined,
  wrong: readonly Problem[],
): Promise<boolean> {
  check(group, 'seal', wrong)
  const whenDone = given === undefined ? null : await parts.plan(...given)
  return parts.store.groups.sealGroup({ group, whenDone })
}

/** The members as they are now, the newest first, a page at a time: what is added meanwhile is not met. */
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
    const done = await allKnown(page.rows.map((row) => falseIfDuplicate(parts.command(row, command)))).catch(
      (error: unknown) => {
        throw continued(error, (known: boolean[]) => {
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
