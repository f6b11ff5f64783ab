import { nowMs, Watch } from '../clock.mjs'
import { percentile } from '../figures.mjs'
import { payloadOf } from '../payloads.mjs'

/** `callers` callers, each of which awaits one enqueue before the next. */
export async function run(spec, { openParty }) {
  const party = await openParty(spec)
  const tookMs = []
  let next = 0
  const call = async () => {
    while (next < spec.jobs) {
      const payload = payloadOf(spec.bytes, next)
      next += 1
      const began = nowMs()
      await party.add(payload)
      tookMs.push(nowMs() - began)
    }
  }
  const watch = new Watch()
  await Promise.all(Array.from({ length: spec.callers }, call))
  const took = watch.stop()
  await party.close()
  return { ...took, p50Ms: percentile(tookMs, 50), p99Ms: percentile(tookMs, 99) }
}
