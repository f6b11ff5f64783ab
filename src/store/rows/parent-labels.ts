/*
 * The children of a job are found by an index, also after their parents have ended and their links are gone: the id of
 * each parent is a row of the table of labels. It begins with a control character, which no label of a user has.
 */

const MARK = '\u0001'

/** What is written beside the labels of a child. */
export function parentLabel(parent: string): string {
  return `${MARK}${parent}`
}
