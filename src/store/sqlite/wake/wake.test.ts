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

/** A store as another process has it, with a connection of its own, and what it hears. */
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

/** Long enough for every burst and report to be over. */
const quiet = (): Promise<void> => new Promise((next) => setTimeout(next, 250))

describe('what another commits', () => {
  test('is heard as the kind of news it is', async () => {
    const { hints } = await listening()
    const { store } = await open()
    await insert(store)
    await heard(hints, { ready: true, dueInMs: null, settled: false, requested: false })
    await insert(store, { due: { inMs: 60_000 } })
    await heard(hints, { ready: false, dueInMs: 0, settled: false })
  })

  test('is heard when it settles', async () => {
    const { hints } = await listening()
    const { store } = await open()
    const job = newJob()
    await store.insertJobs([job], { onDuplicate: 'reject', keepCancelledMs: 0 })
    await heard(hints, { ready: true, settled: false })
    await store.changeJob({ id: job.id, from: 'ready', to: 'cancelled', reason: 'test', keepMs: 1_000 })
    await heard(hints, { ready: false, settled: true })
  })

  test('is not heard by itself', async () => {
    const { store, hints } = await listening()
    for (let i = 0; i < 5; i += 1) await insert(store)
    await quiet()
    expect(hints).toEqual(Array(5).fill({ ready: true, dueInMs: null, settled: false, requested: false }))
  })

  test('is heard by everybody else, while all of them commit', async () => {
    const all = await Promise.all([listening(), listening(), listening()])
    for (let i = 0; i < 20; i += 1) await Promise.all(all.map(({ store }) => insert(store, { due: { inMs: 60_000 } })))
    for (const { hints } of all) await heard(hints, { dueInMs: 0 })
  })

  test('on a plain connection is found by its write, as news of every kind', async () => {
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

  test('is not heard by those who stopped listening, and heard again by those who begin again', async () => {
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
})

describe('what became ready', () => {
  const READY: Hint = { ready: true, dueInMs: null, settled: false, requested: false }

  /** A wake part whose timers fire when the test says so; gives what is in the wake file. */
  function telling(worksHere: boolean, isReady: boolean): { tell: (hint: Hint) => Buffer; later: () => Buffer } {
    writeFileSync(path, '')
    const timers: (() => void)[] = []
    const real = systemWorld()
    // A clock that stands still until `later`: what is told within a few milliseconds must not depend on how fast we are.
    let at = 1_000
    const clock = { ...real.clock, monotonic: () => at }
    const after = (_: number, callback: () => void): (() => void) => (timers.push(callback), () => undefined)
    const wake = new Wake({
      path,
      verify: () => undefined,
      world: { ...real, clock, timers: { after, soon: (callback) => void timers.push(callback) } },
      watch: systemWatch,
      version: () => 1,
      hasLocalWorker: () => worksHere,
      isReady: () => isReady,
      onHint: () => undefined,
      note: () => undefined,
    })
    opened.push(wake)
    const slots = (): Buffer => (existsSync(`${path}-wake`) ? readFileSync(`${path}-wake`) : Buffer.alloc(0))
    return {
      tell: (hint) => (wake.publish(hint), slots()),
      later: () => ((at += 1_000), timers.splice(0).forEach((fire) => fire()), slots()),
    }
  }

  test('is told at once where nobody works', () => {
    expect(telling(false, true).tell(READY)).toHaveLength(8)
  })

  test('is first for the worker here, and told when it leaves something', () => {
    const { tell, later } = telling(true, true)
    expect(tell(READY)).toHaveLength(0)
    expect(later()).toHaveLength(8)
  })

  test('is not told at all when the worker here took it', () => {
    const { tell, later } = telling(true, false)
    tell(READY)
    expect(later()).toHaveLength(0)
    expect(tell({ ...READY, settled: true })).toHaveLength(0)
    expect(later()).toHaveLength(24)
    expect(later().subarray(0, 8)).toEqual(Buffer.alloc(8))
  })

  test('is told at most once in a few milliseconds, and never forgotten', () => {
    const { tell, later } = telling(false, true)
    const first = tell(READY)
    expect(tell(READY)).toEqual(first)
    expect(tell(READY)).toEqual(first)
    expect(later()).not.toEqual(first)
  })
})

describe('the wake file', () => {
  const wakeFile = (): string => `${path}-wake`

  test('may be read and written by whoever may read and write the database', async () => {
    await insert((await open()).store)
    expect(statSync(wakeFile()).mode & 0o777).toBe(0o600)
    rmSync(wakeFile())
    chmodSync(path, 0o664)
    await insert((await open()).store)
    expect(statSync(wakeFile()).mode & 0o777).toBe(0o664)
  })

  test('is there for no database in memory', async () => {
    path = ':memory:'
    await insert((await listening()).store)
    expect(existsSync(wakeFile())).toBe(false)
  })

  const obstacles: { readonly [what: string]: () => void } = {
    'a folder': () => mkdirSync(wakeFile()),
    'a link to the database': () => symlinkSync(path, wakeFile()),
    'a hard link to the database': () => linkSync(path, wakeFile()),
    'a link to nothing': () => symlinkSync(join(folder, 'nothing'), wakeFile()),
    'a file of somebody else’s': () => writeFileSync(wakeFile(), 'x'.repeat(10_000)),
  }
  for (const [what, put] of Object.entries(obstacles))
    test(`is left alone when ${what} has its name, and news still comes`, async () => {
      const first = await open()
      put()
      const before = statSync(path)
      const { hints } = await listening()
      await insert(first.store)
      await heard(hints, { ready: true })
      expect(openInThisProcess(path)).toBe(2) // The two connections' own.
      expect(statSync(path).ino).toBe(before.ino)
      expect(existsSync(join(folder, 'nothing'))).toBe(false)
      if (what.startsWith('a file')) expect(readFileSync(wakeFile(), 'utf8')).toBe('x'.repeat(10_000))
    })

  test('that was cut short or filled with anything is written over where it is ours', async () => {
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

  test('that was removed is made again, and watched again', async () => {
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

describe('where nothing can be watched', () => {
  const broken: Watch = () => {
    throw Object.assign(new Error('ENOSPC: System limit for number of file watchers reached'), { code: 'ENOSPC' })
  }

  test('it is said once, in a sentence, and writing goes on', async () => {
    const { store } = await listening(broken)
    await insert(store)
    store.onHint(() => undefined)
    expect(store.info.warnings.filter((warning) => warning.includes('watch'))).toEqual([
      `${path}: what other processes commit cannot be watched here (ENOSPC: System limit for number of file watchers reached); ` +
        'it is looked for once a second, and at every `poll`',
    ])
  })

  test('commits of others are found all the same, within seconds', async () => {
    const { hints } = await listening(broken)
    const { store } = await open(broken)
    await insert(store)
    await heard(hints, { ready: true })
  })
})

/** How many descriptors of this process lead to the file. */
function openInThisProcess(file: string): number {
  if (process.platform !== 'linux') return file.endsWith('-wake') ? 0 : 2
  return readdirSync('/proc/self/fd').filter((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`) === file
    } catch {
      return false // The folder's own descriptor is gone by now.
    }
  }).length
}
