import type { AttemptEntry } from '../rules/decide.js'

/** A job keeps its first and its latest attempts: it may be retried without a limit, and the log must be bounded. */
const FIRST_KEPT = 5
const LATEST_KEPT = 20

/** The log is JSON text, in which NUL and lone surrogates are escaped: every store can hold it. */
export function appendLog(log: string | null, entry: AttemptEntry): string {
  const entries = readLog(log)
  entries.push(entry)
  // Of a shorter log, a count below 0 removes nothing.
  entries.splice(FIRST_KEPT, entries.length - FIRST_KEPT - LATEST_KEPT)
  return JSON.stringify(entries)
}

/** A command has an entry of its own, without a worker. With `exit` undefined no entry is added. */
export function logCommand(log: string | null, exit: string | undefined, now: number): string | null {
  return exit === undefined ? log : appendLog(log, { startedAt: now, endedAt: now, worker: '', exit })
}

export function readLog(log: string | null): AttemptEntry[] {
  return log === null ? [] : (JSON.parse(log) as AttemptEntry[])
}

/** What a running attempt last reported: its progress, and the last lines that it logged. */
interface AttemptReport {
  readonly done?: number | undefined
  readonly total?: number | undefined
  readonly log?: readonly string[] | undefined
}

export function readReport(text: string | null): AttemptReport {
  return text === null ? {} : (JSON.parse(text) as AttemptReport)
}
