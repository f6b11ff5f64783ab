import { InvalidOptionsError } from '../../errors.js'
import type { CommandGiven } from '../../job/command-options.js'
import type { Fields } from '../../job/definition/check-fields.js'
import { isBoolean } from '../../job/definition/check-values.js'
import type { Command } from '../../job/rules/command.js'
import type { WorkflowVerb } from '../../job/rules/workflow-commands.js'
import type { JobRow } from '../../store/store.js'
import { thenOrRetry } from '../../store/unknown-outcome.js'
import type { CommandParts } from '../commands/command.js'
import { waitForLookAhead } from '../commands/look-ahead.js'

/** How a workflow is cancelled or retried: `unwind: false` ends it at once, `fresh` forgets its whole log. */
export interface WorkflowCommandOptions {
  readonly unwind?: boolean | undefined
  readonly fresh?: boolean | undefined
}

/** The options that a command has for workflows, to check. */
export function workflowFields(command: Command): Fields['fields'] {
  if (command === 'cancel') return { unwind: isBoolean }
  return command === 'retry' ? { fresh: isBoolean } : {}
}

/** The same of options that were checked. */
export function workflowOptions(options: unknown): WorkflowCommandOptions {
  const { unwind, fresh } = (typeof options === 'object' && options !== null ? options : {}) as WorkflowCommandOptions
  return { unwind, fresh }
}

/** The verb of a workflow that a command on its job means. Undefined: it is a command as for any job. */
export function workflowVerbOf(command: Command, { unwind, fresh }: WorkflowCommandOptions): WorkflowVerb | undefined {
  if (command === 'cancel') return unwind === false ? 'end' : 'cancel'
  if (command === 'retry') return fresh === true ? 'retry-fresh' : 'retry'
  return command === 'pause' || command === 'resume' ? command : undefined
}

/** False when the verb does not apply in its state, or when there is no such job. */
export async function changeWorkflow(
  parts: CommandParts,
  row: JobRow,
  verb: WorkflowVerb,
  given?: CommandGiven,
): Promise<boolean> {
  const { id, name } = row
  const reason = given?.reason ?? `${VERB_OF_CALLER[verb]}() was called`
  const { keepCancelledMs } = parts
  const change = { id, verb, reason, keepMs: keepCancelledMs(name), keepCancelledMs, audit: given?.audit }
  return thenOrRetry(parts.store.workflows.changeWorkflow(change), async (changed) => {
    const { did, to } = changed
    if (did === 'moved' && to !== null) parts.changed(row, to, reason)
    if (did === 'requested' && (verb === 'cancel' || verb === 'pause' || verb === 'resume')) parts.requested(row, verb)
    if (changed.isTaken) await waitForLookAhead(parts)
    return did === 'moved' || did === 'requested'
  })
}

const VERB_OF_CALLER: Readonly<Record<WorkflowVerb, string>> = {
  cancel: 'cancel',
  end: 'cancel',
  pause: 'pause',
  resume: 'resume',
  retry: 'retry',
  'retry-fresh': 'retry',
}

/** Options of a command that only workflows have. */
export function refuseForOthers(
  row: Pick<JobRow, 'id' | 'name'>,
  command: Command,
  given: WorkflowCommandOptions,
): void {
  const problems = Object.entries(given).flatMap(([path, value]) =>
    value === undefined
      ? []
      : [{ path, message: `is for workflows, and job ${JSON.stringify(row.name)} is none; leave it out` }],
  )
  if (problems.length > 0) throw new InvalidOptionsError(`${command}(${JSON.stringify(row.id)})`, problems)
}

/** What an edit may not change of a workflow that has begun: its log was made with that input, and it waits for its own times. */
const FIXED_ONCE_BEGUN = ['payload', 'after', 'onParentFailure', 'in', 'at'] as const

export function refuseForBegun(id: string, change: { readonly [name: string]: unknown }): void {
  const problems = FIXED_ONCE_BEGUN.filter((path) => change[path] !== undefined).map((path) => ({
    path,
    message: 'cannot be edited of a workflow that has begun; cancel it, and enqueue another',
  }))
  if (problems.length > 0) throw new InvalidOptionsError(`edit(${JSON.stringify(id)})`, problems)
}
