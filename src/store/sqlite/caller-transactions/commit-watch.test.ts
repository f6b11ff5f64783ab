import { expect, test } from 'vitest'
import { rest, VirtualTime } from '../../../testing/simulation/virtual-time.js'
import { systemWorld } from '../../../world/world.js'
import type { SqliteDatabase } from '../connection/driver.js'
import { CommitWatch } from './commit-watch.js'

function watching({ isOwn = false }: { isOwn?: boolean } = {}) {
  const time = new VirtualTime(0)
  const system = systemWorld()
  const handle = { inTransaction: true } as unknown as SqliteDatabase & { inTransaction: boolean }
  const seen = { version: 1, checks: 0, committed: 0 }
  const after: typeof system.timers.after = (ms, run, options) => time.at(time.now + ms, run, options)
  const watch = new CommitWatch(
    { ...system, timers: { ...system.timers, after } },
    {
      version: () => {
        seen.checks += 1
        return seen.version
      },
      isOwn: () => isOwn,
      committed: () => void (seen.committed += 1),
    },
  )
  return { time, handle, seen, watch }
}

test('a transaction is checked until it ends, at most every ten milliseconds, and keeps no process alive', async () => {
  const { time, handle, seen, watch } = watching()
  watch.expect(handle)
  watch.expect(handle)
  await rest()
  // Once when it begins, and once in the next turn: the second call watches the same transaction.
  expect(seen.checks).toBe(2)
  expect(time.isQuiet).toBe(true)
  await time.advanceTo(15)
  expect(seen.checks).toBe(6) // after 1, 3, 7 and 15 ms
  await time.advanceTo(45)
  expect(seen.checks).toBe(9) // and every ten from then on
  expect(seen.committed).toBe(0)
  handle.inTransaction = false
  await time.advanceTo(55)
  expect(time.next).toBeUndefined()
  expect(seen.committed).toBe(0)
})

test('a change of the version is a commit, also while the handle is in its next transaction', async () => {
  const { time, handle, seen, watch } = watching()
  watch.expect(handle)
  await rest()
  seen.version = 2
  await time.advanceTo(1)
  expect(seen.committed).toBe(1)
  await time.advanceTo(3)
  expect(seen.committed).toBe(1)
})

test('the end of a transaction on the store’s own connection is taken for a commit, and the next one is watched again', async () => {
  const { time, handle, seen, watch } = watching({ isOwn: true })
  watch.expect(handle)
  await rest()
  expect(seen.committed).toBe(0)
  handle.inTransaction = false
  await time.advanceTo(1)
  expect(seen.committed).toBe(1)
  handle.inTransaction = true
  watch.expect(handle)
  await rest()
  handle.inTransaction = false
  await time.advanceTo(5)
  expect(seen.committed).toBe(2)
})

test('a closed watch checks nothing any more', async () => {
  const { time, handle, seen, watch } = watching({ isOwn: true })
  watch.expect(handle)
  await rest()
  watch.close()
  handle.inTransaction = false
  await time.advanceTo(100)
  expect(seen.committed).toBe(0)
  expect(time.next).toBeUndefined()
})
