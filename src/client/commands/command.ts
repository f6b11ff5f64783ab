import type { Command } from '../../job/rules/command.js'
import { decideCommand, resumedState } from '../../job/rules/command.js'
import type { State } from '../../job/rules/states.js'
import type { RequestVerb } from '../../job/rules/request.js'
import { followed } from '../../store/followed.js'
import type { GuardedChange, JobRow, Store } from '../../store/store.js'
import type { World } from '../../world/world.js'
import { canBeId } from '../check-arguments.js'

/** A command that keeps meeting a job in another state gives up. */
const COMMAND_TRIES = 20

export interface CommandParts {
  readonly world: World
  readonly store: Store
  /** A command moved a job, or forgot it. */
  readonly changed: (job: JobRow, to: State | 'gone', reason: string | undefined) => void
  /** Something was asked of a job that runs. */
  readonly requested: (job: JobRow, ask: RequestVerb) => void
}

/** What a command writes beside the move itself. */
export type Change = Omit<GuardedChange, 'id' | 'from' | 'to'>

/** Reads, decides, and writes only if the job is still as it was read, or `seen` by the caller; else again. */
export async function commandJob(
  parts: CommandParts,
  id: string,
  command: Command,
  how: (row: JobRow) => Change | Promise<Change>,
  seen?: JobRow,
): Promise<boolean> {
  if (!canBeId(id)) return false
  const attempt = async (tries: number): Promise<boolean> => {
    const row = tries === 1 && seen !== undefined ? seen : (await parts.store.jobs.readJobs([id]))[0]
    const move = row === undefined ? null : decideCommand(row.state, command)
    if (row === undefined || move === null) return false
    const change = await how(row)
    const asked =
      move.request === undefined
        ? moveJob(parts, row, move.to, change)
        : requestChange(parts, row, move.request, change)
    return followed<boolean | 'stale', boolean>(asked, (answer) => {
      if (answer !== 'stale') return answer
      return tries === COMMAND_TRIES ? false : attempt(tries + 1)
    })
  }
  return attempt(1)
}

async function moveJob(parts: CommandParts, row: JobRow, to: State | 'gone', change: Change): Promise<true | 'stale'> {
  // Paused already, and asked to pause: it is as was asked for, and there is nothing to write or to tell.
  if (to === 'paused' && row.state === 'paused' && change.edit === undefined) return true
  return followed(parts.store.jobs.changeJob({ id: row.id, from: row.state, to, ...change }), async (done) => {
    if (done === 'stale') return 'stale'
    parts.changed(row, row.state === 'paused' && to === 'ready' ? resumed(row, parts.world) : to, change.reason)
    if (done === 'taken') await waitForLookAhead(parts)
    return true
  })
}

/** For the log only: where it went, the store said by its own clock. */
function resumed(row: JobRow, world: World): State {
  return resumedState({ isDue: row.dueAt <= world.clock.now(), hasFailed: row.error !== null })
}

async function requestChange(
  parts: CommandParts,
  row: JobRow,
  ask: RequestVerb,
  change: Change,
): Promise<boolean | 'stale'> {
  const { reason = '', keepMs } = change
  return followed(parts.store.jobs.requestChange({ id: row.id, verb: ask, reason, keepMs }), (answer) => {
    if (answer === 'stale') return 'stale'
    if (answer === 'noted') parts.requested(row, ask)
    return answer === 'noted'
  })
}

/** Resolves when every holder of jobs in advance, in whatever process, has asked again: what was taken begins nowhere after. */
export function waitForLookAhead({ world, store }: Pick<CommandParts, 'world' | 'store'>): Promise<void> {
  return new Promise((resolve) => world.timers.after(store.info.heldUnconfirmedMs * 2, resolve))
}
