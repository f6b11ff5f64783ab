import type { Codec } from '../../codec/codec.js'
import type { ErrorRecord } from '../../codec/error-text.js'
import { reviveError } from '../../codec/error-text.js'
import { JobCancelledError, JobFailedError, JobGoneError, TimeoutError } from '../../errors.js'
import { formatDuration } from '../../job/duration/duration.js'
import type { State } from '../../job/rules/states.js'
import { isFinal } from '../../job/rules/states.js'
import type { JobRow } from '../../store/store.js'
import type { World } from '../../world/world.js'
import { decodeStored } from './records.js'
import type { ResultWaiters } from './result-waiters.js'

export interface ResultParts {
  readonly waiters: ResultWaiters
  readonly world: World
  readonly codecOf: (name: string) => Codec
}

/** Waits for a job to end, in any process. Resolves with its result, or rejects with the error that says how it ended. */
export function awaitResult(id: string, limitMs: number | undefined, parts: ResultParts): Promise<unknown> {
  return new Promise((resolve, reject) => {
    let state: State | 'unseen' = 'unseen'
    let stopTimer = (): void => undefined
    const giveUp = (error: Error): void => {
      stopTimer()
      reject(error)
    }
    const settle = (row: JobRow | undefined): boolean => {
      state = row?.state ?? 'unseen'
      if (row !== undefined && !isFinal(row.state)) return false
      stopTimer()
      if (row === undefined) reject(new JobGoneError(id))
      else conclude(row, parts.codecOf(row.name), resolve, reject)
      return true
    }
    const stopWaiting = parts.waiters.wait(id, settle, giveUp)
    const onTimeout = (): void => {
      stopWaiting()
      reject(new TimeoutError(`job ${id} did not end within ${formatDuration(limitMs ?? 0)}; it is ${state}`))
    }
    if (limitMs !== undefined) stopTimer = parts.world.timers.after(limitMs, onTimeout)
  })
}

function conclude(
  row: JobRow,
  codec: Codec,
  resolve: (value: unknown) => void,
  reject: (error: unknown) => void,
): void {
  if (row.state === 'cancelled')
    return reject(new JobCancelledError(row.id, row.name, row.reason ?? 'no reason was given'))
  if (row.state === 'failed') {
    const cause = row.error === null ? undefined : reviveError(JSON.parse(row.error) as ErrorRecord)
    return reject(new JobFailedError(row.id, row.name, cause?.message ?? row.reason ?? 'no reason was given', cause))
  }
  if (row.result === null) return resolve(undefined)
  const decoded = decodeStored(codec, row.result)
  if (decoded.ok) resolve(decoded.value)
  else
    reject(
      new JobFailedError(row.id, row.name, `it is done, but its result does not decode: ${decoded.why}`, undefined),
    )
}
