import { s, clock } from './sql-fragments.js'

/** Kept so long, by the database's clock. */
export const RECEIPT_KEEP_MS = 3_600_000

/** Receipts of writes, by which a call whose reply was lost finds out whether it was written (../receipts.ts). */
export const receiptQueries = {
  /** With the commit in one message: no round trip of its own. A receipt that was made void fails it, and nothing commits. */
  commitWith: (id: string, answer: string): string => `
    insert into ${s}.receipts (id, answer) values (${literal(id)}, ${literal(answer)});
    commit`,
  /**
   * Waits for the transaction that has written this receipt and not ended yet. If there is none, or it rolled back, the call
   * was not written, and from now on it cannot be: its own row would conflict with this one.
   */
  voidReceipt: `
    insert into ${s}.receipts (id, is_void)
    values ($1::text::uuid, true)
    on conflict (id) do nothing
    returning 1 as done`,
  readReceipt: `
    select is_void as "isVoid", answer
    from ${s}.receipts
    where id = $1::text::uuid`,
  /** Of calls whose reply came. */
  dropReceipts: `delete from ${s}.receipts where id = any($1::text::uuid[])`,
  /** A step of the walk through all that is left, in the order of the primary key. */
  sweepReceipts: `
    with looked as materialized (
      select id, at from ${s}.receipts where id > $1::text::uuid order by id limit $2::text::integer),
    swept as (
      delete from ${s}.receipts
      where id = any(array(select id from looked where at < ${clock} - ${RECEIPT_KEEP_MS}))
      returning 1)
    select (select count(*)::integer from looked) as looked, (select id::text from looked order by id desc limit 1) as last,
           (select count(*)::integer from swept) as swept`,
}

/** A text within a statement that takes no parameters, whatever standard_conforming_strings is. */
function literal(text: string): string {
  return `E'${text.replaceAll('\\', '\\\\').replaceAll(`'`, `''`)}'`
}
