import { setTimeout } from 'node:timers/promises'
import { nowMs, Watch } from '../clock.mjs'
import { percentile } from '../figures.mjs'
import { payloadOf } from '../payloads.mjs'

/** Jobs after the drain, one at a time on an idle mill. */
export const SINGLES = 30
const FINDS = 30
const PAUSE_MS = 50
const IDLE_MS = 5_000

/** A drain, then what a person or a request does: a single job, a read of it, a page of jobs. Then it is idle. */
export async function run(spec, { openParty }) {
  const drained = await openParty(spec)
  const watch = new Watch(spec.serverPid)
  await drained.drain(spec.jobs, () => {})
  const took = watch.stop()
  await drained.close()
  const party = await openParty(spec)
  let begun
  await party.work((payload) => begun?.(nowMs() - payload.at))
  const [startMs, getMs, findMs] = [[], [], []]
  for (let i = 0; i < SINGLES; i += 1) {
    const started = new Promise((resolve) => (begun = resolve))
    const { id } = await party.add({ ...payloadOf(spec.bytes, i), at: nowMs() })
    startMs.push(await started)
    await setTimeout(PAUSE_MS)
    getMs.push(await timed(() => party.get(id)))
  }
  for (let i = 0; i < FINDS; i += 1) findMs.push(await timed(() => party.findPage()))
  const idle = new Watch(spec.serverPid)
  await setTimeout(IDLE_MS)
  const { ms, serverUs } = idle.stop()
  await party.close()
  const median = (values) => percentile(values, 50)
  return {
    ...took,
    startMs: median(startMs),
    getMs: median(getMs),
    findMs: median(findMs),
    idlePercent: serverUs === undefined ? undefined : serverUs / 1000 / ms / 0.01,
  }
}

async function timed(work) {
  const began = nowMs()
  await work()
  return nowMs() - began
}
