import { nowMs, Watch } from '../clock.mjs'
import { percentile } from '../figures.mjs'
import { payloadOf } from '../payloads.mjs'

/** Jobs before the measured ones: compiling and opening on first use is not latency. */
export const WARM_UP = 50
const PATIENCE_MS = 30_000

/**
 * From the call of enqueue until the handler begins, by a clock that processes share. `role` is 'both' in one process, or
 * 'worker' and 'producer' in two.
 */
export async function run(spec, { openParty }, say) {
  const party = await openParty(spec)
  const total = WARM_UP + spec.jobs
  const watch = new Watch()
  const latencies = spec.role === 'producer' ? undefined : listen(party, total)
  await latencies?.begun
  say({ ready: true })
  if (spec.role !== 'worker') await produce(party, spec, total)
  const tookMs = await latencies?.all
  const { ms, cpuUs } = watch.stop()
  await party.close()
  if (tookMs === undefined) return {}
  const measured = tookMs.slice(WARM_UP)
  return {
    handled: tookMs.length,
    cpuPercent: (cpuUs / 1000 / ms) * 100,
    p50Ms: percentile(measured, 50),
    p95Ms: percentile(measured, 95),
    p99Ms: percentile(measured, 99),
    maxMs: Math.max(...measured),
  }
}

function listen(party, total) {
  const tookMs = []
  let begun
  const all = new Promise((resolve, reject) => {
    const timer = setTimeout(
      () => {
        reject(new Error(`${tookMs.length} of ${total} jobs began in time`))
      },
      PATIENCE_MS + total * 20,
    )
    begun = party.work((payload) => {
      tookMs.push(nowMs() - payload.at)
      if (tookMs.length < total) return
      clearTimeout(timer)
      resolve(tookMs)
    })
  })
  return { begun, all }
}

/** At uneven moments, so that no poll can align with them; the plan does not wait for the replies. */
async function produce(party, { rate, bytes }, total) {
  const began = nowMs()
  const adding = []
  for (let i = 0; i < total; i += 1) {
    const due = began + ((i + Math.random()) * 1000) / rate
    await new Promise((next) => setTimeout(next, Math.max(0, due - nowMs())))
    adding.push(party.add({ ...payloadOf(bytes, i), at: nowMs() }))
  }
  await Promise.all(adding)
}
