/** What is in the file after a measurement: `{ done, left }`. */
export async function run({ file, dist }, { countJobs }) {
  return countJobs(file, dist)
}
