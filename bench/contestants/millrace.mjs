import { pathToFileURL } from 'node:url'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { OutsideEye } from '../../scripts/torture/outside-eye.mjs'

/**
 * Millrace with a user's settings: its defaults (history kept for a week), apart from the log, which is off as it is for the others,
 * and `keep`.
 * @param {{ dist: string, file: string, durability: 'power' | 'process', concurrency: number, keep?: object }} spec
 */
export async function openParty({ dist, file, durability, concurrency, keep }) {
  const { job, millrace, sqlite } = await import(pathToFileURL(join(dist, 'index.js')).href)
  let handler = () => {}
  const noop = job('noop', async (payload, ctx) => handler(payload, ctx.id))
  const store = sqlite(file, { durability })
  const mill = await millrace({
    store,
    jobs: [noop],
    concurrency,
    logger: false,
    ...(keep === undefined ? {} : { keep }),
  })
  return {
    add: (payload, options) => mill.enqueue(noop, payload, options),
    async addMany(payloads, { queue, group, name = 'noop' } = {}) {
      if (!mill.has(name)) mill.register(job(name, async () => {}))
      await mill.enqueueMany(name, payloads, { queue, group })
    },
    /** One node, all its children, and one child of them all. */
    addFlow: (count) =>
      mill.flow((f) => {
        const first = f.add(noop, {})
        const others = Array.from({ length: count - 2 }, (_, n) => f.add(noop, { n }, { after: [first] }))
        return f.add(noop, {}, { after: others })
      }),
    group: (id) => mill.group(id),
    /** Until `count` jobs have run and the last one's outcome is on disk. */
    async drain(count, each) {
      let ran = 0
      const last = new Promise((resolve) => {
        handler = (payload, id) => {
          each(payload)
          ran += 1
          if (ran === count) resolve(id)
        }
      })
      await mill.start()
      await mill.handle(await last).result({ timeout: '1m' })
    },
    async work(each) {
      handler = each
      await mill.start()
    },
    close: () => mill.close(),
  }
}

/** How large the store is, and how many jobs are in it. */
export function measureStore({ file }) {
  const bytesOf = (path) => statSync(path, { throwIfNoEntry: false })?.size ?? 0
  const eye = new OutsideEye(file)
  try {
    return { bytes: bytesOf(file), walBytes: bytesOf(`${file}-wal`), jobs: eye.done() + eye.unfinished() }
  } finally {
    eye.close()
  }
}

/** A mill with other jobs: `make(job)` returns them. */
export async function openMill({ dist, file, durability = 'process', concurrency, queues }, make) {
  const { job, millrace, sqlite } = await import(pathToFileURL(join(dist, 'index.js')).href)
  return millrace({ store: sqlite(file, { durability }), jobs: make(job), logger: false, concurrency, queues })
}

/** Counted without the engine. */
export function countJobs(file) {
  const eye = new OutsideEye(file)
  try {
    return { done: eye.done(), left: eye.unfinished() }
  } finally {
    eye.close()
  }
}
