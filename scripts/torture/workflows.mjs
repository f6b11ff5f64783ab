import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pause, until } from './child.mjs'
import { Fleet, startPostgres } from './fleet.mjs'
import { breakGround } from './ground.mjs'
import { Progress } from './progress.mjs'
import { seededRandom } from './random.mjs'
import { Verdict } from './verdict.mjs'
import { judgeWorkflows } from './workflows-judge.mjs'

/** What is left must end within this time after the last kill. */
const DRAIN_MS = 120_000

/** kill -9 of processes that run workflows and sequences, at random moments. */
export async function torture(options) {
  const random = seededRandom(options.seed)
  const ground = await breakGround('workflows')
  const { event, millrace } = await import(ground.entry)
  const database = options.store === 'postgres' ? await startPostgres(ground) : undefined
  const store = database?.url ?? join(ground.room('store'), 'jobs.db')
  const diary = join(ground.folder, 'diary.txt')
  writeFileSync(diary, '')
  const verdict = new Verdict()
  const fleet = new Fleet('long-worker', { entry: ground.entry, store, diary })
  const bookings = await openBookings(store)
  try {
    const kills = await killMany(fleet, options, random)
    const mill = await millrace({ store, logger: false })
    await sendAgain(mill, event('approved'))
    const isDrained = await until(() => isAllEnded(mill), DRAIN_MS, 500)
    await fleet.close()
    await judgeWorkflows(verdict, {
      mill,
      kills,
      isDrained,
      diary: readDiary(diary),
      bookings: await bookings.read(),
      options,
    })
    await mill.close()
  } finally {
    await fleet.killAll()
    await bookings.close()
    await database?.stop()
    if (verdict.exitCode === 0) ground.clear()
    else console.log(`kept for a look: ${ground.folder}`)
  }
  return verdict
}

/** The table that `w.transaction` writes to, beside the tables of the engine. */
async function openBookings(store) {
  if (!store.startsWith('postgres')) {
    const { DatabaseSync } = await import('@photostructure/sqlite')
    const db = new DatabaseSync(store)
    db.exec('create table if not exists bookings (workflow text)')
    return {
      read: async () =>
        db
          .prepare('select workflow from bookings')
          .all()
          .map((row) => row.workflow),
      close: async () => db.close(),
    }
  }
  const { default: pg } = await import('pg')
  const client = new pg.Client({ connectionString: store })
  await client.connect()
  await client.query('create table bookings (workflow text)')
  const read = async () => (await client.query('select workflow from bookings')).rows.map((row) => row.workflow)
  return { read, close: () => client.end() }
}

/**
 * A process that was killed may not have sent its event: the person clicks again, with the same id. Also for a workflow that its
 * process enqueued and had no time to write into the diary.
 */
async function sendAgain(mill, approved) {
  for await (const { id, key } of mill.find({ job: 'order' }))
    await mill.send(id, approved, { by: key }, { id: `click-${key}` })
}

async function isAllEnded(mill) {
  for (const state of ['scheduled', 'ready', 'running', 'retrying', 'blocked', 'paused'])
    if ((await mill.count({ state })).count > 0) return false
  return true
}

const readDiary = (file) =>
  readFileSync(file, 'utf8')
    .split('\n')
    .map((line) => line.split(' '))

async function killMany(fleet, options, random) {
  const progress = new Progress('workflows', options.kills)
  for (let i = 0; i < options.processes; i += 1) fleet.start()
  await until(() => fleet.up.length === options.processes, 30_000)
  const began = performance.now()
  let kills = 0
  while (kills < options.kills && performance.now() - began < options.minutes * 60_000) {
    await pause(random.next() * 1_000)
    await random.pick(fleet.living).kill()
    kills += 1
    fleet.start()
    await until(() => fleet.up.length > 0, 30_000)
    progress.step('')
  }
  progress.end()
  await until(() => fleet.up.length === options.processes, 30_000)
  fleet.tell('rest')
  return kills
}
