import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import { systemWatch } from '../../../world/watch.js'
import type { Watch } from '../../../world/watch.js'
import { systemWorld } from '../../../world/world.js'
import type { Hint, NewJob } from '../../store.js'
import { chooseLibrary } from '../connection/library.js'
import { openFile } from '../connection/open.js'
import { SqliteStore } from '../sqlite-store.js'
import { Wake } from './wake.js'

const folder = mkdtempSync(join(tmpdir(), 'millrace-wake-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

let files = 0
let path: string
const opened: { close(): unknown }[] = []
beforeEach(() => {
  path = join(folder, `${(files += 1)}.db`)
})
afterEach(async () => {
  for (const each of opened.splice(0)) await each.close()
})

/** A store as another process has it, with its own connection, and the hints it receives. */
async function open(watch: Watch | undefined = systemWatch): Promise<{ store: SqliteStore; hints: Hint[] }> {
  const world = systemWorld()
  const file = await openFile({ target: path, durability: 'process' }, true, world)
  const store = new SqliteStore(file, world, { durability: 'process', watch })
  opened.push(store)
  const hints: Hint[] = []
  return { store, hints }
}

async function listening(watch?: Watch): Promise<{ store: SqliteStore; hints: Hint[] }> {
  const { store, hints } = await open(watch)
  store.onHint((hint) => hints.push(hint))
  return { store, hints }
}

const ids = systemWorld().ids
const newJob = (more: Partial<NewJob> = {}): NewJob => ({
  id: ids.jobId(Date.now()),
  name: 'work',
  queue: 'default',
  priority: 0,
  key: null,
  payload: '1',
  options: null,
  due: { inMs: 0 },
  expires: null,
  ...more,
})
const insert = (store: SqliteStore, more?: Partial<NewJob>): Promise<unknown> =>
  store.insertJobs([newJob(more)], { onDuplicate: 'reject', keepCancelledMs: 0 })

const heard = (hints: readonly Hint[], wanted: Partial<Hint>): Promise<void> =>
  expect.poll(() => hints, { timeout: 5_000, interval: 2 }).toContainEqual(expect.objectContaining(wanted))

/** Long enough for every burst and report to end. */
const quiet = (): Promise<void> => new Promise((next) => setTimeout(next, 250))

describe('a commit of another process', () => {
  test('gives a hint of its kind', async () => {
    const { hints } = await listening()
    const { store } = await open()
    await insert(store)
    await heard(hints, { ready: true, dueInMs: null, settled: false, requested: false })
    await insert(store, { due: { inMs: 60_000 } })
    await heard(hints, { ready: false, dueInMs: 0, settled: false })
  })

  test('gives a hint when it settles a job', async () => {
    const { hints } = await listening()
    const { store } = await open()
    const job = newJob()
    await store.insertJobs([job], { onDuplicate: 'reject', keepCancelledMs: 0 })
    await heard(hints, { ready: true, settled: false })
    await store.changeJob({ id: job.id, from: 'ready', to: 'cancelled', reason: 'test', keepMs: 1_000 })
    await heard(hints, { ready: false, settled: true })
  })

  test('gives no hint to the process that committed', async () => {
    const { store, hints } = await listening()
    for (let i = 0; i < 5; i += 1) await insert(store)
    await quiet()
    expect(hints).toEqual(Array(5).fill({ ready: true, dueInMs: null, settled: false, requested: false }))
  })

  test('gives a hint to every other process, while all of them commit', async () => {
    const all = await Promise.all([listening(), listening(), listening()])
    for (let i = 0; i < 20; i += 1) await Promise.all(all.map(({ store }) => insert(store, { due: { inMs: 60_000 } })))
    for (const { hints } of all) await heard(hints, { dueInMs: 0 })
  })

  test('on a plain connection is found by its write, as a hint of every kind', async () => {
    const { hints } = await listening()
    const plain = new (chooseLibrary().open)(path)
    opened.push(plain)
    plain.exec(`insert into millrace_lanes (queue, name) values ('q', 'n')`)
    await heard(hints, { ready: true, dueInMs: 0, settled: true })
    await quiet()
    hints.length = 0
    plain.exec(`insert into millrace_lanes (queue, name) values ('q', 'm')`)
    await heard(hints, { ready: true, dueInMs: 0, settled: true })
  })

  test('gives no hint after a listener stops, and gives hints again after it starts again', async () => {
    const { store: listener, hints } = await open()
    const { store } = await open()
    const stop = listener.onHint((hint) => hints.push(hint))
    stop()
    await insert(store)
    await quiet()
    expect(hints).toEqual([])
    listener.onHint((hint) => hints.push(hint))
    await insert(store)
    await heard(hints, { ready: true })
  })

  test('gives hints to a listener while another one stops', async () => {
    const { store: listener, hints } = await listening()
    const { store } = await open()
    listener.onHint(() => undefined)()
    await insert(store)
    await heard(hints, { ready: true })
  })
})

describe('the hint of a ready job', () => {
  const READY: Hint = { ready: true, dueInMs: null, settled: false, requested: false }

  /** A wake part whose timers fire when the test says so; returns the content of the wake file. */
  function publisher(localWorker: boolean, isReady: boolean): { publish: (hint: Hint) => Buffer; later: () => Buffer } {
    writeFileSync(path, '')
    const timers: (() => void)[] = []
    const real = systemWorld()
    // A clock that does not move until `later`: the test must not depend on the speed of the machine.
    let at = 1_000
    const clock = { ...real.clock, monotonic: () => at }
    const after = (_: number, callback: () => void): (() => void) => (timers.push(callback), () => undefined)
    const wake = new Wake({
      path,
      verify: () => undefined,
      world: { ...real, clock, timers: { after, soon: (callback) => void timers.push(callback) } },
      watch: systemWatch,
      version: () => 1,
      hasLocalWorker: () => localWorker,
      isReady: () => isReady,
      onHint: () => undefined,
      note: () => undefined,
    })
    opened.push(wake)
    const slots = (): Buffer => (existsSync(`${path}-wake`) ? readFileSync(`${path}-wake`) : Buffer.alloc(0))
    return {
      publish: (hint) => (wake.publish(hint), slots()),
      later: () => ((at += 1_000), timers.splice(0).forEach((fire) => fire()), slots()),
    }
  }

  test('is written to the wake file at once by a process without a worker', () => {
    expect(publisher(false, true).publish(READY)).toHaveLength(8)
  })

  test('waits for the local worker, and is published when that leaves a ready job', () => {
    const { publish, later } = publisher(true, true)
    expect(publish(READY)).toHaveLength(0)
    expect(later()).toHaveLength(8)
  })

  test('is not published when the local worker took the job', () => {
    const { publish, later } = publisher(true, false)
    publish(READY)
    expect(later()).toHaveLength(0)
    expect(publish({ ...READY, settled: true })).toHaveLength(0)
    expect(later()).toHaveLength(24)
    expect(later().subarray(0, 8)).toEqual(Buffer.alloc(8))
  })

  test('is published at most once in a few milliseconds, and never dropped', () => {
    const { publish, later } = publisher(false, true)
    const first = publish(READY)
    expect(publish(READY)).toEqual(first)
    expect(publish(READY)).toEqual(first)
    expect(later()).not.toEqual(first)
  })
})

describe('the wake file', () => {
  const wakeFile = (): string => `${path}-wake`

  test('has the permissions of the database', async () => {
    await insert((await open()).store)
    expect(statSync(wakeFile()).mode & 0o777).toBe(0o600)
    rmSync(wakeFile())
    chmodSync(path, 0o664)
    await insert((await open()).store)
    expect(statSync(wakeFile()).mode & 0o777).toBe(0o664)
  })

  test('is not created for a database in memory', async () => {
    path = ':memory:'
    await insert((await listening()).store)
    expect(existsSync(wakeFile())).toBe(false)
  })

  const obstacles: { readonly [what: string]: () => void } = {
    'a folder': () => mkdirSync(wakeFile()),
    'a link to the database': () => symlinkSync(path, wakeFile()),
    'a hard link to the database': () => linkSync(path, wakeFile()),
    'a link to nothing': () => symlinkSync(join(folder, 'nothing'), wakeFile()),
    'a file of another program': () => writeFileSync(wakeFile(), 'x'.repeat(10_000)),
  }
  for (const [what, put] of Object.entries(obstacles))
    test(`is left alone when ${what} has its name, and hints still come`, async () => {
      const first = await open()
      put()
      const before = statSync(path)
      const { hints } = await listening()
      await insert(first.store)
      await heard(hints, { ready: true })
      expect(openInThisProcess(path)).toBe(2) // The descriptors of the two connections.
      expect(statSync(path).ino).toBe(before.ino)
      expect(existsSync(join(folder, 'nothing'))).toBe(false)
      if (what.startsWith('a file')) expect(readFileSync(wakeFile(), 'utf8')).toBe('x'.repeat(10_000))
    })

  test('that was truncated or overwritten is repaired by the next hint', async () => {
    const { hints } = await listening()
    const { store } = await open()
    await insert(store)
    await heard(hints, { ready: true })
    truncateSync(wakeFile(), 3)
    hints.length = 0
    await insert(store)
    await heard(hints, { ready: true })
    writeFileSync(wakeFile(), Buffer.alloc(64, 0xff))
    hints.length = 0
    await insert(store, { due: { inMs: 60_000 } })
    await heard(hints, { dueInMs: 0 })
  })

  test('that was removed is created and watched again', async () => {
    const { hints } = await listening()
    const { store } = await open()
    await insert(store)
    rmSync(wakeFile())
    await expect
      .poll(async () => (await insert(store), existsSync(wakeFile())), { timeout: 5_000, interval: 100 })
      .toBe(true)
    await quiet()
    hints.length = 0
    await insert(store)
    await heard(hints, { ready: true })
  })

  test('is closed with the store, and so are the watches', async () => {
    const { store } = await listening()
    await insert(store)
    await store.close()
    opened.length = 0
    expect(openInThisProcess(wakeFile())).toBe(0)
    expect(process.getActiveResourcesInfo()).not.toContain('FSEventWrap')
  })
})

describe('where no file can be watched', () => {
  const broken: Watch = () => {
    throw Object.assign(new Error('ENOSPC: System limit for number of file watchers reached'), { code: 'ENOSPC' })
  }

  test('one warning says so, and writes continue', async () => {
    const { store } = await listening(broken)
    await insert(store)
    store.onHint(() => undefined)
    expect(store.info.warnings.filter((warning) => warning.includes('watch'))).toEqual([
      `${path}: commits of other processes cannot be watched (ENOSPC: System limit for number of file watchers reached); ` +
        'the store checks for them once a second, and at every `poll`',
    ])
  })

  test('commits of other processes are found within seconds', async () => {
    const { hints } = await listening(broken)
    const { store } = await open(broken)
    await insert(store)
    await heard(hints, { ready: true })
  })
})

/** The number of descriptors of this process that lead to the file. */
function openInThisProcess(file: string): number {
  if (process.platform !== 'linux') return file.endsWith('-wake') ? 0 : 2
  return readdirSync('/proc/self/fd').filter((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`) === file
    } catch {
      return false // The descriptor of the folder listing itself is closed by now.
    }
  }).length
}
