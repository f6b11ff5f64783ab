import { s, jobRow } from './words.js'

/** Reading jobs, wherever they stand. */
export const readQueries = {
  readJobs: `${jobRow}
    where j.id = any(array(select value::uuid from json_array_elements_text($1::text::json)))`,
  readRefs: `${jobRow}
    where j.ref = any($1::text::bigint[])`,
  readKeyed: `${jobRow}
    where j.key = $1 and n.name = $2
    order by h.ref is null desc, j.ref desc
    limit 1`,
  findJobs: (conditions: readonly string[], order: 'asc' | 'desc'): string => `
    select * from (${jobRow}) as job
    ${conditions.length === 0 ? '' : `where ${conditions.join('\n        and ')}`}
    order by ref ${order}
    limit $1::text::integer`,
  /** The next so many members of a group. */
  groupWindow: (order: 'asc' | 'desc'): string => `
    select max(ref) as last, min(ref) as first, count(*)::integer as looked
    from (
      select ref from ${s}.jobs
      where ref ${order === 'desc' ? '<' : '>'} $1::text::bigint and grp = $3
      order by ref ${order}
      limit $2::text::integer) as page`,
  refWindow: (order: 'asc' | 'desc'): string => `
    select max(ref) as last, min(ref) as first, count(*)::integer as looked
    from (
      select ref from ${s}.jobs
      where ref ${order === 'desc' ? '<' : '>'} $1::text::bigint
      order by ref ${order}
      limit $2::text::integer) as page`,
}
