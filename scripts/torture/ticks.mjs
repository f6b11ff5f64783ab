import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pause, until } from './child.mjs'
import { Fleet, startPostgres } from './fleet.mjs'
import { breakGround } from './ground.mjs'
import { Progress } from './progress.mjs'
import { seededRandom } from './random.mjs'
import { readTickTables } from './ticks-eye.mjs'
import { judgeTicks } from './ticks-judge.mjs'
import { Verdict } from './verdict.mjs'

/** The schedules, each with a tick a second: every way in which a tick can be written; none may be missed. */
const SCHEDULES = {
  every: { rule: { every: '1s' }, options: { missed: 'all' } },
  cron: { rule: '* * * * * *', options: { missed: 'all', jitter: '300ms', timezone: 'Europe/Oslo' } },
  skipping: { rule: { every: '1s' }, options: { missed: 'all', overlap: 'skip' } },
  calling: { rule: '* * * * * *', options: { missed: 'all', overlap: 'cancel' } },
  waiting: { rule: { every: '1s' }, options: { missed: 'all', overlap: 'wait' } },
  once: { rule: { every: '1s' }, options: { missed: 'once' } },
}
/** Kills that are aimed at the moment in which ticks are fired: shortly after a whole second. */
const AIMED_SHARE = 0.6
const AIMED_WITHIN_MS = 40
/** The remaining ticks must be fired and run within this time after the last kill. */
const DRAIN_MS = 60_000

/** kill -9 of schedulers, one after the other, which declare the schedules at every start. */
export async function torture(options) {
  const random = seededRandom(options.seed)
  const ground = await breakGround('ticks')
  const database = options.postgres > 0 ? await startPostgres(ground) : undefined
  const store = database?.url ?? join(ground.room('store'), 'jobs.db')
  const diary = join(ground.folder, 'diary.txt')
  writeFileSync(diary, '')
  const config = { entry: ground.entry, store, diary, schedules: SCHEDULES }
  const fleet = new Fleet('ticker', config)
  const verdict = new Verdict()
  try {
    const kills = await killMany(fleet, options, random)
    const drained = await drain(fleet, store, ground)
    const runs = readFileSync(diary, 'utf8').trim().split('\n')
    judgeTicks(verdict, {
      kills,
      drained,
      tables: await readTickTables(store, ground),
      runs,
      schedules: SCHEDULES,
      options,
    })
  } finally {
    await fleet.killAll()
    await database?.stop()
    if (verdict.exitCode === 0) ground.clear()
    else console.log(`kept for a look: ${ground.folder}`)
  }
  return verdict
}

async function killMany(fleet, options, random) {
  const kills = { done: 0, aimed: 0, young: 0 }
  const progress = new Progress('ticks', options.cycles)
  for (let i = 0; i < options.processes; i += 1) fleet.start()
  await until(() => fleet.up.length === options.processes, 30_000)
  const began = performance.now()
  while (kills.done < options.cycles && performance.now() - began < options.minutes * 60_000) {
    const isAimed = random.next() < AIMED_SHARE
    if (isAimed) await until(() => fleet.up.length > 0, 30_000)
    await pause(isAimed ? 1000 - (Date.now() % 1000) + random.next() * AIMED_WITHIN_MS : random.next() * 700)
    const victim = random.pick(isAimed && fleet.up.length > 0 ? fleet.up : fleet.living)
    kills.done += 1
    if (isAimed) kills.aimed += 1
    if (!victim.isUp) kills.young += 1
    await victim.kill()
    fleet.start()
    progress.step(`aimed at a tick ${kills.aimed}, at a start ${kills.young}`)
  }
  progress.end()
  return kills
}

/** No process is killed any more: all due ticks are fired, and all enqueued jobs have run. */
async function drain(fleet, store, ground) {
  await until(() => fleet.up.length > 0, 30_000)
  const end = performance.now() + DRAIN_MS
  for (;;) {
    await pause(500)
    const { unfinished, overdueMs } = await readTickTables(store, ground)
    // A tick a second is always in progress: a backlog is more than that.
    const drained = unfinished <= 2 * Object.keys(SCHEDULES).length && overdueMs < 2_000
    if (!drained && performance.now() < end) continue
    await fleet.close()
    return { drained, left: `${unfinished} unfinished, the next tick overdue by ${overdueMs} ms` }
  }
}
