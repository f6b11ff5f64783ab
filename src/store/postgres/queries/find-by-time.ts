import { s } from './sql-fragments.js'

/**
 * The first ref of a day that was created at `time` or later, if times rise with refs: a binary search by primary key.
 * `first` and `end` bound the refs of the day.
 */
const search = (name: string, time: string, first: string, end: string): string => `
    ${name} (low, high) as (
      select ${first}, coalesce((
        select j.ref + 1 from ${s}.jobs j where j.ref >= ${first} and j.ref < ${end} order by j.ref desc limit 1), ${first})
      union all
      select case when j.created_at < ${time} then j.ref + 1 else b.low end,
             case when j.created_at < ${time} then b.high else b.middle end
      from (select low, high, low + (high - low) / 2 as middle from ${name} where low < high) b
      left join lateral (
        select j.ref, j.created_at from ${s}.jobs j where j.ref >= b.middle and j.ref < b.high order by j.ref limit 1) j on true)`

const big = (number: number): string => `$${number}::text::bigint`

export const timeQueries = {
  /**
   * `lowest`: the first ref created from $1 on, in the day of refs from $2 to $3. `beyond`: the first created from $4
   * on, in the day from $5 to $6. Times need not rise with refs, so `early` and `late` list up to $9 matching refs on
   * the other side of each: created from $1 to $7, and from $8 to $4.
   */
  searchTimes: `
    with recursive ${search('lower', big(1), big(2), big(3))},
    ${search('upper', big(4), big(5), big(6))}
    select lowest::text as lowest, beyond::text as beyond,
           ${s}.refs_within(${big(1)}, ${big(7)}, ${big(2)}, lowest, $9::text::integer)::text as early,
           ${s}.refs_within(${big(8)}, ${big(4)}, beyond, ${big(6)}, $9::text::integer)::text as late
    from (select (select max(low) from lower) as lowest, (select max(low) from upper) as beyond) as found`,
}
