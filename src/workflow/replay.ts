import type { Codec } from '../codec/codec.js'
import { describeError } from '../codec/error-text.js'
import { checkPayload } from '../job/definition/schema.js'
import type { Timers } from '../world/timers.js'
import { Driver } from './driver.js'
import type { Difference } from './drift.js'
import type { DriverHost, LogRead, RunEnd, Workflow } from './host.js'

export type Replayed = { readonly fits: true } | ({ readonly fits: false } & Difference)

export interface ReplayParts {
  readonly timers: Timers
  now(): number
  codecOf(jobName: string): Codec
}

/** Gives the recorded answers to this code. Nothing acts, and nothing is written. */
export async function replayLog(workflow: Workflow, log: LogRead, parts: ReplayParts): Promise<Replayed> {
  const host = replayHost(parts, workflow.codec)
  const end: RunEnd = await new Driver(workflow, host).drive(host, { ...log, inbox: [] })
  return end.kind === 'drifted' ? { fits: false, recorded: end.recorded, called: end.called } : { fits: true }
}

function replayHost(parts: ReplayParts, codec: Codec): DriverHost {
  const never = (): Promise<never> => new Promise(() => undefined)
  return {
    timers: parts.timers,
    now: () => parts.now(),
    codecOf: (name) => parts.codecOf(name),
    append: () => undefined,
    readInbox: () => Promise.resolve([]),
    act: () => undefined,
    transact: never,
    abort: () => undefined,
    prepareChild: never,
    prepareInput: () => Promise.resolve(''),
    readEvent: async (event, payload) => {
      try {
        const decoded = payload === null ? undefined : codec.decode(payload)
        const checked = await checkPayload({ input: event.schema }, decoded)
        if (checked.ok) return { ok: true, payload: checked.value }
        return { ok: false, error: { name: 'InvalidPayloadError', message: checked.problems[0]?.message ?? '' } }
      } catch (error) {
        return { ok: false, error: describeError(error) }
      }
    },
    isInsideStep: () => false,
    draining: () => 'replay',
    logLine: () => '',
    progress: () => undefined,
    warn: () => undefined,
  }
}
