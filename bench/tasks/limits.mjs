import { Watch } from '../clock.mjs'
import { payloadsOf } from '../payloads.mjs'

/** More than a worker takes at once: the limit costs what counting costs, and holds nothing up. */
const MAX = 5_000

/**
 * Drains jobs that do nothing: `plain` ones, ones of a `queue` with a limit, or ones with a limit by `keys` (so many, in equal parts).
 * `other`: a limit that none of the drained jobs is under is defined beside them.
 */
export async function run({ jobs, bytes, concurrency, way, keys, ...where }, { openMill }) {
  let ran = 0
  let finish
  const order = []
  const handler = (payload) => {
    if (way === 'keys') order.push(payload.n % keys)
    ran += 1
    if (ran === jobs) finish()
  }
  const options = way === 'keys' ? { limit: { max: MAX, key: (payload) => String(payload.n % keys) } } : {}
  const queues = way === 'queue' ? { limited: { limit: { max: MAX } } } : undefined
  const mill = await openMill({ ...where, concurrency, queues }, (job) => {
    const work = job('work', { run: async (payload) => handler(payload), ...options })
    return way === 'other' ? [work, job('other', { run: async () => {}, limit: { max: 1 } })] : [work]
  })
  await mill.enqueueMany('work', payloadsOf(bytes, jobs, 0), way === 'queue' ? { queue: 'limited' } : {})
  const watch = new Watch(where.serverPid)
  const last = new Promise((resolve) => (finish = resolve))
  await mill.start()
  await last
  await mill.stop()
  const took = watch.stop()
  await mill.close()
  return { ...took, ran, unfair: unfairness(order, keys) }
}

/** The most jobs of one key that began before every key had one: 1 where keys strictly take turns. */
function unfairness(order, keys) {
  let most = 0
  const counts = new Map()
  for (const key of order) {
    counts.set(key, (counts.get(key) ?? 0) + 1)
    if (counts.size === keys) break
    most = Math.max(most, counts.get(key))
  }
  return most
}
