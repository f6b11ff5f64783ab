import { nowMs, Watch } from '../clock.mjs'
import { percentile } from '../figures.mjs'
import { payloadOf } from '../payloads.mjs'

/** Enqueues before the watch starts, so that a warm service is measured and not its first second. */
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

/** Each job has its own key or payload, so none is a duplicate. */
const OPTIONS = {
  key: (n) => ({ key: `order-${n}` }),
  unique: () => ({ unique: { by: 'n' } }),
}

async function enqueueAll(party, { bytes, callers, addWith }, from, to) {
  const optionsOf = OPTIONS[addWith] ?? (() => undefined)
  const tookMs = []
  let next = from
  const call = async () => {
    while (next < to) {
      const [payload, options] = [payloadOf(bytes, next), optionsOf(next)]
      next += 1
      const began = nowMs()
      await party.add(payload, options)
      tookMs.push(nowMs() - began)
    }
  }
  await Promise.all(Array.from({ length: callers }, call))
  return tookMs
}
