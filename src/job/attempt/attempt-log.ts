import type { AttemptEntry } from '../rules/decide.js'

/** The attempts a job remembers: the first few and the latest, since a job may be tried for ever. */
const FIRST_KEPT = 5
const LATEST_KEPT = 20

/** The log is JSON text, so NUL and lone surrogates are escaped and any store keeps it as it is. */
export function appendLog(log: string | null, entry: AttemptEntry): string {
  const entries = readLog(log)
  entries.push(entry)
  if (entries.length > FIRST_KEPT + LATEST_KEPT) entries.splice(FIRST_KEPT, entries.length - FIRST_KEPT - LATEST_KEPT)
  return JSON.stringify(entries)
}

/** A command is a line of its own, of no worker. Undefined: one that leaves no trace. */
export function logCommand(log: string | null, exit: string | undefined, now: number): string | null {
  return exit === undefined ? log : appendLog(log, { startedAt: now, endedAt: now, worker: '', exit })
}

export function readLog(log: string | null): AttemptEntry[] {
  return log === null ? [] : (JSON.parse(log) as AttemptEntry[])
}
