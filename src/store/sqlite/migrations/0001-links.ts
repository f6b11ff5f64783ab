/**
 * Links between jobs. An open link keeps its child blocked; a link of the policy 'wake' brings the end of a called job (the
 * parent) into the inbox of the workflow that waits for it (the child). A parent is named by its id, because the number of a
 * deleted job is reused; a child's links are deleted with it.
 */
export const sql = `
create table millrace_links (
  parent text not null,
  child integer not null,
  on_failure text not null check (on_failure in ('wait', 'cancel', 'run', 'run-if-parked', 'wake')),
  keep_ms integer,
  primary key (parent, child)
) strict, without rowid;

-- promoteJobs: whether a child has other open parents; and its links when it ends
create index millrace_links_child on millrace_links (child);

-- promoteJobs: parents that ended or were deleted, with links still to be handled. Written in the transaction of the
-- end. \`ended_at\`, \`result\`, \`error\`: how a called job ended, whatever becomes of its row; null in other to-dos.
create table millrace_link_todos (
  number integer primary key,
  parent text not null,
  what text not null check (what in ('done', 'failed', 'cancelled', 'parked', 'gone', 'recheck')),
  ended_at integer,
  result any,
  error text
) strict;
`
