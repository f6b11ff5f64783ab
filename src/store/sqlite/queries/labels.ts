/** The statements that keep the labels of jobs. */
export const labelQueries = {
  insertLabels: `
    insert into millrace_labels (seq, label)
    select ?, value
    from json_each(?)`,
  anyLabel: `
    select 1 as there
    from millrace_labels
    limit 1`,
  deleteLabelsRun: `
    delete from millrace_labels
    where seq between ? and ?`,
  deleteLabels: `
    delete from millrace_labels
    where seq in (select value from json_each(?))`,
}
