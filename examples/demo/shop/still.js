import { setTimeout as sleep } from 'node:timers/promises'
import { buildMill } from '../../../dist/mill.js'
import { STORE_CHOICE } from '../../../dist/store/choice.js'
import { openFile } from '../../../dist/store/sqlite/connection/open.js'
import { SqliteStore } from '../../../dist/store/sqlite/sqlite-store.js'
import { makeIds } from '../../../dist/world/ids.js'
import { systemWorld } from '../../../dist/world/world.js'
import { fill } from './fill.js'
import { encryption, oldJobs, redact, shopJobs } from './jobs.js'
import { SEED, randomOf } from './random.js'
import { HOSTS, settings } from './settings.js'
import { enqueueOldWork, enqueueState } from './state.js'

/** Tuesday, 17 November 2026, 14:31:50 UTC. */
export const STILL_AT = Date.UTC(2026, 10, 17, 14, 31, 50)
/** Work that takes longer than this goes on for ever; other work takes no time. */
const LONG_MS = 2_000
const SETTLED_MAX_MS = 60_000

/**
 * The shop at one instant: the engine, its workers and the store have a clock that moves only here, so the same pictures can be taken at
 * any time. On SQLite only. Ids, times and numbers are those of the seed; what runs was begun by workers of this process.
 */
export async function openStill({ store, count, isHealthy = false }) {
  if (/^postgres(ql)?:/.test(store))
    throw new Error('--still needs a file: on PostgreSQL the clock is that of the server')
  const clock = { now: STILL_AT - 45 * 60_000 }
  const random = randomOf(SEED)
  const ids = makeIds(() => Math.floor(random.next() * 2 ** 32))
  const open = (options, host = 'web-0') => openClocked(store, { clock, ids, random, host }, options)
  const pace = { work: workUntilLong, isBankDown: () => true }
  const options = { ...settings, encryption, redact, logger: false, poll: '50ms' }
  const jobs = shopJobs(pace)

  const mill = await open({ ...options, jobs })
  await fill(store, { count, now: STILL_AT, isHealthy })
  const close = (mills) => async () => {
    for (const each of mills) await each.close({ deadline: 0 })
  }
  const startWorkers = async () => {
    const started = []
    for (const host of HOSTS) started.push(await open({ ...options, jobs }, host))
    for (const worker of started) await worker.start()
    return started
  }
  if (isHealthy) {
    clock.now = STILL_AT
    const started = await startWorkers()
    await mill.enqueueMany('thumbs', photos(12))
    await mill.recurring('daily-digest', 'daily-digest', {}, '0 9 * * *', { timezone: 'Europe/Oslo' })
    await settled(mill, async () => (await mill.count({ state: 'running' })).count >= 12)
    return { mill, now: STILL_AT, close: close([...started, mill]) }
  }
  const before = await open({ ...options, version: 'v1.41', jobs: oldJobs() })
  await enqueueOldWork(before, { advance: () => (clock.now += 4_000) })
  await before.close({ deadline: 0 })
  clock.now = STILL_AT - 29 * 60_000
  const workers = await startWorkers()
  clock.now = STILL_AT - 8 * 60_000
  const state = await enqueueState(mill, { now: clock.now, newsletter: 10_000, itemMs: 60_000 })
  await settled(mill, async () => (await mill.group('import-nov').progress()).unfinished === 0)
  clock.now = STILL_AT - 3 * 60_000
  await settled(mill, async () => (await state.sequences.migrate.progress()).state === 'failed')
  await settled(mill, async () => (await state.sequences.archive.progress()).done === 312)
  await mill.enqueueMany('thumbs', photos(6), { labels: ['vip'] })
  for (const ago of [180_000, 41_000, 12_000, 2_000]) {
    clock.now = STILL_AT - ago
    await mill.enqueueMany('charge', ordersOf(6, ago, random), (each) => ({
      key: `order-${each.order}`,
      labels: ['billing'],
    }))
    await sleep(150)
  }
  clock.now = STILL_AT
  await settled(mill, async () => (await mill.count({ state: 'running' })).count >= 12)
  return { mill, now: STILL_AT, state, close: close([...workers, mill]) }
}

/** A mill of the shop without history, jobs or workers. */
export async function openMill({ store }) {
  const random = randomOf(SEED)
  const ids = makeIds(() => Math.floor(random.next() * 2 ** 32))
  const clock = { now: STILL_AT }
  const jobs = shopJobs({ work: workUntilLong, isBankDown: () => false })
  const mill = await openClocked(
    store,
    { clock, ids, random, host: 'web-0' },
    { ...settings, encryption, redact, jobs },
  )
  return { mill, now: STILL_AT, close: () => mill.close({ deadline: 0 }) }
}

function photos(count) {
  return Array.from({ length: count }, (_, i) => ({ photo: `photo-${i + 1}.jpg`, ms: 4_000 }))
}

function ordersOf(count, ago, random) {
  return Array.from({ length: count }, (_, i) => ({
    order: 1_040 + ago / 1_000 + i,
    tenant: i < 3 ? ['balkan', 'alpine', 'iberia'][i] : ['nordic', 'baltic'][i % 2],
    country: i < 3 ? 'NO' : 'SE',
    amount: random.between(5, 400) + 0.9,
    card: '4111 1111 1111 1111',
    ms: i < 3 ? 300 : 60_000,
  }))
}

function workUntilLong(ms, signal) {
  if (ms <= LONG_MS) return sleep(1, undefined, { signal })
  return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }))
}

async function settled(mill, isSo) {
  const began = performance.now()
  while (!(await isSo())) {
    if (performance.now() - began > SETTLED_MAX_MS) throw new Error('the shop does not come to rest')
    await sleep(20)
  }
}

async function openClocked(path, { clock, ids, random, host }, options) {
  const system = systemWorld()
  const world = {
    ...system,
    clock: { ...system.clock, now: () => clock.now, monotonic: () => system.clock.monotonic() },
    ids: { ...ids, fence: system.ids.fence },
    random: random.next,
    processes: {
      ...system.processes,
      own: { ...system.processes.own, host, pid: 800 + HOSTS.indexOf(host), identity: null },
    },
  }
  const choice = {
    [STORE_CHOICE]: true,
    open: async (_, autoMigrate) => {
      const target = path
      const file = await openFile({ target, durability: 'process' }, autoMigrate, world)
      return new SqliteStore(file, world, { durability: 'process', now: () => clock.now })
    },
  }
  return buildMill(options, { world, store: choice })
}
