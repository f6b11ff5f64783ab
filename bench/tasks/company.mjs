import { Watch, nowMs } from '../clock.mjs'
import { percentile } from '../figures.mjs'
import { payloadsOf } from '../payloads.mjs'

/** Reads of a group, one after the other. */
const LOOKS = 1_000

/** A flow, the same number in one bulk, and a large group: how long to add, to read, and to command as a whole. */
export async function run(spec, { openParty }) {
  const party = await openParty(spec)
  const watch = new Watch(spec.serverPid)
  const flowMs = await timed(() => party.addFlow(spec.nodes))
  const bulkMs = await timed(() => party.addMany(payloadsOf(spec.bytes, spec.nodes)))
  const groupMs = await timed(() => party.addMany(payloadsOf(spec.bytes, spec.jobs), { group: 'all' }))
  const group = party.group('all')
  const looks = []
  for (let i = 0; i < LOOKS; i += 1) looks.push(await timed(() => group.progress()))
  const pauseMs = await timed(() => group.pause())
  const cancelMs = await timed(() => group.cancel())
  const { total, cancelled } = await group.progress()
  const took = watch.stop()
  await party.close()
  if (total !== spec.jobs || cancelled !== spec.jobs)
    throw new Error(`the group has ${total} members and ${cancelled} cancelled ones, of ${spec.jobs}`)
  const verbs = { pauseUs: (pauseMs * 1000) / spec.jobs, cancelUs: (cancelMs * 1000) / spec.jobs }
  return { ...took, flowMs, bulkMs, groupMs, p50Ms: percentile(looks, 50), p99Ms: percentile(looks, 99), ...verbs }
}

async function timed(work) {
  const began = nowMs()
  await work()
  return nowMs() - began
}
