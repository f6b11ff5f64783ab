import { show } from '../../codec/show.js'
import { InvalidOptionsError } from '../../errors.js'
import { checkFields } from '../../job/definition/check-fields.js'
import type { Check, Fields } from '../../job/definition/check-fields.js'
import { isCount } from '../../job/definition/check-options.js'

/** Which page of a list to read. */
export interface PageOptions {
  /** 1 to 1,000 rows. Default 50. */
  readonly limit?: number | undefined
  /** The cursor of the page before. */
  readonly cursor?: string | undefined
}

/** One page of a list. */
export interface Page<Row> {
  readonly rows: readonly Row[]
  /** Give it to the next call; undefined after the last page. */
  readonly cursor: string | undefined
}

/** Rows of a page if the caller does not say, and the most. */
export const PAGE_LIMIT = 50
export const PAGE_LIMIT_MAX = 1_000

/** A cursor that is a number; other texts were not returned by this list. */
export const isNumberCursor: Check = (value) =>
  typeof value === 'string' && /^\d{1,16}$/.test(value) && Number.isSafeInteger(Number(value))
    ? undefined
    : `must be the cursor that an earlier call returned, got ${show(value)}`

/** The cursor of a list that is read in the order of names; it begins with what is listed, so that no other list takes it. */
export const textCursor = (listed: string, name: string): string => `${listed} ${name}`
export const nameOfCursor = (listed: string, cursor: string | undefined): string =>
  cursor?.slice(listed.length + 1) ?? ''
export const isTextCursor =
  (listed: string): Check =>
  (value) =>
    typeof value === 'string' && value.startsWith(`${listed} `)
      ? undefined
      : `must be the cursor that an earlier call returned, got ${show(value)}`

/** Checks the options of a list, or throws all their problems. */
export function checkPage(subject: string, options: unknown, cursor: Check, more: Fields['fields'] = {}): void {
  const fields = { limit: isCount(1, PAGE_LIMIT_MAX), cursor, ...more }
  const problems = checkFields(options, '', {
    fields,
    foreignNames: { offset: 'use cursor: of the page before', page: 'use cursor: of the page before' },
    meant: (value) => (typeof value === 'number' ? `{ limit: ${show(value)} }` : undefined),
  })
  if (problems.length > 0) throw new InvalidOptionsError(subject, problems)
}
