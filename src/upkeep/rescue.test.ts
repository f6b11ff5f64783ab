import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { chooseLibrary } from '../store/sqlite/connection/library.js'
import { openFile } from '../store/sqlite/connection/open.js'
import { SqliteStore } from '../store/sqlite/sqlite-store.js'
import type { SettledJob, Store } from '../store/store.js'
import type { WorkerBeat } from '../store/workers.js'
import { UNKNOWN_PROCESSES } from '../world/processes.js'
import { systemWorld } from '../world/world.js'
import { Rescuer } from './rescue.js'

const folder = mkdtempSync(join(tmpdir(), 'millrace-rescue-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const LEASE = 3_000
const sleep = (ms: number): Promise<void> => new Promise((next) => setTimeout(next, ms))

/**
 * The worst case: another process locks the file when the worker's last beat is older than the observer's own by a fifth of a
 * lease. After a lease of silence the observer's own beat is still recent, and both wait for the same lock.
 */
test('a live worker is not rescued while another process holds the file for a lease', async () => {
  const path = join(folder, 'held.db')
  // As on two machines: only the heartbeat decides.
  const world = { ...systemWorld(), processes: UNKNOWN_PROCESSES }
  const open = async (): Promise<SqliteStore> =>
    new SqliteStore(await openFile({ target: path, durability: 'process' }, true, world), world, {
      durability: 'process',
    })
  const [store, theirs] = [await open(), await open()]
  await store.addWorker({ id: 'observer', host: 'h', pid: 1 })
  await theirs.addWorker({ id: 'worker', host: 'h', pid: 2 })
  const heart = await theirs.startHeartbeat('worker', LEASE / 3, () => undefined)
  const beatOf = async (): Promise<number> =>
    (await store.readWorkers()).find((worker) => worker.id === 'worker')?.beat ?? -1
  const rescued: string[] = []
  const observer = observed(store)
  const rescuer = new Rescuer({
    world,
    store: observer.store,
    self: () => 'observer',
    leaseMs: () => LEASE,
    crashBudget: () => 3,
    rescued: (worker) => rescued.push(worker),
    settled: () => undefined,
    storeFailed: () => undefined,
  })
  rescuer.start()
  await observer.until(() => true)
  await store.beat('observer')
  const before = await beatOf()
  await observer.until((beats) => (beats.find(({ id }) => id === 'worker')?.beat ?? -1) > before)
  await store.beat('observer')
  await sleep(LEASE * 0.22)
  await store.beat('observer')
  const other = new (chooseLibrary().open)(path)
  other.exec('begin immediate')
  const held = await beatOf()
  await sleep(LEASE * 0.98)
  other.exec('rollback')
  await expect.poll(beatOf, { interval: 5, timeout: LEASE }).not.toBe(held)
  expect(rescued).toEqual([])
  other.close()
  await rescuer.stop()
  await heart?.stop()
  await theirs.close()
  await store.close()
})

test('a rescued job is logged from its start, with the lines that it reported, or from its claim', async () => {
  const written: SettledJob[] = []
  const job = {
    ref: 1,
    id: 'a',
    name: 'mail',
    attempt: 0,
    retries: 0,
    crashes: 0,
    streak: 0,
    log: null,
    claimedAt: 100,
    progress: null,
  }
  const leased = [
    { ...job, startedAt: 200, quarantined: 1, progress: '{"done":1,"log":["page 7"]}' },
    { ...job, ref: 2, startedAt: null, quarantined: 0 },
  ]
  const dead: WorkerBeat = { id: 'dead', beat: 1, process: { host: 'h', pid: 2, identity: null } } as WorkerBeat
  const leases = {
    readWorkers: async () => (written.length > 0 ? [] : [dead]),
    readLeases: async () => leased,
    rescueJobs: async (_: string, __: number, settled: readonly SettledJob[]) => {
      written.push(...settled)
      return { changed: [] }
    },
  }
  const world = { ...systemWorld(), processes: { ...UNKNOWN_PROCESSES, isGone: () => true } }
  const rescued: number[] = []
  const rescuer = new Rescuer({
    world,
    store: { leases } as unknown as Store,
    self: () => 'observer',
    leaseMs: () => LEASE,
    crashBudget: () => 3,
    rescued: (_, jobs) => rescued.push(jobs.length),
    settled: () => undefined,
    storeFailed: () => undefined,
  })
  rescuer.start()
  await expect.poll(() => rescued).toEqual([2])
  await rescuer.stop()
  const [begun, held] = written
  expect(JSON.parse(begun?.log ?? '[]')).toMatchObject([
    { startedAt: 200, endedAt: 200, worker: 'dead', log: ['page 7'] },
  ])
  expect(JSON.parse(held?.log ?? '[]')).toMatchObject([{ startedAt: 100, endedAt: 100, worker: 'dead' }])
})

/** The same store, and a promise for a read of its workers that returns at least one. */
function observed(store: SqliteStore): {
  readonly store: SqliteStore
  until(sees: (beats: readonly WorkerBeat[]) => boolean): Promise<void>
} {
  let looked: (beats: readonly WorkerBeat[]) => void = () => undefined
  const readWorkers = async (): Promise<readonly WorkerBeat[]> => {
    const beats = await store.readWorkers()
    looked(beats)
    return beats
  }
  const watched: SqliteStore = new Proxy(store, {
    get(target, name) {
      if (name === 'leases') return watched
      if (name === 'readWorkers') return readWorkers
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
  const until = (sees: (beats: readonly WorkerBeat[]) => boolean): Promise<void> =>
    new Promise((resolve) => (looked = (beats) => void (sees(beats) && resolve())))
  return { store: watched, until }
}
