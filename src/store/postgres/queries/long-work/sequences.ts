import { bodyOf, clock, hasEnded, isPaused, jobRowFrom, laneOf, leaseOf, s } from '../sql-fragments.js'

export const stepColumns = `ref, run, address, kind, no, since, attempt, called_at, answered_at, until, value, bytes, error, note`
/** A row of the log as JSON. */
export const stepRow = `(
      ref bigint, fence bigint, run integer, address text, kind text, no integer, since integer, attempt integer, called_at bigint,
      answered_at bigint, until bigint, value text, bytes text, error text, note text)`
export const stepValues = `a.ref, a.run, a.address, a.kind, a.no, a.since, a.attempt, a.called_at, a.answered_at, a.until, a.value, decode(a.bytes, 'base64'), a.error, a.note`
/**
 * An answer fills an open row; a row that has its answer stays as it is. The note of a call names the called job: it is
 * kept.
 */
export const fillOpen = `on conflict (ref, run, address) do update
      set kind = excluded.kind, no = excluded.no, attempt = excluded.attempt, called_at = excluded.called_at,
          answered_at = excluded.answered_at, until = excluded.until, value = excluded.value, bytes = excluded.bytes, error = excluded.error,
          note = case
            when steps.kind not in ('call', 'enqueue', 'unwound') then excluded.note
            -- As text: a line in it may have escapes that no json of the server takes. The last of equal names counts.
            when steps.note like '{"%' and excluded.note like '{"%' then left(steps.note, -1) || ',' || substr(excluded.note, 2)
            else coalesce(nullif(excluded.note, '{}'), steps.note)
          end
      where steps.no is null`

const sizedItems = (list: string): string => `
    select payload, encode(bytes, 'base64') as bytes
    from (
      select idx, payload, bytes, sum(size) over (order by idx) - size as before
      from (
        select idx, payload, bytes, coalesce(octet_length(payload), 0) + coalesce(octet_length(bytes), 0) as size
        from ${s}.items
        where list = ${list} and idx >= $2::text::integer
        order by idx
        limit $3::text::integer) as next) as sized
    where before < $4::text::bigint
    order by idx`

