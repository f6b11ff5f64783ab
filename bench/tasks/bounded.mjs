import { Watch } from '../clock.mjs'
import { payloadsOf } from '../payloads.mjs'

const BULK = 1_000
/** Enqueued and not yet run: enough that the worker never waits, few enough that history decides the store's size. */
const BACKLOG_MAX = 10_000
/** The size that all later ones are compared with. */
export const FIRST = 100_000

/**
 * Enqueues and runs jobs at the same time, `spec.jobs` of them, while the finished ones are pruned. With `isSampled` it reports
 * the size of the store and the jobs in it after the first 100,000 and then twenty times, else only at the end.
 */
export async function run(spec, { openParty, measureStore }, say) {
  const party = await openParty(spec)
  let ran = 0
  let wake
  await party.work((payload) => {
    if (payload.n > 0) ran += 1
    if (ran % BULK === 0) wake?.()
  })
  const watch = new Watch(spec.serverPid)
  const samples = []
  const every = Math.max(FIRST, Math.ceil(spec.jobs / 20))
  for (let added = 0; ran < spec.jobs;) {
    while (added < spec.jobs && added - ran < BACKLOG_MAX) {
      await party.addMany(payloadsOf(spec.bytes, BULK, added))
      added += BULK
    }
    const due = FIRST + samples.length * every
    if (spec.isSampled && ran >= due && due < spec.jobs) samples.push(await sample())
    await new Promise((resolve) => {
      wake = resolve
      setTimeout(resolve, 20)
    })
  }
  const took = watch.stop()
  samples.push(await sample())
  await party.close()
  return { ...took, ran, samples }

  async function sample() {
    const seen = { ran, ms: watch.ms(), ...(await measureStore(spec)) }
    say({ sample: seen })
    return seen
  }
}
