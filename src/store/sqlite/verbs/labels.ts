import { labelsOf } from '../../../job/definition/stored-options.js'
import type { Session } from '../connection/session.js'

/** Writes the labels of a new job, if it has any. */
export function addLabels(session: Session, seq: number, options: string | null): void {
  const labels = labelsOf(options)
  if (labels.length > 0) session.statement(session.queries.insertLabels).run(seq, JSON.stringify(labels))
}

/** Replaces the labels of a job whose options were changed. */
export function replaceLabels(session: Session, seq: number, options: string | null): void {
  session.statement(session.queries.deleteOwnLabels).run(seq)
  addLabels(session, seq, options)
}

/** Whether any job has labels. */
export function isAnyLabel(session: Session): boolean {
  return session.statement(session.queries.anyLabel).get() !== undefined
}

/** Deletes the labels of jobs that are deleted. */
export function dropLabels(session: Session, seqs: readonly number[]): void {
  if (isAnyLabel(session)) session.statement(session.queries.deleteLabels).run(JSON.stringify(seqs))
}
