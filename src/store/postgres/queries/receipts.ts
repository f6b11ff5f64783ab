import { s, clock } from './sql-fragments.js'

/** How long a receipt is kept, by the server's clock. */
export const RECEIPT_KEEP_MS = 3_600_000

/**
 * Receipts of writes, by which a call whose reply was lost finds out whether it was written
 * (../connection/receipts.ts).
 */
export const receiptQueries = {
  /**
   * In one message with the commit: no round trip of its own. The insert fails if the receipt was made void, and
   * nothing commits.
   */
  commitWith: (id: string, answer: string): string => `
    insert into ${s}.receipts (id, answer) values (${literal(id)}, ${literal(answer)});
    commit`,
  /**
   * Waits for an open transaction that has inserted this receipt. If there is none, or it rolled back, the call was not
   * written, and no longer can be: its own row would conflict with this one.
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
  /** Receipts of calls whose reply came. */
  dropReceipts: `delete from ${s}.receipts where id = any($1::text::uuid[])`,
  /** One step of the walk through the remaining receipts, in the order of the primary key. */
  sweepReceipts: `
    with scanned as materialized (
      select id, at from ${s}.receipts where id > $1::text::uuid order by id limit $2::text::integer),
    swept as (
      delete from ${s}.receipts
      where id = any(array(select id from scanned where at < ${clock} - ${RECEIPT_KEEP_MS}))
      returning 1)
    select (select count(*)::integer from scanned) as scanned, (select id::text from scanned order by id desc limit 1) as last,
           (select count(*)::integer from swept) as swept`,
}

/** A string literal for a statement without parameters, whatever standard_conforming_strings is. */
function literal(text: string): string {
  return `E'${text.replaceAll('\\', '\\\\').replaceAll(`'`, `''`)}'`
}
