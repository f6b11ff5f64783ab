/** Statements that only a caller's connection needs; the rest is in queries.ts. */
export const callerQueries = {
  begin: `begin`,
  beginNow: `begin immediate`,
  commit: `commit`,
  rollback: `rollback`,

  /** Changes nothing, but takes the write lock for the transaction, or fails when it cannot get it. */
  takeWriteLock: `delete from main.millrace_lanes where false`,

  /** Around each call, so that a refused call leaves nothing even if its error is caught. */
  savepoint: `savepoint millrace`,
  release: `release millrace`,
  rollbackTo: `rollback to millrace`,

  /** A savepoint that identifies a transaction: it exists as long as the transaction does. */
  holdName: (random: number): string => `millrace_${random.toString(36)}`,
  hold: (name: string): string => `savepoint ${name}`,
  releaseHold: (name: string): string => `release ${name}`,

  /** Identifies the transaction of `ctx.transaction`, which the handler's function must not end. */
  holdWork: `savepoint millrace_work`,
  releaseWork: `release millrace_work`,

  /** Resets settings that a user may have changed on the store's connection. */
  settings: (synchronous: 'full' | 'normal'): string =>
    `pragma query_only = off; pragma synchronous = ${synchronous}; pragma wal_autocheckpoint = 0`,
  /** Around a call with the app's hooks, which may throw after the write. */
  outerSavepoint: `savepoint millracehooks`,
  outerRelease: `release millracehooks`,
  outerRollbackTo: `rollback to millracehooks`,

  files: `pragma database_list`,

  busyTimeout: `pragma busy_timeout`,
  setBusyTimeout: (ms: number): string => `pragma busy_timeout = ${ms}`,

  /** A setting of the connection that does not affect the data: it shows whether two handles lead to one connection. */
  mark: `pragma analysis_limit`,
  setMark: (mark: number): string => `pragma analysis_limit = ${mark}`,
}
