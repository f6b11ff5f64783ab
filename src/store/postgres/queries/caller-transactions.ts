/**
 * The statements that only a caller's transaction needs. None of them may fail where it stands: an error would spoil the
 * transaction for its owner, and postgres.js rolls back even when the error is caught.
 */
export const callerQueries = {
  /**
   * Leaves a mark that lasts until the end of the transaction: outside of one, that is the end of this very statement. It also
   * tells whether the next statement may read the token. Nothing of it is in the caller's data.
   */
  leaveMark: `
    select set_config('millrace.tx', 'open', true) as mark,
           current_database() as database,
           (select oid::text from pg_catalog.pg_database where datname = current_database()) as oid,
           case when has_function_privilege('pg_catalog.pg_control_system()', 'execute') then 'yes' else 'no' end as asks,
           current_setting('transaction_read_only') as locked,
           case
             when to_regnamespace($1::text) is null then 'missing'
             when not has_schema_privilege(to_regnamespace($1::text)::oid, 'usage') then 'denied'
             when to_regclass($2::text) is null then 'missing'
             when not has_table_privilege(to_regclass($2::text)::oid, 'select') then 'denied'
             else 'here'
           end as home`,

  /**
   * The mark is not there when the statement above was in another transaction than this one. The number of the server's cluster
   * is asked for only by those who may: the server refuses even to prepare it for others.
   */
  findMark: (identity: string, mayAsk: boolean): string => `
    select current_setting('millrace.tx', true) as mark, (select token from ${identity} order by token limit 1) as token,
           ${mayAsk ? `(select system_identifier::text from pg_catalog.pg_control_system())` : `null::text`} as cluster`,
}
