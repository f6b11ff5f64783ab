import type { Session } from '../connection/session.js'

/*
 * Space that pruning freed goes back to the disk where the file keeps track of its pages (`auto_vacuum = incremental`, which
 * can be chosen only before the first table is made, and which we choose for files that we make). A file that its user made
 * is as its user chose.
 */

/** Pages given back in one step: about a megabyte, a few milliseconds. */
const STEP_PAGES = 256
/** So many free pages are always left to be used again, and so large a part of the file. */
const SPARE_PAGES = 1_024
const SPARE_SHARE = 0.25

const INCREMENTAL = 2

/** Whether more of the file is free than is worth keeping. By reading alone. */
export function hasSpace(session: Session): boolean {
  const { free, pages, mode } = session.statement(session.queries.readPages).get() as {
    free: number
    pages: number
    mode: number
  }
  return mode === INCREMENTAL && free > SPARE_PAGES && free > pages * SPARE_SHARE
}

/** Gives a few free pages back, within the current transaction. True when there are more. */
export function giveBack(session: Session): boolean {
  if (!hasSpace(session)) return false
  // It frees one page for each row that is read.
  session.statement(session.queries.giveBackPages(STEP_PAGES)).all()
  return hasSpace(session)
}
