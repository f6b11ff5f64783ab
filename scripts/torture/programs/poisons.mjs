import run from './poison-handlers.mjs'

/**
 * A worker with eight kinds of poison among its jobs. A minute of quarantine and the grace of a blocked loop are shortened,
 * which no option does: so the mill is built from its parts. It ends when every job has ended or is parked.
 */
const { entry, file, jobs, kinds, executor, minuteMs, blockGraceMs } = JSON.parse(process.argv[2])
const near = (path) => import(new URL(path, entry).href)
const [{ job, sqlite }, { buildMill }, { systemWorld }, { systemUncaught }] = await Promise.all([
  near('./index.js'),
  near('./mill.js'),
  near('./world/world.js'),
  near('./world/uncaught.js'),
])
const pause = (ms) => new Promise((next) => setTimeout(next, ms))
const module = new URL('./poison-handlers.mjs', import.meta.url)

const good = job('good', async ({ ms }) => pause(ms))
const where = executor === 'process' ? { executor, module, memoryMb: 32 } : { run }
const poison = job('poison', { ...where, retry: { limit: 0 }, timeout: '1m' })
/** Those that never end by themselves. */
const TIMEOUTS = { spin: '2s', deaf: '2s' }
const mill = await buildMill(
  { store: file, jobs: { good, poison }, logger: false, lease: '1s', poll: '100ms' },
  { world: systemWorld(), store: sqlite(file), quarantineMs: minuteMs, blockGraceMs, uncaught: systemUncaught },
)
if (jobs !== undefined) {
  const all = Array.from({ length: jobs }, (_, n) => ({ ms: (n * 7) % 60 }))
  const share = Math.ceil(jobs / kinds.length)
  for (const [at, kind] of kinds.entries()) {
    await mill.enqueue(poison, { kind }, { labels: [kind], timeout: TIMEOUTS[kind] })
    await mill.enqueueMany(good, all.slice(at * share, (at + 1) * share))
  }
}
await mill.start()
process.stdout.write('up\n')
const isOver = ({ state }) => ['done', 'failed', 'parked', 'cancelled'].includes(state)
for (;;) {
  const found = []
  for await (const each of mill.find({})) found.push(each)
  if (found.every(isOver)) {
    process.stdout.write(`over ${JSON.stringify(summary(found))}\n`)
    break
  }
  await pause(200)
}
await mill.close()

function summary(found) {
  const innocent = found.filter((each) => each.job === 'good')
  return {
    good: innocent.filter(({ state }) => state === 'done').length,
    charged: innocent.filter(({ crashes, attempt }) => crashes > 0 || attempt !== 1).length,
    poisons: found
      .filter((each) => each.job === 'poison')
      .map(({ labels: [kind], state, crashes, reason, error, attempts }) => ({
        kind,
        state,
        crashes,
        why: error?.message ?? reason ?? '',
        exits: attempts.flatMap(({ exit }) => exit ?? []),
      })),
  }
}
