import { runTask } from './child.mjs'

/**
 * One measurement on a fresh copy of a template. Afterwards the jobs in the file are counted by another process; a count
 * that is not the expected one is an error, as figures of a run that lost a job are useless.
 *
 * @param {{ place: import('./place.mjs').Place, nodeArgs: readonly string[] }} bench
 * @param {{ template: string, spec: { jobs: number }, expected: { done: number, left: number } | { total: number },
 *   run?: (spec: object, options: object) => Promise<object> }} what
 */
export async function measureOn({ place, nodeArgs }, { template, spec, expected, run = runTask }) {
  const copy = await place.copyOf(template)
  try {
    const where = place.whereOf(copy)
    const result = await run({ ...spec, ...where }, { nodeArgs })
    // A job that ran twice is done once in the file; only its handler can count that.
    if ('done' in expected && result.ran !== undefined && result.ran !== spec.jobs)
      throw new Error(`handlers ran ${result.ran} times for ${spec.jobs} jobs`)
    await expect({ contestant: spec.contestant, ...where }, expected)
    const { counted = spec.jobs, serverUs } = result
    const ofServer = serverUs === undefined ? {} : { serverUsPerJob: serverUs / counted }
    return { ...result, ...ofServer, rate: (counted / result.ms) * 1000, cpuUsPerJob: result.cpuUs / counted }
  } finally {
    await place.remove(copy)
  }
}

/** @param {{ contestant: string }} where */
async function expect(where, expected) {
  const { done, left } = await runTask({ task: 'count', ...where })
  const seen = { done, left, total: done + left }
  for (const [what, count] of Object.entries(expected))
    if (seen[what] !== count)
      throw new Error(`of ${count} jobs ${what} the store has ${seen[what]}: ${JSON.stringify(seen)}`)
}

/** The empty tables of a contestant. */
export function emptyTemplate(place, contestant) {
  return place.template(`${contestant} empty`, [{ task: 'fill', contestant, bytes: 20, groups: [] }])
}

/** This many jobs waiting in the default queue. */
export function filledTemplate(place, contestant, bytes, jobs) {
  const groups = [{ count: jobs }]
  return place.template(`${contestant} ${bytes} ${jobs}`, [{ task: 'fill', contestant, bytes, groups }])
}
