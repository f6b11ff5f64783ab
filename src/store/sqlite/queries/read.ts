import { jobRow } from './sql-fragments.js'

/** Reading jobs in any state. */
export const readQueries = {
  readJobs: `
    ${jobRow()}
    where j.id in (select value from json_each(?))`,
  readKeyed: `
    ${jobRow()}
    where j.key = ? and n.name = ?
    order by l.seq is not null desc, j.seq desc
    limit 1`,
}
