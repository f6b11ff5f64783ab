import { InvalidOptionsError } from '../../errors.js'
import type { Command } from '../../job/rules/command.js'
import type { SequenceVerb } from '../../job/rules/sequence.js'
import { thenOrRetry } from '../../store/unknown-outcome.js'
import type { SequenceChanged } from '../../store/sequences.js'
import type { JobRow } from '../../store/store.js'
import type { CommandGiven } from '../../job/command-options.js'
import type { CommandParts } from '../commands/command.js'
import { waitForLookAhead } from '../commands/look-ahead.js'

/** Applies a verb to a sequence; false when it does not apply in its state, or when there is no such job. */
export async function changeSequence(
  parts: CommandParts,
  id: string,
  verb: SequenceVerb,
  given?: CommandGiven,
): Promise<boolean> {
  const [row] = verb === 'cancel' ? await parts.store.jobs.readJobs([id]) : []
  const keepMs = row === undefined ? Infinity : parts.keepCancelledMs(row.name)
  const reason = given?.reason ?? `${verb}() was called`
  const change = { id, verb, reason, keepMs, audit: given?.audit }
  return thenOrRetry(parts.store.sequences.changeSequence(change), async (changed) => {
    if (changed.did === 'plain') throw notASequence(id, changed.name ?? '')
    report(parts, id, verb, changed, reason)
    // The worker may begin one more item until it has read the pause. An item that pauses its own sequence is that worker.
    if (verb === 'pause' && changed.inHand && parts.callingJob() !== id) await waitForLookAhead(parts)
    return changed.did === 'moved' || changed.did === 'requested'
  })
}

function report(parts: CommandParts, id: string, verb: SequenceVerb, changed: SequenceChanged, reason: string): void {
  const job = { id, name: changed.name ?? '', queue: changed.queue ?? '' } as JobRow
  if (changed.did === 'moved' && changed.to !== null) parts.changed(job, changed.to, reason)
  if (changed.did === 'requested' && (verb === 'cancel' || verb === 'pause' || verb === 'resume'))
    parts.requested(job, verb)
}

/** The verb of a sequence that a command on its job means; null: the command does not apply. Undefined: it is no such command. */
export function verbOf(command: Command, row: Pick<JobRow, 'state'>): SequenceVerb | null | undefined {
  if (command === 'cancel' || command === 'pause' || command === 'resume') return command
  if (command !== 'retry') return undefined
  return row.state === 'failed' || row.state === 'parked' ? 'resume' : null
}

export function notASequence(id: string, name: string): InvalidOptionsError {
  return new InvalidOptionsError('sequence()', [
    {
      path: 'id',
      message: `must be that of a sequence, got ${id}, which is a job ${JSON.stringify(name)}; use mill.get(id)`,
    },
  ])
}
