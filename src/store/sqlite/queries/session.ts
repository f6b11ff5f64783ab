/** Transactions, snapshots, and pragmas of the connection. */
export const sessionQueries = {
  databaseNow: `select cast(unixepoch('subsec') * 1000 as integer) as now`,
  begin: `begin immediate`,
  commit: `commit`,
  rollback: `rollback`,
  savepoint: `savepoint settle`,
  release: `release settle`,
  rollbackTo: `rollback to settle`,
  /** One snapshot for several reads, also when the connection is in a transaction already. */
  beginSnapshot: `savepoint snapshot`,
  endSnapshot: `release snapshot`,
  dataVersion: `pragma data_version`,
  truncateCheckpoint: `pragma wal_checkpoint(truncate)`,
  passiveCheckpoint: `pragma wal_checkpoint(passive)`,
}
