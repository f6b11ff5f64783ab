import { setTimeout } from 'node:timers/promises'
import { nowMs } from '../clock.mjs'
import { percentile } from '../figures.mjs'

const WARM_UP = 50
const AT_ONCE = 500

/** From the call of enqueue until the handler begins, where there are many names and queues. Every lane has a waiting job. */
export async function run({ names, queues, jobs, rate, ...spec }, { openMill }) {
  const tookMs = []
  let over
  const all = new Promise((resolve) => (over = resolve))
  const handler = async ({ at }) => {
    if (tookMs.push(nowMs() - at) === WARM_UP + jobs) over()
  }
  const mill = await openMill({ ...spec, durability: 'power' }, (job) =>
    Array.from({ length: names }, (_, i) => job(`job-${i}`, handler)),
  )
  const lanes = Math.max(names, queues)
  const add = (lane, more) =>
    mill.enqueue(`job-${lane % names}`, { at: nowMs() }, { queue: `q-${lane % queues}`, ...more })
  for (let from = 0; from < lanes; from += AT_ONCE)
    await Promise.all(Array.from({ length: Math.min(AT_ONCE, lanes - from) }, (_, i) => add(from + i, { in: '30d' })))
  await mill.start()
  for (let i = 0; i < WARM_UP + jobs; i += 1) {
    await setTimeout((Math.random() * 2000) / rate)
    void add(Math.floor(Math.random() * lanes), {})
  }
  await all
  await mill.close()
  const measured = tookMs.slice(WARM_UP)
  return { p50Ms: percentile(measured, 50), p95Ms: percentile(measured, 95) }
}
