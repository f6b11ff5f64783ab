/** Pages per entry of the index: some 4,000 jobs. A search reads the jobs of one or two entries. */
export const RANGE_PAGES = 64

/**
 * Finding jobs by time (`find-by-time.ts`). An insert does not touch this index: upkeep and vacuum add an entry for
 * each full range of pages. `ref + 0` and not `ref`, so that no other index can serve a condition on it.
 */
export const times = (schema: string): readonly string[] => [
  `create index jobs_created on ${schema}.jobs using brin (created_at, (ref + 0)) with (pages_per_range = ${RANGE_PAGES})`,
  // A bitmap scan is the only way to read such an index, and our sessions have it turned off.
  `create function ${schema}.refs_within(created_from bigint, created_to bigint, ref_from bigint, ref_to bigint, most integer)
    returns bigint[]
    language plpgsql stable security invoker set search_path = pg_catalog, pg_temp
    set enable_seqscan = off set enable_bitmapscan = on set jit = off
    as '
begin
  if created_from >= created_to or ref_from >= ref_to then
    return ''{}'';
  end if;
  return array(
    select j.ref
    from ${schema.replaceAll("'", "''")}.jobs j
    where j.created_at >= created_from and j.created_at < created_to and j.ref + 0 >= ref_from and j.ref + 0 < ref_to
    limit most);
end'`,
]
