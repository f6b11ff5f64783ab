import { s, jobRow, jobRowFrom } from './sql-fragments.js'

/** Size limit of one answer, unless a single job is larger: it arrives in time even over a slow network. */
const ANSWER_BYTES = 4 * 1_024 * 1_024

const LARGE = ['payload', 'bytes', 'options', 'after', 'result', 'result_bytes', 'error', 'log', 'progress']

/**
 * As many of the jobs as fit into an answer, at least one, and the number of matches. The server knows the length of a
 * text without reading it.
 */
export const bounded = (jobs: string, order: 'asc' | 'desc'): string => `
    select * from (
      select sized.*, sum(size) over (order by ref ${order} rows unbounded preceding) - size as before,
             count(*) over () as matched
      from (
        select job.*, ${LARGE.map((column) => `coalesce(octet_length(${column}), 0)`).join(' + ')} as size
        from (${jobs}) as job) as sized) as page
    where before < ${ANSWER_BYTES}
    order by ref ${order}`

/** Reading jobs in any state. */
export const readQueries = {
  readJobs: bounded(
    jobRowFrom(`(
    select *, xmin from ${s}.jobs
    where id = any(array(select value::uuid from json_array_elements_text($1::text::json)))
    -- An optimisation fence: otherwise the order of the answer would make a scan of the primary key look cheap for an
    -- empty day.
    offset 0)`),
    'asc',
  ),
  readRefs: `${jobRow}
    where j.ref = any($1::text::bigint[])`,
  /** The holder by its turn: a successor may have a lower ref, of an earlier day, when the clock was set back. */
  readKeyed: `${jobRow}
    where j.key = $1 and n.name = $2
    order by h.ref is null desc,
      j.ref = (select k.ref from ${s}.keys k where k.name = $2 and k.key = $1 order by k.turn desc limit 1) desc nulls last, j.ref desc
    limit 1`,
}
