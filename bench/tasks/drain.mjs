import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout } from 'node:timers/promises'
import { peakMiB, Watch } from '../clock.mjs'

/**
 * Runs jobs that are already stored: from the call that starts the worker until the last one's outcome is written. The
 * delay of the event loop is Node's own value, nothing subtracted: the time between two firings of a timer of 1 ms.
 */
export async function run(spec, { openParty }) {
  const party = await openParty(spec)
  const delay = monitorEventLoopDelay({ resolution: 1 })
  let ran = 0
  let firstMs
  delay.enable()
  // The first firing only starts the count.
  await setTimeout(5)
  const watch = new Watch(spec.serverPid)
  const fifth = Math.ceil(spec.jobs / 5)
  const fifthsMs = []
  await party.drain(spec.jobs, (payload) => {
    if (ran === 0) firstMs = watch.ms()
    // The same for all of them: the payload has been read.
    if (payload.n > 0) ran += 1
    if (ran % fifth === 0) fifthsMs.push(watch.ms())
  })
  const took = watch.stop()
  // A loop that was never yielded has no sample yet; this allows the one that spans all of it.
  await setTimeout(3)
  delay.disable()
  await party.close()
  return {
    ...took,
    firstMs,
    fifthsMs,
    ran,
    delayP99Ms: delay.percentile(99) / 1e6,
    delayMaxMs: delay.max / 1e6,
    peakMiB: peakMiB(),
  }
}
