/**
 * Jobs that come after others. An open link keeps its child blocked. To-dos are only inserted and deleted, never
 * updated, so that two transactions that end jobs never wait for each other.
 */
export const links = (schema: string): readonly string[] => [
  `create table ${schema}.links (
    parent bigint not null,
    child bigint not null,
    on_failure text not null check (on_failure in ('wait', 'cancel', 'run', 'run-if-parked')),
    keep_ms bigint,
    primary key (parent, child)
  )`,
  // promoteJobs: whether a child has other open links; and its links when it ends
  `create index links_child on ${schema}.links (child)`,
  // promoteJobs: parents that ended or were deleted (gone), and those that got a child while they were unfinished
  // (recheck)
  `create table ${schema}.link_todos (
    number bigint generated always as identity primary key,
    parent bigint not null,
    id uuid,
    what text not null check (what in ('done', 'failed', 'cancelled', 'parked', 'gone', 'recheck'))
  )`,
  // promoteJobs: whether the statement that deleted a parent recorded its end
  `create index link_todos_parent on ${schema}.link_todos (parent)`,
]
