/** The audit trail: who gave which command, and why. */
export const audit = (schema: string): readonly string[] => [
  `create table ${schema}.audit (
    number bigint generated always as identity primary key,
    at bigint not null,
    actor text not null,
    role text,
    verb text not null,
    -- 'job 0198…', 'queue mail'.
    target text not null,
    count bigint not null,
    before text,
    after text,
    reason text,
    keep_until bigint
  )`,
  // trimAudit: rows whose time is over
  `create index audit_keep on ${schema}.audit (keep_until) where keep_until is not null`,
]
