import { peakMiB, Watch } from '../clock.mjs'
import { payloadsOf } from '../payloads.mjs'

/** One call with all of them. */
export async function run(spec, { openParty }) {
  const party = await openParty(spec)
  const payloads = payloadsOf(spec.bytes, spec.jobs)
  const watch = new Watch(spec.serverPid)
  await party.addMany(payloads)
  const took = watch.stop()
  await party.close()
  return { ...took, peakMiB: peakMiB() }
}
