import type { Codec } from '../../codec/codec.js'
import type { ErrorRecord } from '../../codec/error-text.js'
import { readLog, readReport } from '../../job/attempt/attempt-log.js'
import type { AttemptEntry } from '../../job/rules/decide.js'
import type { Encoded } from '../../job/rules/outcome.js'
import type { AttemptRecord, JobRecord } from '../../job/record.js'
import { readCaptured } from '../../job/attempt/capture.js'
import { readOptions, fromStoredValue } from '../../job/definition/stored-options.js'
import type { StoredOptions } from '../../job/definition/stored-options.js'
import { upcastPayload } from '../../job/definition/upcast.js'
import type { Upcast } from '../../job/definition/upcast.js'
import type { JobRow } from '../../store/store.js'

/**
 * The public record of a stored job. It never throws: the record says what does not decode. Captured values were encoded with
 * the mill's codec, not with the job's.
 */
export function toRecord(row: JobRow, codec: Codec, millCodec: Codec = codec, upcast?: readonly Upcast[]): JobRecord {
  const options = readOptions(row.options)
  const payload = decodePayload(codec, row.payload, upcast, options.version ?? 0)
  const result = row.result === null ? { ok: true as const, value: undefined } : decodeStored(codec, row.result)
  return {
    id: row.id,
    job: row.name,
    title: options.title,
    queue: row.queue,
    state: row.state,
    payload: payload.ok ? payload.value : undefined,
    result: result.ok ? result.value : undefined,
    error: row.error === null ? undefined : (JSON.parse(row.error) as ErrorRecord),
    reason: row.reason ?? (payload.ok ? undefined : `the payload does not decode: ${payload.why}`),
    attempt: row.attempt,
    crashes: row.crashes,
    priority: row.priority,
    labels: options.labels ?? [],
    key: row.key ?? undefined,
    after: row.after,
    group: row.group ?? undefined,
    meta: readMeta(codec, options.meta),
    captured: readCaptured(options.captured, millCodec),
    ...reportOf(row),
    ...(options.calledBy === undefined ? {} : { calledBy: options.calledBy.id }),
    tick: options.tick === undefined ? undefined : { schedule: options.tick.schedule, at: new Date(options.tick.at) },
    calledBy: options.calledBy?.id,
    createdAt: new Date(row.createdAt),
    dueAt: new Date(row.dueAt),
    startedAt: notBefore(row.startedAt, row.createdAt),
    settledAt: notBefore(row.settledAt, Math.max(row.startedAt ?? 0, row.createdAt)),
    expiresAt: date(row.expiresAt),
    attempts: attemptsOf(row),
    ...(payload.ok ? {} : { raw: row.payload }),
  }
}

/** A successful attempt without log lines writes no entry; it is shown by the times of the row. */
function attemptsOf(row: JobRow): AttemptRecord[] {
  const attempts = readLog(row.log).map(toAttempt)
  const last = attempts.at(-1)
  // An entry with an error or an exit belongs to an earlier attempt, even if that began in the same millisecond.
  const isLastRun =
    last !== undefined &&
    last.error === undefined &&
    last.exit === undefined &&
    last.startedAt.getTime() === row.startedAt
  const isListed = row.state !== 'done' || isLastRun
  if (!isListed && row.startedAt !== null && row.settledAt !== null)
    attempts.push(toAttempt({ startedAt: row.startedAt, endedAt: row.settledAt, worker: row.worker ?? '' }))
  return attempts
}

function toAttempt(entry: AttemptEntry): AttemptRecord {
  const { startedAt, endedAt } = entry
  return { ...entry, startedAt: new Date(startedAt), endedAt: new Date(Math.max(startedAt, endedAt)) }
}

/** Both are undefined also where they are encrypted, and this mill has no keys. */
function reportOf({ progress: text, state, worker }: JobRow): Pick<JobRecord, 'progress' | 'log' | 'worker'> {
  const holder = state === 'running' && worker !== null ? { worker } : {}
  if (text === null) return { progress: undefined, ...holder }
  const { done, total, log } = readReport(text)
  const progress = done === undefined ? undefined : { done, total }
  return state === 'running' && log !== undefined ? { progress, log, ...holder } : { progress, ...holder }
}

/** When the clock was set back meanwhile, the end would be before the start. The start is shown for both then. */
function notBefore(ms: number | null, earliest: number): Date | undefined {
  return ms === null ? undefined : new Date(Math.max(ms, earliest))
}

function readMeta(codec: Codec, meta: StoredOptions['meta']): unknown {
  if (meta === undefined) return undefined
  const decoded = decodeStored(codec, fromStoredValue(meta))
  return decoded.ok ? decoded.value : undefined
}

type Decoded = { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly why: string }

export function decodeStored(codec: Codec, stored: Encoded): Decoded {
  try {
    return { ok: true, value: codec.decode(stored) }
  } catch (error) {
    return { ok: false, why: error instanceof Error ? error.message : String(error) }
  }
}

/** The payload in its current version. Without a definition of the job its versions are not known: it is shown as it is stored. */
export function decodePayload(
  codec: Codec,
  stored: Encoded,
  upcast: readonly Upcast[] | undefined,
  version: number,
): Decoded {
  const decoded = decodeStored(codec, stored)
  if (!decoded.ok || upcast === undefined || upcast.length === version) return decoded
  try {
    return { ok: true, value: upcastPayload(upcast, version, decoded.value) }
  } catch (error) {
    return { ok: false, why: error instanceof Error ? error.message : String(error) }
  }
}

function date(ms: number | null): Date | undefined {
  return ms === null ? undefined : new Date(ms)
}