/** Sequences: their items, and the log of what they did. */
export const sequenceQueries = {
  addList: `
    insert into ${s}.lists (id, total, made_at)
    values ($1::text::uuid, $2::text::integer, coalesce($3::text::bigint, ${clock}))
    returning list`,
  findList: `select list from ${s}.lists where id = $1::text::uuid`,
  addItems: `
    insert into ${s}.items (list, idx, payload, bytes)
    select $1::text::bigint, $2::text::integer + each.position::integer - 1,
           each.item->>0, decode(each.item->>1, 'base64')
    from json_array_elements($3::text::json) with ordinality as each (item, position)`,
  addLeftover: `
    insert into ${s}.leftovers (ref, run, list, due_at)
    values ($1::text::bigint, $2::text::integer, $3::text::bigint, coalesce($4::text::bigint, ${clock}) + $5::text::bigint)`,
  dropLeftover: `delete from ${s}.leftovers where list = $1::text::bigint and ref is null`,
  hastenLeftover: `
    update ${s}.leftovers
    set due_at = 0
    where ref is null and list = (select list from ${s}.lists where id = $1::text::uuid)`,
  markSequence: `
    update ${s}.jobs
    set shape = 'sequence'
    where id = $1::text::uuid
    returning ref`,
  putWorkflow: `
    insert into ${s}.workflows (ref, run, waits)
    values ($1::text::bigint, 0, $2)
    on conflict (ref) do update set run = workflows.run + 1, waits = excluded.waits`,
  /** Before any other row of the sequence is locked: its verbs wait for each other here. */
  lockWorkflow: `
    select ref from ${s}.workflows
    where ref = (select j.ref from ${s}.jobs j where j.id = $1::text::uuid limit 1)
    for update`,
  startWorkflow: `update ${s}.workflows set waits = null where ref = $1::text::bigint`,
  resetWorkflow: `update ${s}.workflows set run = run + 1, waits = $1 where ref = $2::text::bigint`,
  clearAttempts: `
    update ${s}.steps set attempt = 0 where ref = $1::text::bigint and run = $2::text::integer and no is null`,
  readSequence: `
    select j.ref, j.name, j.queue, j.shape, j.state, j.error, j.reason, j.progress, w.run, w.waits, t.total, r.kind as requested,
           last.address, last.no
    from (${jobRowFrom(`(select *, xmin from ${s}.jobs where id = $1::text::uuid offset 0)`)}) as j
    left join lateral (select * from ${s}.workflows w where w.ref = j.ref limit 1) w on true
    left join lateral (select * from ${s}.requests r where r.ref = j.ref limit 1) r on true
    left join lateral (select * from ${s}.lists t where t.id = j.id::uuid limit 1) t on true
    left join lateral (
      select s.address, s.no from ${s}.steps s
      where s.ref = j.ref and s.run = w.run
      order by s.address desc
      limit 1) last on true`,
  readOutput: `
    select n.name, j.shape, s.address, s.value, encode(s.bytes, 'base64') as bytes, s.note, s.attempt, s.called_at, s.answered_at
    from (select ref, lane, shape from ${s}.jobs where id = $2::text::uuid limit 1) j
    cross join ${laneOf('j.lane')}
    left join lateral (select * from ${s}.workflows w where w.ref = j.ref limit 1) w on true
    left join lateral (
      select * from ${s}.steps s
      where s.ref = j.ref and s.run = w.run and s.address >= $1 and s.no is not null
      order by s.address
      limit $3::text::integer) s on true
    order by s.address`,
  /** Of each sequence the last two rows of its log: the last one may be open, and then the one before has the last result. */
  readPositions: `
    select a.ref, coalesce(w.run, 0) as run, t.list, t.total, last.address, last.no, last.attempt, last.value, last.bytes
    from unnest($1::text::bigint[]) as a (ref)
    cross join ${bodyOf('a.ref')}
    cross join lateral (select * from ${s}.lists t where t.id = j.id limit 1) t
    left join lateral (select * from ${s}.workflows w where w.ref = a.ref limit 1) w on true
    left join lateral (
      select s.address, s.no, s.attempt, s.value, encode(s.bytes, 'base64') as bytes from ${s}.steps s
      where s.ref = a.ref and s.run = coalesce(w.run, 0)
      order by s.address desc
      limit 2) last on true
    order by a.ref, last.address desc`,
  /** At least one item, and no more than fit into so many bytes. */
  readItems: sizedItems('$1::text::bigint'),
  itemsOfJob: sizedItems(`(select t.list from ${s}.lists t where t.id = $1::text::uuid)`),
  /**
   * The lease is locked in the same statement: an insert that only read it could follow a rescue that has ended the claim.
   * A request that was written before is on the lease; its kind is read by \`readBoundary\`.
   */
  appendStep: `
    with clock as materialized (select coalesce($1::text::bigint, ${clock}) as now),
    given as materialized (select * from json_to_recordset($2::text::json) as a ${stepRow}),
    held as materialized (
      select e.fence, e.refs, e.released, e.has_request from ${s}.leases e
      where e.fence = any(array(select fence from given)) for share),
    mine as materialized (
      select a.*, held.has_request from given a join held on held.fence = a.fence
      where a.ref = any(held.refs) and not a.ref = any(held.released)),
    written as (
      insert into ${s}.steps (${stepColumns})
      select ${stepValues} from mine a
      ${fillOpen}
      returning no)
    select (select count(*)::integer from mine) as held, (select count(*)::integer from written where no is not null) as answered,
           coalesce((select has_request from mine), false) as has_request, ${isPaused('$3')} as paused
    from clock`,
  /** Under the lock of the lease. */
  settleSteps: `
    insert into ${s}.steps (${stepColumns})
    select ${stepValues} from json_to_recordset($1::text::json) as a ${stepRow}
    ${fillOpen}
    returning ref`,
  isAnswered: `
    select 1 as answered from ${s}.steps
    where ref = $1::text::bigint and run = $2::text::integer and address = $3 and no is not null`,
  endStreak: `update ${s}.jobs set streak = null, crashes = null where ref = $1::text::bigint`,
  readBoundary: `
    with clock as materialized (select coalesce($1::text::bigint, ${clock}) as now)
    select (select r.kind from ${s}.requests r where r.ref = $2::text::bigint) as requested, ${isPaused('$4')} as paused,
           (select count(*)::integer from ${leaseOf('$3::text::bigint')}
            where $2::text::bigint = any(e.refs) and not $2::text::bigint = any(e.released)) as held
    from clock`,
  /** Takes a job from its claim, also while it runs. */
  takeClaimed: `
    update ${s}.leases e
    set released = e.released || $1::text::bigint
    where e.fence = $2::text::bigint and $1::text::bigint = any(e.refs) and not $1::text::bigint = any(e.released)
      and not ${hasEnded('$1::text::bigint')}
    returning $1::text::bigint as ref`,
  /** A slice of the leftover that is longest overdue. Another process may have it: it is skipped. */
  sweepLeftover: `
    with clock as materialized (select coalesce($1::text::bigint, ${clock}) as now),
    next as materialized (
      select l.number, l.ref, l.run, l.list, l.is_deleted
      from clock, ${s}.leftovers l
      where l.due_at <= clock.now
      order by l.due_at, l.number
      limit 1
      for update of l skip locked),
    steps as (
      delete from ${s}.steps
      where number = any(array(
        select s.number from next n cross join lateral (
          select s.number from ${s}.steps s where s.ref = n.ref and s.run <= n.run limit $2::text::integer) s))
      returning 1),
    items as (
      delete from ${s}.items
      where number = any(array(
        select i.number from next n cross join lateral (
          select i.number from ${s}.items i where i.list = n.list limit $2::text::integer) i))
      returning 1),
    -- Every row of an inbox is either not taken or has an id.
    inbox as (
      delete from ${s}.inbox
      where number = any(array(
        select i.number from next n cross join lateral (
          (select i.number from ${s}.inbox i where i.ref = n.ref and not i.taken limit $2::text::integer)
          union
          (select i.number from ${s}.inbox i where i.ref = n.ref and i.id is not null limit $2::text::integer)) i
        where n.is_deleted))
      returning 1)
    select n.number,
           (select count(*)::integer from steps) + (select count(*)::integer from items) + (select count(*)::integer from inbox) as swept
    from next n`,
  /** The rows of a leftover are removed: now what points to them, and the leftover. */
  dropSwept: `
    with gone as (delete from ${s}.leftovers where number = $1::text::bigint returning ref, run, list),
    list as (delete from ${s}.lists where list = any(array(select list from gone)))
    delete from ${s}.workflows w where w.ref = any(array(select ref from gone)) and w.run <= (select max(run) from gone)`,
}
