import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { systemWorld } from '../../../world/world.js'
import type { World } from '../../../world/world.js'
import { CheckpointThread } from './checkpoint-thread.js'
import { Checkpoints, judge, UNPINNED, WAL_MAX_BYTES } from './checkpoints.js'
import type { Reached } from './checkpoints.js'
import { openFile } from '../connection/open.js'
import { queries } from '../queries/queries.js'

const folder = mkdtempSync(join(tmpdir(), 'millrace-checkpoints-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

test('a reader that pins the WAL gets only passive checkpoints, with growing waits, and one warning', async () => {
  const path = join(folder, 'pinned.db')
  const real = systemWorld()
  const file = await openFile({ target: path, durability: 'process' }, true, real)
  const { identity, library, database } = file
  if (identity === undefined) return file.close() // No inodes here, and no thread without them.
  const reader = new library.open(path)
  reader.exec('begin')
  reader.prepare('select count(*) from millrace_live').get()
  database.exec('create table pad (x); pragma synchronous = off')
  for (let i = 0; i < 20; i += 1) database.exec('insert into pad values (zeroblob(1048576))')
  const walBytes = (): number => statSync(`${path}-wal`).size
  expect(walBytes()).toBeGreaterThan(WAL_MAX_BYTES)

  const thread = new CheckpointThread({
    library,
    path,
    identity,
    passive: queries.passiveCheckpoint,
    truncate: queries.truncateCheckpoint,
  })
  const kinds: string[] = []
  const automatic: boolean[] = []
  const warnings: string[] = []
  const waits: number[] = []
  let at = 0
  let truncated: () => void = () => undefined
  const isTruncated = new Promise<void>((resolve) => (truncated = resolve))
  let waiting: (look: () => void) => void = () => undefined
  const after = (ms: number, look: () => void): (() => void) => {
    waits.push(ms)
    setImmediate(waiting, look) // As a timer fires: after the round that set it.
    return () => undefined
  }
  const checkpoints = new Checkpoints({
    path,
    world: { ...real, clock: { ...real.clock, monotonic: () => at }, timers: { ...real.timers, after } },
    checkpoint: async (kind) => {
      kinds.push(kind)
      const reached = await thread.checkpoint(kind)
      if (kind === 'truncate') truncated()
      return reached
    },
    setAutomatic: (on) => void automatic.push(on),
    warn: (text) => void warnings.push(text),
  })
  const nextWait = (begin: () => void): Promise<() => void> =>
    new Promise((resolve) => {
      waiting = resolve
      begin()
    })

  let look = await nextWait(() => checkpoints.noticed(walBytes()))
  for (let i = 0; i < 8; i += 1) {
    const again = look
    at += waits.at(-1) ?? 0
    look = await nextWait(again)
  }
  expect(waits).toEqual([500, 1_000, 2_000, 4_000, 5_000, 5_000, 5_000, 5_000, 5_000])
  expect(new Set(kinds)).toEqual(new Set(['passive']))
  expect(automatic).toEqual([false])
  expect(warnings).toHaveLength(1)
  expect(warnings[0]).toMatch(/has grown to 2\d MB: a process keeps a read transaction open/)

  reader.exec('commit')
  at += waits.at(-1) ?? 0
  look()
  await isTruncated
  expect(walBytes()).toBe(0)
  expect(automatic).toEqual([false, true])
  checkpoints.close()
  await thread.close()
  reader.close()
  file.close()
})

test('the WAL is truncated at once when its readers move on', () => {
  expect(judge(UNPINNED, { log: 5_000, checkpointed: 4_500 }, 0)).toEqual({
    state: UNPINNED,
    waitMs: 500,
    warns: false,
  })
})

test('one warning is given each time the WAL is pinned', () => {
  const pinned = { log: 9_000, checkpointed: 10 }
  const warned: number[] = []
  let state = UNPINNED
  for (let now = 0; now < 60_000; now += 5_000) {
    const judged = judge(state, now === 30_000 ? { log: 10, checkpointed: 10 } : pinned, now)
    if (judged.warns) warned.push(now)
    state = judged.state
  }
  expect(warned).toEqual([10_000, 45_000])
})

test('a checkpoint that was not possible gives no verdict on readers', () => {
  expect(judge(UNPINNED, undefined, 1_000)).toEqual({ state: UNPINNED, waitMs: 500, warns: false })
})

/** Checkpoints of a file whose answers the test gives. */
function scripted(reached: (kind: string) => Reached | undefined, tookMs = 0) {
  let now = 0
  const [kinds, armed, automatic]: [string[], Map<() => void, number>, boolean[]] = [[], new Map(), []]
  const world = {
    clock: { monotonic: () => now },
    timers: { after: (ms: number, run: () => void) => (armed.set(run, ms), () => void armed.delete(run)) },
  } as unknown as World
  const checkpoints = new Checkpoints({
    path: 'a.db',
    world,
    checkpoint: async (kind) => {
      kinds.push(kind)
      now += tookMs
      return reached(kind)
    },
    setAutomatic: (on) => void automatic.push(on),
    warn: () => undefined,
  })
  const noticed = async (bytes: number): Promise<void> => {
    checkpoints.noticed(bytes)
    for (let turns = 10; turns > 0; turns -= 1) await new Promise((next) => setImmediate(next))
  }
  return { checkpoints, noticed, kinds, armed, automatic, pass: (ms: number) => (now += ms) }
}

test('a WAL without a pinning reader is checkpointed when it is long, twice a second at most, by no timer', async () => {
  const { noticed, kinds, armed, automatic, pass } = scripted(() => ({ log: 2_000, checkpointed: 1_000 }))
  await noticed(WAL_MAX_BYTES)
  expect(kinds).toEqual([])
  await noticed(WAL_MAX_BYTES + 1)
  expect([kinds, armed.size, automatic]).toEqual([['passive', 'truncate'], 0, []])
  pass(499)
  await noticed(WAL_MAX_BYTES + 1)
  expect(kinds.length).toBe(2)
  pass(1)
  await noticed(WAL_MAX_BYTES + 1)
  expect(kinds.length).toBe(4)
})

test('a checkpoint that was not possible is not followed by a truncating one', async () => {
  const { noticed, kinds, armed } = scripted(() => undefined)
  await noticed(WAL_MAX_BYTES + 1)
  expect([kinds, armed.size]).toEqual([['passive'], 0])
})

test('slow passive checkpoints are repeated up to five times, so that the truncating one has little to copy', async () => {
  const slow = scripted(() => ({ log: 10, checkpointed: 10 }), 100)
  await slow.noticed(WAL_MAX_BYTES + 1)
  expect(slow.kinds).toEqual([...Array<string>(5).fill('passive'), 'truncate'])
  const quick = scripted(() => ({ log: 10, checkpointed: 10 }), 99)
  await quick.noticed(WAL_MAX_BYTES + 1)
  expect(quick.kinds).toEqual(['passive', 'truncate'])
})

test('a reader that is 1,000 pages behind pins nothing, and one more page does; closing ends the wait', async () => {
  const { noticed, kinds, armed, automatic, checkpoints, pass } = scripted(() => ({ log: 1_001, checkpointed: 0 }))
  await noticed(WAL_MAX_BYTES + 1)
  expect([kinds, [...armed.values()], automatic]).toEqual([['passive'], [500], [false]])
  pass(10_000)
  await noticed(WAL_MAX_BYTES + 1)
  expect(kinds.length).toBe(1)
  checkpoints.close()
  expect(armed.size).toBe(0)
  await noticed(WAL_MAX_BYTES + 1)
  expect(kinds.length).toBe(1)
})
