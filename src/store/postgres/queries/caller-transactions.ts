/**
 * The statements that only a caller's transaction needs. None of them may fail: an error would abort the caller's
 * transaction, and postgres.js rolls back even when the error is caught.
 */
export const callerQueries = {
  /**
   * Sets a mark that lasts until the transaction ends; outside of a transaction, that is the end of this statement. It
   * also returns whether the next statement may read the token. It touches no data of the caller.
   */
  leaveMark: `
    select set_config('millrace.tx', 'open', true) as mark,
           current_database() as database,
           (select oid::text from pg_catalog.pg_database where datname = current_database()) as oid,
           case when has_function_privilege('pg_catalog.pg_control_system()', 'execute') then 'yes' else 'no' end as readable,
           current_setting('transaction_read_only') as locked,
           case
             when to_regnamespace($1::text) is null then 'missing'
             when not has_schema_privilege(to_regnamespace($1::text)::oid, 'usage') then 'denied'
             when to_regclass($2::text) is null then 'missing'
             when not has_table_privilege(to_regclass($2::text)::oid, 'select') then 'denied'
             else 'here'
           end as home`,

  /**
   * Without the mark, the statement above ran in another transaction than this one. The identifier of the server's
   * cluster is read only by a role that may: for others the server refuses even to prepare the statement.
   */
  findMark: (identity: string, mayReadCluster: boolean): string => `
    select current_setting('millrace.tx', true) as mark, (select token from ${identity} order by token limit 1) as token,
           ${mayReadCluster ? `(select system_identifier::text from pg_catalog.pg_control_system())` : `null::text`} as cluster`,
}
