import { CHANNEL, DATABASE_NOW } from './words.js'

/** Transactions, and what is told. */
export const sessionQueries = {
  now: DATABASE_NOW,
  begin: `begin`,
  /**
   * For a connection that is ours alone. Nobody's lock holds it up for long: what waited goes to the end of the line. And every
   * statement of ours looks by an index: a plan that was made and kept when a table was empty would read all of it later.
   */
  setUpWrites: `set lock_timeout = '250ms'; set enable_seqscan = off`,
  /** The same with: a claim that is lost loses nothing, so it need not be flushed; a later flush takes it along. */
  setUpWork: `set lock_timeout = '250ms'; set enable_seqscan = off; set synchronous_commit = off`,
  /**
   * Statements in one text, since a session may not be ours alone. And a process that is suspended, or cut off, within its
   * transaction keeps nobody else waiting for longer than ten seconds.
   */
  beginBounded: `begin; set local lock_timeout = '250ms'; set local idle_in_transaction_session_timeout = '10s'`,
  /** A handler's: it may take its time, but a machine that is gone must not hold its locks for the system's two hours. */
  beginLent: `begin; set local tcp_keepalives_idle = 10; set local tcp_keepalives_interval = 5; set local tcp_keepalives_count = 3`,
  commit: `commit`,
  rollback: `rollback`,
  savepoint: `savepoint millrace`,
  release: `release savepoint millrace`,
  rollbackTo: `rollback to savepoint millrace`,
  listen: `listen "${CHANNEL}"`,
  notify: `select pg_notify('${CHANNEL}', $1)`,
}
