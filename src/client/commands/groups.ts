import { show } from '../../codec/show.js'
import { InvalidOptionsError } from '../../errors.js'
import type { Problem } from '../../errors.js'
import { commandGiven, commandProblems, toGiven } from '../../job/command-options.js'
import type { CommandGiven, CommandOptions } from '../../job/command-options.js'
import { checkFields } from '../../job/definition/check-fields.js'
import type { Check } from '../../job/definition/check-fields.js'
import { checkEnqueueOptions, checkName, isName, isTransactionHandle } from '../../job/definition/check-options.js'
import type { Job } from '../../job/definition/define.js'
import type { EnqueueArguments, EnqueueOptions, Enqueueable } from '../../job/enqueue.js'
import { progressOf } from '../../job/rules/group-progress.js'
import type { GroupProgress } from '../../job/rules/group-progress.js'
import type { State } from '../../job/rules/states.js'
import type { LiveState } from '../../job/live-state.js'
import type { WhenDone } from '../../store/groups.js'
import { thenOrRetry } from '../../store/unknown-outcome.js'
import type { JobRow, Store } from '../../store/store.js'
import { commandPages } from './command-all.js'

/** A group of jobs, by its name. It may be empty: nothing is written before `seal()`. */
export interface GroupHandle {
  readonly id: string
  /** How many members are in each state, in all queues or in one. It costs the same for ten members and for a million. */
  progress(options?: { readonly queue?: string | undefined }): Promise<GroupProgress>
  /**
   * Declares that all members have been enqueued. From then on only running members may add to it, by `ctx.enqueue`. When no
   * member is unfinished, `whenDone` is enqueued, once. False when the group was sealed before: then nothing changes.
   */
  seal(options?: CommandOptions & { readonly tx?: unknown }): Promise<boolean>
  /** Pauses every member as `mill.pause` does, and returns how many. After a failure, call it again: it continues. */
  pause(options?: CommandOptions): Promise<number>
  /** Resumes every paused member. */
  resume(options?: CommandOptions): Promise<number>
  /** Cancels every unfinished member as `mill.cancel` does; parked ones stay. */
  cancel(options?: CommandOptions): Promise<number>
  /** Runs every failed member again, with all its retries. One whose key another job holds now is left out. */
  retryFailed(options?: CommandOptions): Promise<number>
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
  readonly auditKeepMs: number
  readonly command: (
    row: JobRow,
    command: 'pause' | 'resume' | 'cancel' | 'retry',
    given: CommandGiven,
  ) => Promise<boolean>
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
    async (narrow?: unknown): Promise<number> => {
      const shape = { keepsReason: command === 'pause' || command === 'cancel' }
      const given = commandGiven(verb, subjectOf(group, verb), narrow, parts.auditKeepMs, shape)
      return commandMembers(parts, group, states, given, (row) => parts.command(row, command, given))
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
  options: CommandOptions & { readonly tx?: unknown },
): Promise<boolean> {
  const wrong = commandProblems(options, { more: { tx: isTransactionHandle } })
  const { audit } = toGiven('seal', options, parts.auditKeepMs)
  if (wrong.length > 0 || options.tx === undefined) return sealAsync(parts, group, args, audit, wrong)
  const whenDone = args === undefined ? null : parts.planSync(...args)
  const sealed = parts.store.transactions.sealGroupIn(options.tx, { group, whenDone, audit })
  return Promise.resolve(sealed)
}

async function sealAsync(
  parts: GroupParts,
  group: string,
  args: WhenDoneArguments | undefined,
  audit: CommandGiven['audit'],
  wrong: readonly Problem[],
): Promise<boolean> {
  check(group, 'seal', wrong)
  const whenDone = args === undefined ? null : await parts.plan(...args)
  return parts.store.groups.sealGroup({ group, whenDone, audit })
}

/** Commands every present member, newest first, and writes one row of the audit trail for all of them beside their own. */
function commandMembers(
  { store }: GroupParts,
  group: string,
  states: readonly State[],
  { audit }: CommandGiven,
  command: (row: JobRow) => Promise<boolean>,
): Promise<number> {
  const query = { group, states, order: 'newest', limit: 0, cursor: null } as const
  return thenOrRetry(commandPages(query, store, command), async ({ changed }) => {
    if (audit !== undefined && changed > 0)
      await store.observing.addAudit({ ...audit, target: `group ${group}`, count: changed, before: null, after: null })
    return changed
  })
}

function subjectOf(group: string, verb: string): string {
  return `group ${JSON.stringify(group)}.${verb}()`
}

function check(group: string, verb: string, problems: readonly Problem[]): void {
  if (problems.length > 0) throw new InvalidOptionsError(subjectOf(group, verb), problems)
}
