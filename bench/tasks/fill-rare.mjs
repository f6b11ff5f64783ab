import { setTimeout } from 'node:timers/promises'
import { payloadsOf } from '../payloads.mjs'

const CHUNK = 10_000
const FAR = { in: '30d' }
const UPKEEP_MS = 3_000

/** A great many scheduled jobs, and in the middle of them one of each rare kind. */
export async function run({ others, bytes, ...spec }, { openMill }) {
  const mill = await openMill(spec, jobsOf)
  await fill(mill, others / 2, bytes)
  await mill.enqueue('rare', {}, { ...FAR, queue: 'few', key: 'k', labels: ['l'] })
  await mill.enqueue('noop', {}, { ...FAR, group: 'g' })
  const paused = await mill.enqueue('noop', {}, FAR)
  await mill.pause(paused.id)
  const cancelled = await mill.enqueue('noop', {}, FAR)
  await mill.cancel(cancelled.id)
  await mill.enqueue('noop', {}, { after: [paused] })
  const failing = await mill.enqueue('fails', {})
  await mill.start()
  await mill
    .handle(failing.id)
    .result({ timeout: '1m' })
    .catch(() => {})
  await mill.stop()
  await fill(mill, others / 2, bytes)
  // Upkeep runs, as it does in every worker.
  await mill.start()
  await setTimeout(UPKEEP_MS)
  await mill.close()
}

export function jobsOf(job) {
  const fails = async () => {
    throw new Error('as planned')
  }
  return [
    ...['noop', 'rare'].map((name) => job(name, async () => {})),
    job('fails', { retry: { limit: 0 }, run: fails }),
  ]
}

async function fill(mill, count, bytes) {
  for (let from = 0; from < count; from += CHUNK)
    await mill.enqueueMany('noop', payloadsOf(bytes, Math.min(CHUNK, count - from), from), FAR)
}
