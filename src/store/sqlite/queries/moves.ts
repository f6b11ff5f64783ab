import { jobRow } from './sql-fragments.js'

/** Commands, and jobs that a conflict reschedules: from one state to another. */
export const moveQueries = {
  changeTarget: `
    ${jobRow()}
    where j.id = ?`,
  /** A paused or blocked job keeps its state, with the new time. */
  moveJob: `
    update millrace_live
    set state = case when state in ('paused', 'blocked') then state else ? end, due_at = ?, sort = ?, lane = ?, expires_at = ?, error = null, reason = null, held = null
    where seq = ? and fence is null`,
  changeLive: `
    update millrace_live
    set state = ?, due_at = ?, sort = ?, retries = ?, lane = ?, streak = 0, error = ?, reason = ?, log = ?, held = null
    where seq = ? and fence is null`,
  reviveJob: `
    insert into millrace_live (seq, lane, state, sort, due_at, attempt, retries, crashes, log)
    values (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  editJob: `
    update millrace_jobs
    set payload = ?, options = ?, priority = ?, lane = ?
    where seq = ?`,
  /** The limit key of a job whose payload was replaced. */
  turnJob: `
    update millrace_jobs
    set turn = ?, rate_turn = ?, weight = ?
    where seq = ?`,
  deleteLive: `
    delete from millrace_live
    where seq = ?`,
  deleteHistory: `
    delete from millrace_history
    where seq = ?`,
  deleteJob: `
    delete from millrace_jobs
    where seq = ?`,
  /** Pauses a waiting job, also a held one: no index of claimable jobs lists it any more. */
  pauseJob: `
    update millrace_live
    set state = 'paused', fence = null, reason = ?, log = ?, held = null
    where seq = ?`,
  resumeJob: `
    update millrace_live
    set state = ?, reason = null, log = ?
    where seq = ?`,
}
