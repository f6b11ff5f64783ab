import { CHANNEL, DATABASE_NOW } from './sql-fragments.js'

/**
 * Settings of every session of ours, whatever the default of the role, the database or the server.
 *
 * Plans: a prepared statement may keep a plan from when a table was empty; without sequential scans that plan uses an
 * index from the first row on. Every statement has a plan by index (`test/postgres-plans.test.ts`), so the planner
 * never adds the cost of a disabled scan, which is above every threshold of JIT. No bitmap scans, which read all
 * matches before they sort: a list with a limit is read in the order of its index. No JIT: no statement of ours runs
 * long enough to be worth compiling.
 *
 * Statements are written for read committed: a row that another transaction has changed is read again, and is not an
 * error. Their duration is bounded by the client (`connection.ts`): a limit meant for an app's requests would end a
 * claim on a busy server.
 */
const OWN =
  `set enable_seqscan = off; set enable_bitmapscan = off; set jit = off; ` +
  `set default_transaction_isolation = 'read committed'; set statement_timeout = 0; set idle_session_timeout = 0`

/** Transactions and notifications. */
export const sessionQueries = {
  now: DATABASE_NOW,
  begin: `begin`,
  /** For a connection of our own. A statement that waits for a lock fails after 250 ms and is retried. */
  setUpWrites: `set lock_timeout = '250ms'; ${OWN}`,
  /** The same without flushes: a lost claim loses no work, so it need not be flushed; a later flush covers it. */
  setUpWork: `set lock_timeout = '250ms'; ${OWN}; set synchronous_commit = off`,
  /**
   * One text with several statements, since behind a pooler a session may not be ours alone. A process that is
   * suspended or disconnected within its transaction makes other processes wait for ten seconds at most.
   */
  beginBounded:
    `begin isolation level read committed; set local lock_timeout = '250ms'; set local statement_timeout = 0; ` +
    `set local idle_in_transaction_session_timeout = '10s'; set local jit = off`,
  /**
   * A handler's transaction: it may be long, but a machine that is gone must not hold its locks for the system's two
   * hours.
   */
  beginForHandler: `begin; set local tcp_keepalives_idle = 10; set local tcp_keepalives_interval = 5; set local tcp_keepalives_count = 3`,
  commit: `commit`,
  rollback: `rollback`,
  savepoint: `savepoint millrace`,
  release: `release savepoint millrace`,
  rollbackTo: `rollback to savepoint millrace`,
  listen: `listen "${CHANNEL}"`,
  notify: `select pg_notify('${CHANNEL}', $1)`,
}
