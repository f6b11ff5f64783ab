/**
 * Jobs that come after others. An open link keeps its child blocked; a link of the policy 'wake' brings the end of a called
 * job (the parent) into the inbox of the workflow that waits for it (the child). To-dos are only inserted and deleted, never
 * updated, so that two transactions that end jobs never wait for each other.
 */
export const links = (schema: string): readonly string[] => [
  `create table ${schema}.links (
    parent bigint not null,
    child bigint not null,
    on_failure text not null check (on_failure in ('wait', 'cancel', 'run', 'run-if-parked', 'wake')),
    keep_ms bigint,
    primary key (parent, child)
  )`,
  // promoteJobs: whether a child has other open links; and its links when it ends
  `create index links_child on ${schema}.links (child)`,
  // promoteJobs: parents that ended or were deleted (gone), and those that got a child while they were unfinished
  // (recheck). wake: an event was sent to this workflow in a caller's transaction. `ended_at`, `result`, `error`: how a called
  // job ended, whatever becomes of its row; null in other to-dos.
  `create table ${schema}.link_todos (
    number bigint generated always as identity primary key,
    parent bigint not null,
    id uuid,
    what text not null check (what in ('done', 'failed', 'cancelled', 'parked', 'gone', 'recheck', 'wake')),
    ended_at bigint,
    result text,
    result_bytes bytea,
    error text
  )`,
  // promoteJobs: whether the statement that deleted a parent recorded its end
  `create index link_todos_parent on ${schema}.link_todos (parent)`,
]
