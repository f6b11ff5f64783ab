import { parseDuration } from '../duration/duration.js'
import type { Duration } from '../duration/duration.js'
import type { EVENT } from './brands.js'
import type { AnyJob } from './define.js'
import type { StandardSchema } from './schema.js'

/** An event that workflows wait for, without the types of its payload. */
export interface AnyEvent {
  readonly [EVENT]: true
  readonly name: string
  readonly schema: StandardSchema | undefined
}

/** The options that a workflow has beside those of a job. */
export interface WorkflowLimits {
  /** The events it may wait for; others are refused. Default: any. */
  readonly events?: readonly AnyEvent[] | undefined
  /** How long the whole may take, over all restarts, from its first start. Default: no limit. */
  readonly deadline?: Duration | number | undefined
  /** How long unwinding after a cancel or the deadline may take. Default 10 min. */
  readonly cancelWithin?: Duration | number | undefined
  /** How many steps of one workflow act at once. Default 10. */
  readonly concurrency?: number | undefined
  /** How many answers one run may have. Default 10,000. */
  readonly steps?: number | undefined
  /** Awaiting something that is not of `w` rejects instead of warning. Default: that of the mill. */
  readonly strict?: boolean | undefined
}

/** The same, resolved. */
export interface WorkflowRules {
  readonly events: readonly AnyEvent[] | undefined
  readonly deadlineMs: number | undefined
  readonly cancelWithinMs: number
  readonly concurrency: number
  readonly steps: number
  /** Undefined: that of the mill. */
  readonly strict: boolean | undefined
}

const CANCEL_WITHIN_MS = 600_000
const CONCURRENCY = 10
const STEPS_MAX = 10_000

export function workflowRules({ options }: AnyJob): WorkflowRules {
  const { events, deadline, cancelWithin, concurrency, steps, strict } = options as WorkflowLimits
  return {
    events,
    deadlineMs: milliseconds(deadline),
    cancelWithinMs: milliseconds(cancelWithin) ?? CANCEL_WITHIN_MS,
    concurrency: concurrency ?? CONCURRENCY,
    steps: steps ?? STEPS_MAX,
    strict,
  }
}

function milliseconds(value: Duration | number | undefined): number | undefined {
  const parsed = parseDuration(value)
  return parsed.ok ? parsed.ms : undefined
}
