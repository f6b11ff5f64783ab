import type { Outcome } from './reference/attempts.js'
import type { BulkFilter, BulkVerb } from './reference/bulk.js'
import type { Edit } from './reference/commands.js'
import type { GroupVerb } from './reference/groups.js'
import type { SequenceVerb } from './reference/sequences.js'
import type { HeldEnd } from './reference/workflows.js'
import type { EventName } from './bodies.js'
import type { Enqueue, Leaving, ParentPolicy, Recurring, State } from './reference/state.js'

export type Given = Enqueue & { readonly name: string }

/** A node of a flow; `afterNodes` are nodes by their index, modulo those of the flow. */
export interface Node {
  readonly given: Given
  readonly afterNodes: readonly number[]
}

/** A verb that inserts: also in a transaction of the caller. */
export type InsertStep =
  | { readonly step: 'enqueue' | 'workflow'; readonly given: Given }
  | { readonly step: 'schedule'; readonly key: string; readonly inMs: number; readonly given: Given }
  | {
      readonly step: 'many'
      readonly name: string
      readonly items: readonly Enqueue[]
      readonly onDuplicate: 'return' | 'reject' | 'replace'
    }
  | { readonly step: 'flow'; readonly nodes: readonly Node[]; readonly onDuplicate: 'return' | 'reject' | 'replace' }
  | { readonly step: 'seal'; readonly group: string; readonly whenDone: Given | null }
  | { readonly step: 'sequence'; readonly total: number; readonly start: boolean; readonly given: Given }

export type JobVerb = 'cancel' | 'pause' | 'resume' | 'retry' | 'delete'

export type ScheduleSpec = Omit<Recurring, 'name' | 'given' | 'fromAt' | 'untilAt'> & {
  readonly given: Given
  readonly fromMs: number | null
  readonly untilMs: number | null
}

/** Reads, and verbs on what exists. */
export type CommandStep =
  | { readonly step: 'unschedule'; readonly name: string; readonly key: string }
  | { readonly step: 'command'; readonly verb: JobVerb; readonly at: number }
  | { readonly step: 'sequenceVerb'; readonly verb: SequenceVerb; readonly at: number }
  | { readonly step: 'send'; readonly at: number; readonly event: EventName; readonly id: string | null }
  | { readonly step: 'workflowVerb'; readonly verb: 'end' | 'fresh'; readonly at: number }
  | { readonly step: 'edit'; readonly at: number; readonly change: Edit }
  | {
      readonly step: 'addParents'
      readonly at: number
      readonly parents: readonly number[]
      readonly policy: ParentPolicy
    }
  | { readonly step: 'pauseQueue'; readonly queue: string; readonly forMs: number | null }
  | { readonly step: 'resumeQueue'; readonly queue: string }
  | { readonly step: 'group'; readonly group: string; readonly verb: GroupVerb }
  | { readonly step: 'all'; readonly verb: BulkVerb; readonly filter: BulkFilter; readonly page: number }
  | { readonly step: 'recurring'; readonly id: string; readonly spec: ScheduleSpec }
  | { readonly step: 'recurs'; readonly id: string; readonly verb: 'pause' | 'resume' | 'runNow' | 'delete' }
  | { readonly step: 'backfill'; readonly id: string; readonly backMs: number }
  | { readonly step: 'find'; readonly filter: Filter; readonly page: number; readonly order: 'newest' | 'oldest' }

/** What happens in a process, and time. */
export type WorkStep =
  | { readonly step: 'child'; readonly attempt: number; readonly given: Given }
  | { readonly step: 'begin'; readonly queue: string }
  | { readonly step: 'finish'; readonly attempt: number; readonly outcome: Outcome }
  | { readonly step: 'endStep'; readonly at: number; readonly end: HeldEnd }
  | { readonly step: 'run'; readonly queue: string; readonly outcome: Outcome }
  | { readonly step: 'settleIn'; readonly attempt: number; readonly commits: boolean }
  | { readonly step: 'transact'; readonly attempt: number; readonly given: Given; readonly throws: boolean }
  | { readonly step: 'loseClaim'; readonly queue: string }
  | { readonly step: 'kill'; readonly mill: number; readonly how: Leaving }
  | { readonly step: 'restart'; readonly mill: number }
  | { readonly step: 'crashes'; readonly mill: number; readonly queue: string; readonly times: number }
  | { readonly step: 'loseLease'; readonly mill: number; readonly queue: string; readonly outcome: Outcome }
  | { readonly step: 'advance'; readonly ms: number }
  | { readonly step: 'oversleep'; readonly ms: number }
  | { readonly step: 'prune' }

/**
 * One step of a program, as data: a failing program is printed and shrunk. Jobs and running handlers are named by a number,
 * modulo those that exist; `by` is the mill that is called.
 */
export type Step = { readonly by: number } & (
  | InsertStep
  | { readonly step: 'transaction'; readonly steps: readonly InsertStep[]; readonly commits: boolean }
  | CommandStep
  | WorkStep
)

export interface Filter {
  readonly states?: readonly State[]
  readonly queues?: readonly string[]
  readonly names?: readonly string[]
  readonly group?: string
  readonly key?: string
}

const INSERTS: ReadonlySet<string> = new Set<InsertStep['step']>([
  'enqueue',
  'workflow',
  'schedule',
  'many',
  'flow',
  'seal',
  'sequence',
])
const COMMANDS: ReadonlySet<string> = new Set<CommandStep['step']>([
  'unschedule',
  'command',
  'sequenceVerb',
  'send',
  'workflowVerb',
  'edit',
  'addParents',
  'pauseQueue',
  'resumeQueue',
  'group',
  'all',
  'recurring',
  'recurs',
  'backfill',
  'find',
])

export function isInsert(step: Step): step is Extract<Step, InsertStep> {
  return INSERTS.has(step.step)
}

export function isCommand(step: Step): step is Extract<Step, CommandStep> {
  return COMMANDS.has(step.step)
}
