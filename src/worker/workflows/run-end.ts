import { describeError } from '../../codec/error-text.js'
import type { ErrorRecord } from '../../codec/error-text.js'
import type { Registered } from '../../job/definition/registry.js'
import { writeOptions } from '../../job/definition/stored-options.js'
import type { StoredOptions } from '../../job/definition/stored-options.js'
import type { Outcome } from '../../job/rules/outcome.js'
import type { WorkflowEnd } from '../../store/workflows.js'
import { describeDrift } from '../../workflow/drift.js'
import type { LogRest, RunEnd } from '../../workflow/host.js'
import { succeeded } from '../attempt/run.js'
import type { Running } from '../attempt/running.js'

/** What the end of a run makes of its claim. */
export interface EndedRun {
  readonly outcome: Outcome
  /** Written in the transaction of the settlement; undefined: nothing. */
  readonly written: WorkflowEnd | undefined
}

export function endedRun(
  end: RunEnd,
  { registered, options }: Pick<Running, 'registered' | 'options'>,
  run: number,
): EndedRun {
  const withRest = (outcome: Outcome, rest: LogRest, more: Partial<WorkflowEnd> = {}): EndedRun => {
    const { rows, cancelled, deadlineAt, forgetFrom } = rest
    return { outcome, written: { run, rows, taken: [], children: [], cancelled, deadlineAt, forgetFrom, ...more } }
  }
  switch (end.kind) {
    case 'done': {
      const outcome = doneOutcome(succeeded(registered, end.value), end.note)
      return isPlainEnd(end.rest, run) ? { outcome, written: undefined } : withRest(outcome, end.rest)
    }
    case 'failed':
      return withRest({ kind: 'aborted', error: describeError(end.error) }, end.rest)
    case 'cancelled': {
      const kept = succeeded(registered, end.value)
      const result = kept.kind === 'succeeded' ? kept.result : null
      const error = end.error === undefined ? null : describeError(end.error)
      return withRest({ kind: 'cancelled', error, reason: end.reason, result }, end.rest)
    }
    case 'suspended': {
      const { to, waits, wakeAt } = end
      return withRest({ kind: 'suspended', to }, end.rest, { suspended: { waits, wakeAt } })
    }
    case 'yielded':
      return withRest({ kind: 'suspended', to: 'ready' }, end.rest, {
        suspended: { waits: [], wakeAt: null },
      })
    case 'restarted':
      return withRest({ kind: 'restarted' }, end.rest, {
        restarted: { input: end.input, options: optionsWith(options, registered) },
      })
    case 'drifted':
      return { outcome: { kind: 'drifted', error: driftError(end) }, written: undefined }
    case 'full':
      return { outcome: { kind: 'log-limit', error: limitError(end.why) }, written: undefined }
    case 'unreadable':
      return { outcome: { kind: 'unreadable', error: end.error }, written: undefined }
    case 'lost':
      return { outcome: { kind: 'released' }, written: undefined }
    default:
      return end satisfies never
  }
}

/** It ends like a plain job: nothing is left to write, and no link of a called job can be left, also of an earlier run. */
function isPlainEnd({ rows, cancelled, forgetFrom, hasCalls }: LogRest, run: number): boolean {
  return rows.length + cancelled.length === 0 && forgetFrom === null && !hasCalls && run === 0
}

/** A new input is of the current version; undefined where the stored options say so already. */
function optionsWith(options: StoredOptions, { upcast }: Registered): string | undefined {
  if ((options.version ?? 0) === upcast.length) return undefined
  return writeOptions({ ...options, version: upcast.length }) ?? undefined
}

function doneOutcome(outcome: Outcome, note: string | undefined): Outcome {
  if (note === undefined || outcome.kind !== 'succeeded') return outcome
  return { ...outcome, note: outcome.note === undefined ? note : `${outcome.note}; ${note}` }
}

function driftError(end: Extract<RunEnd, { kind: 'drifted' }>): ErrorRecord {
  const { recorded, called } = end
  return {
    name: 'NonDeterminismError',
    message: describeDrift(end),
    code: 'E_NON_DETERMINISM',
    props: { recorded: JSON.stringify(recorded), called: JSON.stringify(called) },
  }
}

function limitError(why: string): ErrorRecord {
  return { name: 'LogLimitError', message: why, code: 'E_LOG_LIMIT' }
}
