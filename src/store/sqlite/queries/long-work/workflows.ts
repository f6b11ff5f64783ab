import { PRIORITY_STEP_MS } from '../../../rows/ordering.js'

const stepRow =
  's.address, s.kind, s.no, s.since, s.attempt, s.called_at, s.answered_at, s.until, s.value, s.error, s.note'
/** The inbox names a job by its id. */
const jobOf = '(select id from millrace_jobs where seq = ?)'
const suspensionColumns = 'waits = null, wake_at = null, paused_from = null'

/** Workflows: their inbox, their suspension and their log. */
export const workflowQueries = {
  /** A job that a process enqueued without knowing that it is a workflow. */
  markWorkflow: `
    update millrace_jobs
    set shape = 'workflow'
    where seq = ? and shape is null`,
  ensureWorkflow: `
    insert into millrace_workflows (seq)
    select seq
    from millrace_jobs
    where id = ? and shape = 'workflow'
    on conflict (seq) do nothing`,
  /** On PostgreSQL it keeps others from deleting the job. */
  holdJob: `
    select seq as ref
    from millrace_jobs
    where id = ?`,
  readWorkflow: `
    select j.seq as ref, n.name, n.queue, j.shape, coalesce(l.state, h.state) as state, l.fence is not null as claimed,
           coalesce(l.due_at, h.due_at) as due_at, r.kind as requested, coalesce(w.run, 0) as run, coalesce(w.first_run, 0) as first_run,
           w.waits, w.wake_at, w.paused_from, w.forget_from, w.deadline_at,
           exists (select 1 from millrace_steps s where s.seq = j.seq and s.run = coalesce(w.run, 0)) as begun,
           exists (select 1 from millrace_inbox i where i.job = j.id and i.taken = 0 and i.kind = 'cancel')
             or exists (
               select 1 from millrace_steps s
               where s.seq = j.seq and s.run = coalesce(w.run, 0) and s.address = '!cancel') as cancelling
    from millrace_jobs j
    join millrace_lanes n on n.lane = j.lane
    left join millrace_live l on l.seq = j.seq
    left join millrace_history h on h.seq = j.seq
    left join millrace_workflows w on w.seq = j.seq
    left join millrace_requests r on r.seq = j.seq
    where j.id = ?`,
  countAnswers: `
    select (select count(*) from millrace_steps s where s.seq = j.seq and s.run = ? and s.no is not null) as answers,
           (select count(*) from millrace_inbox i where i.job = j.id and i.taken = 0 and i.kind = 'event') as unread
    from millrace_jobs j
    where j.seq = ?`,
  warnedSteps: `
    select note
    from millrace_steps
    where seq = ? and run = ? and note like '%"warnings":[%'
    order by number
    limit ?`,
  /** Answered rows by number, then open ones in the order of their calls. Parameters: job, run, the position, how many. */
  readSteps: `
    select ${stepRow}
    from millrace_steps s
    where s.seq = ? and s.run = ? and (s.no is null, coalesce(s.no, s.number)) > (?, ?)
    order by s.no is null, coalesce(s.no, s.number)
    limit ?`,
  findStep: `
    select no is null as open, coalesce(no, number) as position, note
    from millrace_steps
    where seq = ? and run = ? and address = ?`,
  openSteps: `
    select ${stepRow}
    from millrace_steps s
    where s.seq = ? and s.run = ? and s.no is null
    order by s.number`,
  /** The rows of a run for its next claim, and the number after the last answer. */
  readLog: `
    select ${stepRow}
    from millrace_steps s
    where s.seq = ? and s.run = ?
    order by s.no is null, s.no, s.number`,
  readInbox: `
    select number, kind, name, payload, error, sent_at
    from millrace_inbox
    where job = ${jobOf} and taken = 0
    order by number`,
  listInbox: `
    select number, kind, name, payload, error, sent_at
    from millrace_inbox
    where job = ${jobOf} and taken = 0 and number > ?
    order by number
    limit ?`,
  /** What a claim that still holds finds of its workflow. Most have no suspension, no row in the log and nothing in the inbox. */
  claimLog: `
    select j.shape, w.seq is not null as was_suspended, coalesce(w.run, 0) as run, coalesce(w.first_run, 0) as first_run,
           w.last_fence, w.deadline_at, coalesce(w.next_no, 0) as next_no, w.retried_at,
           exists (select 1 from millrace_steps s where s.seq = l.seq and s.run = coalesce(w.run, 0)) as has_rows,
           exists (select 1 from millrace_inbox i where i.job = j.id and i.taken = 0) as has_inbox
    from millrace_live l
    join millrace_jobs j on j.seq = l.seq
    left join millrace_workflows w on w.seq = l.seq
    where l.seq = ? and l.fence = ?`,
  findUnbegun: `
    select j.seq
    from json_each(?) as claimed
    join millrace_jobs j on j.seq = claimed.value
    where j.shape = 'workflow'
      and not exists (select 1 from millrace_steps s where s.seq = j.seq)
      and not exists (select 1 from millrace_workflows w where w.seq = j.seq)
      and not exists (select 1 from millrace_inbox i where i.job = j.id and i.taken = 0)`,
  /** The claim reads the log: what the last suspension wrote is used. */
  clearSuspension: `
    update millrace_workflows
    set ${suspensionColumns}, last_fence = null
    where seq = ?`,
  endWaits: `
    update millrace_workflows
    set ${suspensionColumns}
    where seq = ?`,
  suspend: `
    insert into millrace_workflows (seq, waits, wake_at, paused_from, last_fence, deadline_at)
    values (?, ?, ?, ?, ?, ?)
    on conflict (seq) do update
    set waits = excluded.waits, wake_at = excluded.wake_at, paused_from = excluded.paused_from,
        last_fence = excluded.last_fence, deadline_at = excluded.deadline_at`,
  restartWorkflow: `
    insert into millrace_workflows (seq, run, deadline_at)
    values (?, ?, ?)
    on conflict (seq) do update
    set run = excluded.run, ${suspensionColumns}, last_fence = null, deadline_at = excluded.deadline_at,
        forget_from = null, next_no = 0`,
  putInput: `
    update millrace_jobs
    set payload = ?, options = coalesce(?, options)
    where seq = ?`,
  putForgetFrom: `
    insert into millrace_workflows (seq, forget_from)
    values (?, ?)
    on conflict (seq) do update set forget_from = excluded.forget_from`,
  pauseWorkflow: `
    update millrace_workflows
    set paused_from = ?
    where seq = ? and waits is not null`,
  resumeWorkflow: `
    update millrace_workflows
    set paused_from = null
    where seq = ?`,
  /** What a retry forgets: an answer, and what was called after it was given. */
  forgottenSteps: `
    select address
    from millrace_steps
    where seq = ? and run = ?
      and (no = ? or since > ? or (no > ? and note like '%"unwound":true%'))
    order by coalesce(no, 1e9), number`,
  forgetSteps: `
    delete from millrace_steps
    where seq = ? and run = ?
      and (no = ? or since > ? or (no > ? and note like '%"unwound":true%'))`,
  /** Before rows are forgotten. */
  keepNumbers: `
    update millrace_workflows
    set next_no = max(next_no, coalesce((
      select max(no) + 1 from millrace_steps s where s.seq = millrace_workflows.seq and s.run = millrace_workflows.run), 0))
    where seq = ?`,
  /** Parameters: the store's now, twice, and the job. */
  retryWorkflow: `
    update millrace_workflows
    set ${suspensionColumns}, last_fence = null, forget_from = null, retried_at = ?,
        deadline_at = case when deadline_at > ? then deadline_at end
    where seq = ?`,
  putCancel: `
    insert into millrace_inbox (job, kind, error, sent_at)
    values (${jobOf}, 'cancel', ?, ?)`,
  /** For PostgreSQL: here the workflow is woken in the caller's transaction. */
  noteWake: `select ? as ref`,
  putCallEnd: `
    insert into millrace_inbox (job, kind, name, error, sent_at)
    values (${jobOf}, 'call', ?, ?, ?)`,
  dropCancel: `
    delete from millrace_inbox
    where job = ${jobOf} and taken = 0 and kind = 'cancel'`,
  /** A row that is written already has the same id, and is not written again. */
  putInbox: `
    insert into millrace_inbox (job, kind, name, id, payload, error, sent_at)
    values (${jobOf}, ?, ?, ?, ?, ?, ?)
    on conflict (job, id) where id is not null do nothing
    returning number`,
  isInboxFull: `
    select 1 as is_full
    from millrace_inbox
    where job = ${jobOf} and taken = 0
    limit 1 offset ?`,
  takeInbox: `
    delete from millrace_inbox
    where job = ${jobOf} and id is null and taken = 0 and number in (select value from json_each(?))`,
  /** An event with an id stays, so that a second one of that id is refused. */
  markTaken: `
    update millrace_inbox
    set taken = 1, payload = null
    where job = ${jobOf} and id is not null and taken = 0 and number in (select value from json_each(?))`,
  /** Whether the inbox has what a suspended workflow waits for, or a cancel. Parameters: the job, and its waits as JSON. */
  isWaitOver: `
    select 1 as is_over
    from millrace_inbox
    where job = ${jobOf} and taken = 0
      and (kind = 'cancel' or kind || ':' || name in (select value from json_each(?)))
    limit 1`,
  /** A suspended workflow becomes ready, and is due now. */
  wakeWorkflow: `
    update millrace_live
    set state = 'ready', due_at = ?, held = null,
        sort = ? - (select priority from millrace_jobs where seq = millrace_live.seq) * ${PRIORITY_STEP_MS}
    where seq = ? and fence is null and state in ('blocked', 'scheduled', 'retrying')`,
  /** Its state and group, for the counts. */
  suspendedMember: `
    select l.state, l.fence is not null as claimed, j.grp as "group", n.queue
    from millrace_live l
    join millrace_jobs j on j.seq = l.seq
    join millrace_lanes n on n.lane = j.lane
    where l.seq = ?`,
  dueWakes: `
    select seq
    from millrace_workflows
    where wake_at <= ? and paused_from is null
    order by wake_at
    limit ?`,
  nextWake: `
    select min(wake_at) as due
    from millrace_workflows
    where wake_at is not null and paused_from is null`,
  addCall: `
    insert into millrace_links (parent, child, on_failure, keep_ms)
    values (?, ?, 'wake', ?)
    on conflict (parent, child) do nothing`,
  /** The workflow waits for this job no longer. */
  dropCall: `
    delete from millrace_links
    where child = ? and parent = ? and on_failure = 'wake'
    returning keep_ms`,
  /** Of ended jobs, those that a workflow waits for. */
  calledAmong: `
    select e.value as id
    from json_each(?) e
    where exists (select 1 from millrace_links where parent = e.value and on_failure = 'wake')`,
  noteCallEnd: `
    insert into millrace_link_todos (parent, what, ended_at, result, error)
    values (?, ?, ?, ?, ?)`,
  callersOf: `
    select k.child, w.waits
    from millrace_links k
    left join millrace_workflows w on w.seq = k.child
    where k.parent = ? and k.on_failure = 'wake'
    limit ?`,
}
