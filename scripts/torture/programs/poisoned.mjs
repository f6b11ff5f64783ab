/**
 * A worker among whose jobs one kills the process that runs it. A minute of quarantine is shortened, which no option
 * does: so the mill is built from its parts. It ends when the poison job is parked and all others are done.
 */
const { entry, url, file, jobs, poisonAt, killAfterMs, minuteMs, priority } = JSON.parse(process.argv[2])
const near = (path) => import(new URL(path, entry).href)
const [{ job, sqlite }, { postgres }, { buildMill }, { systemWorld }] = await Promise.all([
  near('./index.js'),
  near('./postgres.js'),
  near('./mill.js'),
  near('./world/world.js'),
])
const say = (...words) => process.stdout.write(`${words.join(' ')}\n`)
const pause = (ms) => new Promise((next) => setTimeout(next, ms))

const good = job('good', async (p) => {
  if (p.ms > 0) await pause(p.ms)
})
const poison = job('poison', async () => {
  if (killAfterMs > 0) await pause(killAfterMs)
  process.kill(process.pid, 'SIGKILL')
  await new Promise(() => undefined)
})
const store = url === undefined ? sqlite(file) : postgres(url)
const mill = await buildMill(
  { jobs: { good, poison }, logger: false, lease: '1s', poll: '100ms' },
  { world: systemWorld(), store, quarantineMs: minuteMs },
)
if (jobs !== undefined) {
  const all = Array.from({ length: jobs }, (_, n) => n)
  const before = all.filter((n) => n < poisonAt).map((n) => ({ ms: (n * 7) % 60 }))
  const after = all.filter((n) => n > poisonAt).map((n) => ({ ms: (n * 7) % 60 }))
  if (before.length > 0) await mill.enqueueMany(good, before)
  await mill.enqueue(poison, undefined, { priority })
  if (after.length > 0) await mill.enqueueMany(good, after)
}
await mill.start()
for (;;) {
  const found = []
  for await (const each of mill.find({})) found.push(each)
  const left = found.filter((each) => each.job === 'good' && each.state !== 'done').length
  const parked = found.find((each) => each.job === 'poison' && each.state === 'parked')
  if (left === 0 && parked !== undefined) {
    const innocent = found.filter((each) => each.job === 'good')
    const charged = innocent.filter((each) => each.crashes > 0).length
    const runsMax = Math.max(...innocent.map((each) => each.attempts.length))
    say('over', innocent.length, charged, runsMax, parked.crashes)
    break
  }
  await pause(200)
}
await mill.close()
