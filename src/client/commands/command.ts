import type { Command } from '../../job/rules/command.js'
import { decideCommand, resumedState } from '../../job/rules/command.js'
import type { State } from '../../job/rules/states.js'
import type { RequestVerb } from '../../job/rules/request.js'
import { thenOrRetry } from '../../store/unknown-outcome.js'
import type { GuardedChange, JobRow, Store } from '../../store/store.js'
import type { World } from '../../world/world.js'
import type { CommandGiven } from '../../job/command-options.js'
import { canBeId } from '../check-arguments.js'
import { waitForLookAhead } from './look-ahead.js'
import { changeSequence, verbOf } from '../sequence/change-sequence.js'
import { changeWorkflow, refuseForOthers, workflowVerbOf } from '../workflow/change-workflow.js'
import type { WorkflowCommandOptions } from '../workflow/change-workflow.js'
import { isSequence } from '../../job/definition/stored-options.js'

/** Give up after this many attempts at which another process had changed the job's state first. */
const COMMAND_TRIES = 20

export interface CommandParts {
  readonly world: World
  readonly store: Store
  /** A command changed the state of a job, or deleted it. */
  readonly changed: (job: JobRow, to: State | 'gone', reason: string | undefined) => void
  /** A change was requested of a running job. */
  readonly requested: (job: JobRow, verb: RequestVerb) => void
  /** How long a cancelled job of this name is kept. */
  readonly keepCancelledMs: (name: string) => number
  /** How long a row of the audit trail is kept. */
  readonly auditKeepMs: number
  /** The id of the job whose handler makes the call; undefined outside of handlers. */
  readonly callingJob: () => string | undefined
}

/** The fields that a command writes beside the new state. */
export type Change = Omit<GuardedChange, 'id' | 'from' | 'to'>

/**
 * Reads the job, decides, and writes only if its state has not changed since; otherwise tries again. `seen` is a row that the
 * caller has just read.
 */
export async function commandJob(
  parts: CommandParts,
  id: string,
  command: Command,
  how: (row: JobRow) => Change | Promise<Change>,
  {
    seen,
    given,
    forWorkflow = {},
  }: {
    readonly seen?: JobRow | undefined
    readonly given?: CommandGiven | undefined
    readonly forWorkflow?: WorkflowCommandOptions | undefined
  } = {},
): Promise<boolean> {
  if (!canBeId(id)) return false
  const attempt = async (tries: number): Promise<boolean> => {
    const row = tries === 1 && seen !== undefined ? seen : (await parts.store.jobs.readJobs([id]))[0]
    if (row === undefined) return false
    if (row.shape === 'workflow') {
      const own = workflowVerbOf(command, forWorkflow)
      if (own !== undefined) return changeWorkflow(parts, row, own, given)
      // Only a workflow that has not begun waits for its key's time.
      if (command === 'unschedule' && (await hasBegun(parts.store, id))) return false
    } else refuseForOthers(row, command, forWorkflow)
    const verb = isSequence(row.options) ? verbOf(command, row) : undefined
    if (verb !== undefined) return verb === null ? false : changeSequence(parts, id, verb, given)
    const move = decideCommand(row.state, command)
    if (move === null) return false
    const change = { ...(await how(row)), audit: given?.audit }
    const written =
      move.request === undefined
        ? moveJob(parts, row, move.to, change)
        : requestChange(parts, row, move.request, change)
    return thenOrRetry<boolean | 'stale', boolean>(written, (answer) => {
      if (answer !== 'stale') return answer
      return tries === COMMAND_TRIES ? false : attempt(tries + 1)
    })
  }
  return attempt(1)
}

/** Whether a workflow has recorded something. */
export async function hasBegun(store: Store, id: string): Promise<boolean> {
  const record = await store.workflows.readWorkflow(id)
  return record !== undefined && (record.answers > 0 || record.open.length > 0 || record.run > 0)
}

async function moveJob(parts: CommandParts, row: JobRow, to: State | 'gone', change: Change): Promise<true | 'stale'> {
  // It is paused already: nothing to write, and no event.
  if (to === 'paused' && row.state === 'paused' && change.edit === undefined) return true
  return thenOrRetry(
    parts.store.jobs.changeJob({ id: row.id, name: row.name, from: row.state, to, ...change }),
    async (done) => {
      if (done === 'stale') return 'stale'
      parts.changed(row, row.state === 'paused' && to === 'ready' ? resumed(row, parts.world) : to, change.reason)
      if (done === 'taken') await waitForLookAhead(parts)
      return true
    },
  )
}

/** For the log only. The store decided the state by its own clock, which may differ from this one. */
function resumed(row: JobRow, world: World): State {
  return resumedState({ isDue: row.dueAt <= world.clock.now(), hasFailed: row.error !== null })
}

async function requestChange(
  parts: CommandParts,
  row: JobRow,
  verb: RequestVerb,
  change: Change,
): Promise<boolean | 'stale'> {
  const { reason = '', keepMs, audit } = change
  return thenOrRetry(parts.store.jobs.requestChange({ id: row.id, verb, reason, keepMs, audit }), (answer) => {
    if (answer === 'stale') return 'stale'
    if (answer === 'noted') parts.requested(row, verb)
    return answer === 'noted'
  })
}
