/** The statements that only a connection of the caller's needs; the rest is in queries.ts. */
export const callerQueries = {
  begin: `begin`,
  beginNow: `begin immediate`,
  commit: `commit`,
  rollback: `rollback`,

  /** Changes nothing, and takes the transaction's turn to write, or tells that it cannot have it. */
  takeTurn: `delete from main.millrace_lanes where false`,

  /** Around each call, so that one that is refused leaves nothing even if its error is swallowed. */
  savepoint: `savepoint millrace`,
  release: `release millrace`,
  rollbackTo: `rollback to millrace`,

  /** A savepoint that stands for a transaction: once it is gone, so is that. */
  holdName: (random: number): string => `millrace_${random.toString(36)}`,
  hold: (name: string): string => `savepoint ${name}`,
  letGo: (name: string): string => `release ${name}`,

  /** Stands for the transaction of `ctx.transaction`, which its function must not end. */
  holdWork: `savepoint millrace_work`,
  letGoWork: `release millrace_work`,

  /** What a user may have changed on the engine's connection. */
  settings: (synchronous: 'full' | 'normal'): string =>
    `pragma query_only = off; pragma synchronous = ${synchronous}; pragma wal_autocheckpoint = 0`,
  /** Around a call with the app's hooks, which may throw after the write. */
  outerSavepoint: `savepoint millracehooks`,
  outerRelease: `release millracehooks`,
  outerRollbackTo: `rollback to millracehooks`,

  files: `pragma database_list`,

  busyTimeout: `pragma busy_timeout`,
  setBusyTimeout: (ms: number): string => `pragma busy_timeout = ${ms}`,

  /** Says nothing about the data and is the connection's own, so it tells whether two ways lead to one connection. */
  mark: `pragma analysis_limit`,
  setMark: (mark: number): string => `pragma analysis_limit = ${mark}`,
}
