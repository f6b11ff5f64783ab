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
