import { filledTemplate, measureOn } from '../measure.mjs'
import { SMALL } from '../payloads.mjs'
import { inRounds } from '../rounds.mjs'
import { showSummary } from '../table.mjs'

/** The memory of a worker that has run a tenth of a long queue. */
export async function scenario(bench) {
  const { options, place } = bench
  const waiting = options.others
  const jobs = Math.ceil(waiting / 10)
  const cases = [{ key: 'millrace FULL 20 B' }]
  const rounds = await inRounds({ ...bench.plan('memory'), cases }, async () =>
    measureOn(bench, {
      template: await filledTemplate(place, 'millrace', SMALL, waiting),
      spec: { task: 'drain', contestant: 'millrace', durability: 'power', jobs, concurrency: options.concurrency },
      // It runs until it is closed, so how many are done is not known in advance.
      expected: { total: waiting },
    }),
  )
  const { key } = cases[0]
  const shown = [(r) => r.peakMiB, (r) => r.rate, (r) => r.delayP99Ms]
  return {
    name: 'memory',
    title: `memory: ${waiting.toLocaleString('en-US')} jobs waiting, the first ${jobs.toLocaleString('en-US')} worked off`,
    heads: ['', 'peak MiB', 'jobs/s', 'loop delay p99 ms'],
    rows: [[key, ...shown.map((pick) => showSummary(rounds.summary(key, pick)))]],
    gates: [
      {
        name: `memory, ${waiting.toLocaleString('en-US')} waiting: peak`,
        measured: rounds.summary(key, (r) => r.peakMiB),
        unit: 'MiB',
        most: 200,
      },
    ],
    rounds,
  }
}
