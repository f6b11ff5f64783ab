import { CHANNEL, DATABASE_NOW } from './sql-fragments.js'

/**
 * Settings of every session that is ours alone, whatever the role, the database or the server has as its default.
 *
 * Plans: a prepared statement may keep a plan from when a table was empty; without sequential scans that plan is by index from the
 * first row on. Every statement has a path by index (`test/postgres-plans.test.ts`), so the planner never adds the cost of a
 * disabled scan, which is above every threshold of JIT. Nor by bitmap, which reads all that matches before it sorts: a list with a
 * limit is read in the order of its index. And nothing of ours runs long enough to be worth compiling.
 *
 * Statements are written for read committed: a row that another transaction has changed is read again, not an error. How long one
 * may take is bounded here (`connection.ts`): a limit meant for an app's requests would end a claim on a server that is busy.
 */
const OWN =
  `set enable_seqscan = off; set enable_bitmapscan = off; set jit = off; ` +
  `set default_transaction_isolation = 'read committed'; set statement_timeout = 0; set idle_session_timeout = 0`

/** Transactions and notifications. */
export const sessionQueries = {
  now: DATABASE_NOW,
  begin: `begin`,
  /** For a connection that is ours alone. A statement that waits for a lock fails after 250 ms and is tried again. */
  setUpWrites: `set lock_timeout = '250ms'; ${OWN}`,
  /** The same with: a claim that is lost loses nothing, so it need not be flushed; a later flush takes it along. */
  setUpWork: `set lock_timeout = '250ms'; ${OWN}; set synchronous_commit = off`,
  /**
   * Statements in one text, since a session may not be ours alone. And a process that is suspended, or cut off, within its
   * transaction keeps no other process waiting for longer than ten seconds.
   */
  beginBounded:
    `begin isolation level read committed; set local lock_timeout = '250ms'; set local statement_timeout = 0; ` +
    `set local idle_in_transaction_session_timeout = '10s'; set local jit = off`,
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
