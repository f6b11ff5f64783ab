import { nowMs, Watch } from '../clock.mjs'
import { percentile } from '../figures.mjs'
import { payloadOf } from '../payloads.mjs'

/** Enqueues before the watch starts, so that it is a service that is measured and not its first second. */
const WARM_UP = 1_000

/** `callers` callers, each of which awaits one enqueue before the next. */
export async function run(spec, { openParty }) {
  const party = await openParty(spec)
  const warmUp = Math.min(WARM_UP, Math.floor(spec.jobs / 2))
  await enqueueAll(party, spec, 0, warmUp)
  const watch = new Watch(spec.serverPid)
  const tookMs = await enqueueAll(party, spec, warmUp, spec.jobs)
  const took = watch.stop()
  await party.close()
  return { ...took, counted: tookMs.length, p50Ms: percentile(tookMs, 50), p99Ms: percentile(tookMs, 99) }
}

async function enqueueAll(party, { bytes, callers }, from, to) {
  const tookMs = []
  let next = from
  const call = async () => {
    while (next < to) {
      const payload = payloadOf(bytes, next)
      next += 1
      const began = nowMs()
      await party.add(payload)
      tookMs.push(nowMs() - began)
    }
  }
  await Promise.all(Array.from({ length: callers }, call))
  return tookMs
}
