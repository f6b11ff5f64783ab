/** The audit trail (`millrace_audit`): who gave which command, and why. */
export const audit = `
create table millrace_audit (
  number integer primary key,
  at integer not null,
  actor text not null,
  role text,
  verb text not null,
  -- 'job 0198…', 'queue mail'.
  target text not null,
  count integer not null,
  before text,
  after text,
  reason text,
  keep_until integer
) strict;

-- trimAudit: rows whose time is over
create index millrace_audit_keep on millrace_audit (keep_until) where keep_until is not null;
`
