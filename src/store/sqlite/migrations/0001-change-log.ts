/** The change log and its consumers. The triggers that write it exist only while it is switched on. */
export const changeLog = `
create table millrace_changes (
  -- The newest row is never deleted, so that no number is given twice.
  number integer primary key,
  id text not null,
  lane integer not null,
  state text not null,
  at integer not null
) strict;

create table millrace_consumers (
  consumer text primary key,
  -- Who reads now: a later reader takes the consumer from it.
  reader text not null,
  -- The number of the last change that was read.
  position integer not null
) strict, without rowid;
`

const NOW = `cast((julianday('now') - 2440587.5) * 86400000 as integer)`
const log = `
    insert into millrace_changes (id, lane, state, at)
    select j.id, j.lane, new.state, ${NOW}
    from millrace_jobs j
    where j.seq = new.seq;`

/** What switches the log on, and off. */
export const CHANGE_TRIGGERS: { readonly [name: string]: string } = {
  millrace_change_inserted: `
  create trigger if not exists millrace_change_inserted after insert on millrace_live
  begin${log}
  end`,
  millrace_change_moved: `
  create trigger if not exists millrace_change_moved after update of state on millrace_live when old.state <> new.state
  begin${log}
  end`,
  millrace_change_ended: `
  create trigger if not exists millrace_change_ended after insert on millrace_history
  begin${log}
  end`,
}

export const IS_TRIGGER = `select 1 from sqlite_schema where type = 'trigger' and name = ?`
