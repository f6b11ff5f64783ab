const stepColumns = 'seq, run, address, kind, no, since, attempt, called_at, answered_at, until, value, error, note'
/**
 * An answer fills an open row; a row that has its answer stays as it is. The note of a call names the called job: it is
 * kept.
 */
const fillOpen = `on conflict (seq, run, address) do update
    set kind = excluded.kind, no = excluded.no, attempt = excluded.attempt, called_at = excluded.called_at,
        answered_at = excluded.answered_at, until = excluded.until, value = excluded.value, error = excluded.error,
        note = case
          when kind in ('call', 'enqueue', 'unwound') then json_patch(coalesce(note, '{}'), coalesce(excluded.note, '{}'))
          else excluded.note
        end
    where no is null`

const sizedItems = (list: string): string => `
    select payload
    from (
      select payload, sum(size) over (order by idx) - size as before
      from (
        select idx, payload, length(cast(payload as blob)) as size
        from millrace_items
        where list = ${list} and idx >= ?
        order by idx
        limit ?))
    where before < ?`

/** Sequences: their items, and the log of what they did. */
export const sequenceQueries = {
  addList: `
    insert into millrace_lists (id, total, made_at)
    values (?, ?, ?)
    returning list`,
  findList: `
    select list
    from millrace_lists
    where id = ?`,
  addItem: `
    insert into millrace_items (list, idx, payload)
    values (?, ?, ?)`,
  /** Parameters: the job and its run, or a list; the store's now, and when the rows may be removed. */
  addLeftover: `
    insert into millrace_leftovers (seq, run, list, due_at)
    values (?, ?, ?, ? + ?)`,
  dropLeftover: `
    delete from millrace_leftovers
    where list = ? and seq is null`,
  hastenLeftover: `
    update millrace_leftovers
    set due_at = 0
    where seq is null and list = (select list from millrace_lists where id = ?)`,
  markSequence: `
    update millrace_jobs
    set shape = 'sequence'
    where id = ?
    returning seq as ref`,
  /** The number may have been that of a deleted sequence, whose rows are not removed yet: the next run has none. */
  putWorkflow: `
    insert into millrace_workflows (seq, run, waits)
    values (?, 0, ?)
    on conflict (seq) do update
    set run = run + 1, waits = excluded.waits`,
  /** SQLite has one writer, so there is nothing to lock. */
  lockWorkflow: `
    select w.seq as ref
    from millrace_jobs j
    join millrace_workflows w on w.seq = j.seq
    where j.id = ?`,
  startWorkflow: `
    update millrace_workflows
    set waits = null
    where seq = ?`,
  resetWorkflow: `
    update millrace_workflows
    set run = run + 1, waits = ?
    where seq = ?`,
  clearAttempts: `
    update millrace_steps
    set attempt = 0
    where seq = ? and run = ? and no is null`,
  readSequence: `
    select j.seq as ref, n.name, n.queue, j.shape, coalesce(l.state, h.state) as state, r.kind as requested,
           w.run, w.waits, t.total, coalesce(l.error, h.error) as error, coalesce(l.reason, h.reason) as reason,
           l.progress, s.address, s.no
    from millrace_jobs j
    join millrace_lanes n on n.lane = j.lane
    left join millrace_live l on l.seq = j.seq
    left join millrace_history h on h.seq = j.seq
    left join millrace_workflows w on w.seq = j.seq
    left join millrace_requests r on r.seq = j.seq
    left join millrace_lists t on t.id = j.id
    left join millrace_steps s on s.number = (
      select number from millrace_steps
      where seq = j.seq and run = w.run
      order by address desc
      limit 1)
    where j.id = ?`,
  readOutput: `
    select n.name, j.shape, s.address, s.value, s.note, s.attempt, s.called_at, s.answered_at
    from millrace_jobs j
    join millrace_lanes n on n.lane = j.lane
    left join millrace_workflows w on w.seq = j.seq
    left join millrace_steps s on s.seq = j.seq and s.run = w.run and s.address >= ? and s.no is not null
    where j.id = ?
    order by s.address
    limit ?`,
  /** The last two rows of the log: the last one may be open, and then the one before has the result of the item before. */
  readPosition: `
    select coalesce(w.run, 0) as run, t.list, t.total, s.address, s.no, s.attempt, s.value
    from millrace_jobs j
    join millrace_lists t on t.id = j.id
    left join millrace_workflows w on w.seq = j.seq
    left join millrace_steps s on s.seq = j.seq and s.run = coalesce(w.run, 0)
    where j.seq = ?
    order by s.address desc
    limit 2`,
  /** At least one item, and no more than fit into so many bytes. */
  readItems: sizedItems('?'),
  itemsOfJob: sizedItems('(select list from millrace_lists where id = ?)'),
  /** Written only under the fence. An answer fills an open row; a row that has its answer stays as it is. */
  appendStep: `
    insert into millrace_steps (${stepColumns})
    select seq, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?
    from millrace_live
    where seq = ? and fence = ?
    ${fillOpen}`,
  /** The same in the transaction that has just ended the claim, whose fence it has checked. */
  settleStep: `
    insert into millrace_steps (${stepColumns})
    values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ${fillOpen}`,
  isAnswered: `
    select 1 as answered
    from millrace_steps
    where seq = ? and run = ? and address = ? and no is not null`,
  endStreak: `
    update millrace_live
    set streak = 0, crashes = 0
    where seq = ? and fence = ?`,
  requestOf: `
    select kind
    from millrace_requests
    where seq = ?`,
  resetJob: `
    update millrace_live
    set state = 'paused', fence = null, started_at = null, attempt = 0, retries = 0, crashes = 0, streak = 0, due_at = ?,
        sort = ?, expires_at = null, error = null, reason = ?, log = ?, progress = null
    where seq = ?`,
  /** Whether a worker has a sequence in hand: between two items it may begin the next one without a claim. */
  anySequenceInHand: `
    select 1
    from millrace_leases e, json_each(e.jobs) held
    join millrace_live l on l.seq = held.value
    join millrace_jobs j on j.seq = l.seq
    where l.fence = e.fence and j.shape is not null
    limit 1`,
  anyLeftover: `
    select 1
    from millrace_leftovers
    where due_at <= ?
    limit 1`,
  nextLeftover: `
    select number, seq, run, list, job
    from millrace_leftovers
    where due_at <= ?
    order by due_at, number
    limit 1`,
  sweepSteps: `
    delete from millrace_steps
    where number in (select number from millrace_steps where seq = ? and run <= ? limit ?)`,
  sweepItems: `
    delete from millrace_items
    where number in (select number from millrace_items where list = ? limit ?)`,
  /** Every row is either not taken or has an id. */
  sweepInbox: `
    delete from millrace_inbox
    where number in (select number from millrace_inbox where job = ? and taken = 0 limit ?)`,
  sweepTaken: `
    delete from millrace_inbox
    where number in (select number from millrace_inbox where job = ? and id is not null limit ?)`,
  dropList: `
    delete from millrace_lists
    where list = ?`,
  /**
   * Not that of a new job of the same number, and not while another leftover has rows of that number: the row says which
   * run a new job begins with.
   */
  dropWorkflow: `
    delete from millrace_workflows
    where seq = ?
      and not exists (select 1 from millrace_jobs j where j.seq = millrace_workflows.seq and j.shape is not null)
      and not exists (
        select 1 from millrace_leftovers l where l.seq = millrace_workflows.seq and l.number <> ?)`,
  dropLeftoverRow: `
    delete from millrace_leftovers
    where number = ?`,
}
