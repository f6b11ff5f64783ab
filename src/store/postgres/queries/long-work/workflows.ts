import { clock, jobRowFrom, laneOf, s, sort, turnLane } from '../sql-fragments.js'
import { fillOpen, stepColumns, stepRow, stepValues } from './sequences.js'

const stepRead = `s.address, s.kind, s.no, s.since, s.attempt, s.called_at, s.answered_at, s.until, s.value,
           encode(s.bytes, 'base64') as bytes, s.error, s.note`
const noSuspension = 'waits = null, wake_at = null, paused_from = null'
/** The lease is locked, so that an insert cannot follow a rescue that has ended the claim. Claims are given as JSON. */
const heldClaims = (claims: string, after = ''): string => `claims as materialized (
      select * from json_to_recordset(${claims}::text::json) as c (ref bigint, fence bigint)),
    held as materialized (
      select e.fence, e.refs, e.released from ${s}.leases e
      where e.fence = any(array(select fence from claims))${after} for share),
    mine as materialized (
      select c.ref, c.fence from claims c join held on held.fence = c.fence
      where c.ref = any(held.refs) and not c.ref = any(held.released))`
const isSuspended = `w.state in ('blocked', 'scheduled', 'retrying')`

/** Workflows: their inbox, their suspension and their log. */
export const workflowQueries = {
  ensureWorkflow: `
    insert into ${s}.workflows (ref)
    select ref from ${s}.jobs where id = $1::text::uuid and shape = 'workflow'
    on conflict (ref) do nothing`,
  ensureWorkflows: `
    insert into ${s}.workflows (ref)
    select ref from unnest($1::text::bigint[]) as a (ref) order by ref
    on conflict (ref) do nothing`,
  /** Before any other row of these workflows is locked. */
  lockWorkflows: `
    select ref from ${s}.workflows where ref = any($1::text::bigint[]) order by ref for update`,
  lockFreeWorkflows: `
    select ref, waits from ${s}.workflows where ref = any($1::text::bigint[]) order by ref for update skip locked`,
  workflowsAmong: `
    select ref from ${s}.jobs
    where id = any(array(select value::uuid from json_array_elements_text($1::text::json))) and shape = 'workflow'`,
  /** Others do not delete the job until this transaction ends. */
  holdJob: `select ref from ${s}.jobs where id = $1::text::uuid for key share`,
  readWorkflow: `
    select j.ref, j.name, j.queue, j.shape, j.state, j.stored_in = 'lease' as claimed, j.due_at, r.kind as requested,
           coalesce(w.run, 0) as run, 0 as first_run, w.waits, w.wake_at, w.paused_from, w.forget_from,
           (select s.ref from ${s}.steps s where s.ref = j.ref and s.run = coalesce(w.run, 0) limit 1) is not null as begun,
           (select i.ref from ${s}.inbox i where i.ref = j.ref and not i.taken and i.kind = 'cancel' limit 1) is not null
             or (select s.ref from ${s}.steps s
                 where s.ref = j.ref and s.run = coalesce(w.run, 0) and s.address = '!cancel' limit 1) is not null as cancelling
    from (${jobRowFrom(`(select *, xmin from ${s}.jobs where id = $1::text::uuid offset 0)`)}) as j
    left join lateral (select * from ${s}.workflows w where w.ref = j.ref limit 1) w on true
    left join lateral (select * from ${s}.requests r where r.ref = j.ref limit 1) r on true`,
  countAnswers: `
    select (select count(*)::integer from ${s}.steps
            where ref = $2::text::bigint and run = $1::text::integer and no is not null) as answers,
           (select count(*)::integer from ${s}.inbox
            where ref = $2::text::bigint and not taken and kind = 'event') as unread`,
  warnedSteps: `
    select note from ${s}.steps
    where ref = $1::text::bigint and run = $2::text::integer and note like '%"warnings":[%'
    order by number
    limit $3::text::integer`,
  /** Answered rows by number, then open ones in the order of their calls. */
  readSteps: `
    select ${stepRead}
    from ${s}.steps s
    where s.ref = $1::text::bigint and s.run = $2::text::integer
      and (s.no is null, coalesce(s.no, s.number)) > ($3::text::boolean, $4::text::bigint)
    order by s.no is null, coalesce(s.no, s.number)
    limit $5::text::integer`,
  findStep: `
    select no is null as open, coalesce(no, number) as position, note
    from ${s}.steps
    where ref = $1::text::bigint and run = $2::text::integer and address = $3`,
  openSteps: `
    select ${stepRead}
    from ${s}.steps s
    where s.ref = $1::text::bigint and s.run = $2::text::integer and s.no is null
    order by s.number`,
  /**
   * What the last suspension wrote is read and cleared, while the claim holds: a worker whose claim is lost must not clear
   * the suspension of another.
   */
  claimLogs: `
    with stored as materialized (
      select w.ref, w.run, w.last_fence, w.deadline_at, w.next_no, w.retried_at
      from ${s}.workflows w
      where w.ref = any(array(
        select c.ref from json_to_recordset($1::text::json) as c (ref bigint)))
      order by w.ref
      for update),
    ${heldClaims('$1', ' and (select count(*) from stored) >= 0')},
    marked as (
      update ${s}.jobs set shape = 'workflow' where ref = any(array(select ref from mine)) and shape is null),
    cleared as (
      update ${s}.workflows set ${noSuspension}, last_fence = null
      where ref = any(array(select ref from mine)))
    select m.ref, w.run, w.last_fence, w.deadline_at, w.next_no, w.retried_at,
           exists (select 1 from ${s}.steps s where s.ref = m.ref and s.run = coalesce(w.run, 0)) as has_rows
    from mine m left join stored w on w.ref = m.ref`,
  findUnbegun: `
    select a.ref
    from unnest($1::text::bigint[]) as a (ref)
    cross join lateral (
      select 1
      from ${s}.jobs j
      where j.ref = a.ref and j.shape = 'workflow'
        and not exists (select 1 from ${s}.steps s where s.ref = a.ref)
        and not exists (select 1 from ${s}.workflows w where w.ref = a.ref)
        and not exists (select 1 from ${s}.inbox i where i.ref = a.ref and not i.taken)
      offset 0) j`,
  readLogs: `
    select a.ref, ${stepRead}
    from rows from (unnest($1::text::bigint[]), unnest($2::text::integer[])) as a (ref, run)
    cross join lateral (select * from ${s}.steps s where s.ref = a.ref and s.run = a.run offset 0) s
    order by a.ref, s.no is null, s.no, s.number`,
  readInboxes: `
    select a.ref, i.number, i.kind, i.name, i.payload, encode(i.bytes, 'base64') as bytes, i.error, i.sent_at
    from unnest($1::text::bigint[]) as a (ref)
    cross join lateral (select * from ${s}.inbox i where i.ref = a.ref and not i.taken offset 0) i
    order by a.ref, i.number`,
  listInbox: `
    select number, kind, name, payload, encode(bytes, 'base64') as bytes, error, sent_at
    from ${s}.inbox
    where ref = $1::text::bigint and not taken and number > $2::text::bigint
    order by number
    limit $3::text::integer`,
  /** Parameters: the claims, their rows, and what they take from the inbox. Returns the claims that hold. */
  appendSteps: `
    with ${heldClaims('$1')},
    written as (
      insert into ${s}.steps (${stepColumns})
      select ${stepValues}
      from json_to_recordset($2::text::json) as a ${stepRow}
      where a.ref in (select ref from mine)
      ${fillOpen}),
    taken as materialized (
      select t.number from json_to_recordset($3::text::json) as t (ref bigint, number bigint)
      where t.ref in (select ref from mine)),
    removed as (
      delete from ${s}.inbox where number = any(array(select number from taken)) and id is null and not taken),
    marked as (
      update ${s}.inbox set taken = true, payload = null, bytes = null
      where number = any(array(select number from taken)) and id is not null and not taken)
    select ref from mine`,
  shareLeases: `
    with ${heldClaims('$1')}
    select ref from mine`,
  /** Parameters: one JSON array of what suspensions write. */
  suspend: `
    insert into ${s}.workflows (ref, waits, wake_at, paused_from, last_fence, deadline_at)
    select ref, waits, wake_at, paused_from, last_fence, deadline_at
    from json_to_recordset($1::text::json) as a (
      ref bigint, waits text, wake_at bigint, paused_from text, last_fence bigint, deadline_at bigint)
    on conflict (ref) do update
    set waits = excluded.waits, wake_at = excluded.wake_at, paused_from = excluded.paused_from,
        last_fence = excluded.last_fence, deadline_at = excluded.deadline_at`,
  endWaits: `update ${s}.workflows set ${noSuspension} where ref = $1::text::bigint`,
  restartWorkflow: `
    insert into ${s}.workflows (ref, run, deadline_at)
    values ($1::text::bigint, $2::text::integer, $3::text::bigint)
    on conflict (ref) do update
    set run = excluded.run, ${noSuspension}, last_fence = null, deadline_at = excluded.deadline_at,
        forget_from = null, next_no = 0`,
  putInput: `
    update ${s}.jobs
    set payload = $2, bytes = decode($3, 'base64'), options = coalesce($4::text, options)
    where ref = $1::text::bigint`,
  putForgetFrom: `
    insert into ${s}.workflows (ref, forget_from)
    values ($1::text::bigint, $2::text::integer)
    on conflict (ref) do update set forget_from = excluded.forget_from`,
  pauseWorkflow: `
    update ${s}.workflows set paused_from = $1 where ref = $2::text::bigint and waits is not null`,
  resumeWorkflow: `update ${s}.workflows set paused_from = null where ref = $1::text::bigint`,
  /** What a retry forgets: an answer, and what was called after it was given. */
  forgottenSteps: `
    select address from ${s}.steps
    where ref = $1::text::bigint and run = $2::text::integer and (no = $3::text::integer or since > $4::text::integer
        or (no > $5::text::integer and note like '%"unwound":true%'))
    order by no nulls last, number`,
  forgetSteps: `
    delete from ${s}.steps
    where ref = $1::text::bigint and run = $2::text::integer and (no = $3::text::integer or since > $4::text::integer
        or (no > $5::text::integer and note like '%"unwound":true%'))`,
  /** Before rows are forgotten. */
  keepNumbers: `
    update ${s}.workflows w
    set next_no = greatest(w.next_no, coalesce((
      select max(s.no) + 1 from ${s}.steps s where s.ref = w.ref and s.run = w.run), 0))
    where w.ref = $1::text::bigint`,
  retryWorkflow: `
    update ${s}.workflows
    set ${noSuspension}, last_fence = null, forget_from = null, retried_at = coalesce($1::text::bigint, ${clock}),
        deadline_at = case when deadline_at > coalesce($2::text::bigint, ${clock}) then deadline_at end
    where ref = $3::text::bigint`,
  putCancel: `
    insert into ${s}.inbox (ref, kind, error, sent_at)
    values ($1::text::bigint, 'cancel', $2, coalesce($3::text::bigint, ${clock}))`,
  putCallEnd: `
    insert into ${s}.inbox (ref, kind, name, error, sent_at)
    values ($1::text::bigint, 'call', $2, $3, coalesce($4::text::bigint, ${clock}))`,
  dropCancel: `delete from ${s}.inbox where ref = $1::text::bigint and not taken and kind = 'cancel'`,
  /** An event of an id that was sent before is not written again. */
  putEvent: `
    insert into ${s}.inbox (ref, kind, name, id, payload, bytes, sent_at)
    values ($1::text::bigint, 'event', $2, $3, $4, decode($5, 'base64'), coalesce($6::text::bigint, ${clock}))
    on conflict (ref, id) where id is not null do nothing
    returning number`,
  isInboxFull: `
    select 1 as is_full from ${s}.inbox
    where ref = $1::text::bigint and not taken
    order by number
    limit 1 offset $2::text::integer`,
  /** Whether an inbox has what its workflow waits for, or a cancel. */
  isWaitOver: `
    select 1 as is_over from ${s}.inbox i
    where i.ref = $1::text::bigint and not i.taken
      and (i.kind = 'cancel' or i.kind || ':' || i.name in (select value from json_array_elements_text($2::text::json)))
    limit 1`,
  /** Suspended workflows become ready, and are due now. Their rows in workflows are locked. */
  wakeWorkflows: `
    with clock as materialized (select coalesce($1::text::bigint, ${clock}) as now),
    due as materialized (
      select w.ref from ${s}.waiting w where w.ref = any($2::text::bigint[]) and (${isSuspended}) is true for update),
    taken as (delete from ${s}.waiting where ref = any(array(select ref from due)) returning ref, lane, state, grp),
    counted as (
      insert into ${s}.group_moves (grp, queue, state, members)
      select t.grp, n.queue, each.state, sum(each.members)
      from taken t
      cross join ${laneOf('t.lane')}
      cross join lateral (values (t.state, -1), ('ready', 1)) as each (state, members)
      where t.grp is not null
      group by 1, 2, 3),
    body as (
      update ${s}.jobs j set due_at = clock.now from clock where j.ref = any(array(select ref from taken))
      returning j.ref, j.lane, j.turn, j.priority, j.due_at, j.grp, coalesce(j.streak, 0) >= 2 as suspect),
    to_ready as (
      insert into ${s}.ready (lane, sort, ref) select ${turnLane('b.lane', 'b.turn')}, ${sort('b')}, b.ref from body b where not b.suspect),
    to_waiting as (
      insert into ${s}.waiting (ref, lane, state, due_at, grp)
      select b.ref, b.lane, 'ready', b.due_at, b.grp from body b where b.suspect),
    cleared as (update ${s}.workflows set ${noSuspension} where ref = any(array(select ref from taken)))
    select ref from taken`,
  /** Of these workflows, those that are still suspended: another process has written their rows again meanwhile. */
  stillSuspended: `
    select a.ref from unnest($1::text::bigint[]) as a (ref)
    where (select w.state from ${s}.waiting w where w.ref = a.ref) in ('blocked', 'scheduled', 'retrying')`,
  dueWakes: `
    select w.ref from ${s}.workflows w
    where w.wake_at <= $1::text::bigint and w.wake_at is not null and w.paused_from is null
    order by w.wake_at
    limit $2::text::integer
    for update skip locked`,
  /** A workflow that a command has moved wakes by itself: its time must not be found again. */
  endWakes: `update ${s}.workflows set ${noSuspension} where ref = any($1::text::bigint[])`,
  noteWake: `insert into ${s}.link_todos (parent, what) values ($1::text::bigint, 'wake')`,
  addCall: `
    insert into ${s}.links (parent, child, on_failure, keep_ms)
    select j.ref, $2::text::bigint, 'wake', $3::text::bigint
    from (select ref from ${s}.jobs where id = $1::text::uuid limit 1) j
    on conflict (parent, child) do nothing`,
  /** Of a job that this transaction has inserted: no claim can have it. */
  markCalled: `update ${s}.jobs set is_parent = true where id = $1::text::uuid`,
  /** The workflow waits for this job no longer. */
  dropCall: `
    delete from ${s}.links
    where child = $1::text::bigint and on_failure = 'wake'
      and parent = (select ref from ${s}.jobs where id = $2::text::uuid limit 1)
    returning keep_ms`,
  /** Of ended jobs, those that a workflow waits for. */
  calledAmong: `
    select distinct l.parent as ref from ${s}.links l where l.parent = any($1::text::bigint[]) and l.on_failure = 'wake'`,
  noteCallEnds: `
    insert into ${s}.link_todos (parent, id, what, ended_at, result, result_bytes, error)
    select a.parent, a.id, a.what, coalesce($1::text::bigint, ${clock}), a.result, decode(a.bytes, 'base64'), a.error
    from json_to_recordset($2::text::json) as a (parent bigint, id uuid, what text, result text, bytes text, error text)`,
  callersOf: `
    select l.parent, l.child
    from unnest($1::text::bigint[]) as a (parent)
    cross join lateral (
      select l.parent, l.child from ${s}.links l
      where l.parent = a.parent and l.on_failure = 'wake'
      limit $2::text::integer) l
    limit $2::text::integer`,
  /** Parents whose end is noted in another to-do: that one counts, whichever process works it off. */
  notedEnds: `
    select distinct parent from ${s}.link_todos where parent = any($1::text::bigint[]) and ended_at is not null`,
  /** Brings ends into inboxes, each once: a link that another process has deleted is not answered again. */
  deliverCalls: `
    with ends as materialized (
      select * from json_to_recordset($1::text::json) as a (
        parent bigint, id text, at bigint, result text, bytes text, error text)),
    wanted as materialized (
      select * from rows from (unnest($2::text::bigint[]), unnest($3::text::bigint[])) as each (parent, child)),
    gone as (
      delete from ${s}.links
      where ctid = any(array(
        select l.at
        from wanted
        cross join lateral (
          select l.ctid as at from ${s}.links l
          where l.parent = wanted.parent and l.child = wanted.child and l.on_failure = 'wake'
          limit 1
          for update) l))
      returning parent, child)
    insert into ${s}.inbox (ref, kind, name, payload, bytes, error, sent_at)
    select g.child, 'call', e.id, e.result, decode(e.bytes, 'base64'), e.error, e.at
    from gone g join ends e on e.parent = g.parent
    returning ref`,
}
