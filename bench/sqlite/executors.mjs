import { startTask } from '../child.mjs'
import { emptyTemplate } from '../measure.mjs'
import { SMALL } from '../payloads.mjs'
import { inRounds } from '../rounds.mjs'
import { showSummary } from '../table.mjs'

/** A child takes one job at a time, and each is a message there and back: fewer jobs give the same figure. */
const SHARE = 20
const MAX_MS = 600_000

/** What an attempt costs in the event loop, in a thread and in a process, ten at a time. */
export async function scenario(bench) {
  const { place, options, nodeArgs } = bench
  const jobs = Math.max(1_000, Math.ceil(options.jobs / SHARE))
  const cases = ['loop', 'thread', 'process'].map((executor) => ({ key: executor }))
  const template = await emptyTemplate(place, 'millrace')
  const rounds = await inRounds({ ...bench.plan('executors'), cases }, async ({ key }) => {
    const copy = await place.copyOf(template)
    try {
      const where = { task: 'executors', contestant: 'millrace', executor: key, jobs, bytes: SMALL, concurrency: 10 }
      const { ms, ran } = await startTask({ ...where, ...place.whereOf(copy) }, { nodeArgs, maxMs: MAX_MS }).result
      if (ran !== jobs) throw new Error(`${ran} of ${jobs} jobs ended`)
      return { usPerJob: (ms * 1000) / ran, rate: (ran / ms) * 1000 }
    } finally {
      await place.remove(copy)
    }
  })
  const row = ({ key }) => [
    key,
    showSummary(rounds.summary(key, (r) => r.usPerJob)),
    showSummary(rounds.summary(key, (r) => r.rate)),
  ]
  return {
    name: 'executors',
    title: `executors: ${jobs.toLocaleString('en')} jobs that do nothing, 10 at a time, warm`,
    heads: ['', 'µs/job', 'jobs/s'],
    rows: cases.map(row),
    notes: [],
    gates: [],
    rounds,
  }
}
