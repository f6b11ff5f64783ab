/** What is in the file or the database after a measurement: `{ done, left }`. */
export async function run({ file, url, dist }, { countJobs }) {
  return countJobs(file ?? url, dist)
}
