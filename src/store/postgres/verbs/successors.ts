import { isFinal } from '../../../job/rules/states.js'
import type { Met } from '../../links.js'
import type { InsertOptions, NewJob } from '../../store.js'
import { insertMeeting } from './insert-meeting.js'
import { addLinks, byId, lookAt } from './link-rows.js'
import type { Session } from '../connection/session.js'

/** Writes jobs that may meet others, and blocks successors until the job before them ends. */
export async function insertAmong(
  s: Session,
  jobs: readonly NewJob[],
  options: InsertOptions,
): Promise<readonly Met[]> {
  const inserted = await insertMeeting(s, jobs, options)
  const followed = inserted.flatMap(({ id, follows }) => (follows === undefined ? [] : [{ id, parent: follows.id }]))
  if (followed.length > 0) await linkSuccessors(s, followed)
  return inserted
}

async function linkSuccessors(
  s: Session,
  followed: readonly { readonly id: string; readonly parent: string }[],
): Promise<void> {
  const rows = await byId(s, [...new Set(followed.flatMap(({ id, parent }) => [id, parent]))])
  const known = new Map(rows.map((row) => [row.id, row]))
  // Not those that a later one of the bulk has replaced.
  const open = followed.flatMap(({ id, parent }) => {
    const [child, job] = [known.get(id), known.get(parent)]
    return child === undefined || job === undefined || isFinal(child.state) ? [] : [{ child, job }]
  })
  await addLinks(
    s,
    open.map(({ child, job }) => ({ parent: job.ref, child: child.ref, onFailure: 'run', keepMs: null })),
  )
  await lookAt(
    s,
    open.map(({ job }) => job),
  )
}
