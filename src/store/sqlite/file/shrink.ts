import type { Session } from '../connection/session.js'

/*
 * The store returns space that pruning freed to the disk if the file tracks its pages (`auto_vacuum = incremental`,
 * which can be chosen only before the first table exists, and which the store chooses for files that it creates). A
 * file that its user created keeps the user's choice.
 */

/** Pages released in one step: about a megabyte, a few milliseconds. */
const STEP_PAGES = 256
/** This many free pages, and this part of the file, are always kept for reuse. */
const SPARE_PAGES = 1_024
const SPARE_SHARE = 0.25

const INCREMENTAL = 2

/** Whether more of the file is free than is worth keeping. Only reads. */
export function hasSpace(session: Session): boolean {
  const { free, pages, mode } = session.statement(session.queries.readPages).get() as {
    free: number
    pages: number
    mode: number
  }
  return mode === INCREMENTAL && free > SPARE_PAGES && free > pages * SPARE_SHARE
}

/** Releases a few free pages, within the current transaction. True when there are more. */
export function releasePages(session: Session): boolean {
  if (!hasSpace(session)) return false
  // The pragma frees one page for each row that is read.
  session.statement(session.queries.freePages(STEP_PAGES)).all()
  return hasSpace(session)
}
