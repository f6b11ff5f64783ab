import { afterEach, expect, test } from 'vitest'
import { job } from '../../job/definition/define.js'
import { buildMill } from '../../mill.js'
import type { Mill } from '../../mill/mill-type.js'
import { STORE_CHOICE } from '../../store/choice.js'
import { chooseLibrary } from '../../store/sqlite/connection/library.js'
import { openFile } from '../../store/sqlite/connection/open.js'
import { SqliteStore } from '../../store/sqlite/sqlite-store.js'
import { VirtualTime } from '../../testing/simulation/virtual-time.js'
import { makeIds } from '../../world/ids.js'
import { UNKNOWN_PROCESSES } from '../../world/processes.js'
import { systemTimers } from '../../world/timers.js'
import type { World } from '../../world/world.js'
import { systemWorld } from '../../world/world.js'
import { ABORT_GRACE_MS } from './overdue.js'

/** A whole mill, with a worker, in virtual time: half a minute of grace passes at once. */
let mill: Mill
afterEach(async () => {
  await mill.close({ deadline: 0 })
})

async function begin(options: object): Promise<VirtualTime> {
  const time = new VirtualTime(Date.UTC(2030, 0, 1))
  const world: World = {
    clock: { now: () => Math.floor(time.now), monotonic: () => time.now },
    timers: {
      after: (ms, run, o) => time.at(time.now + Math.max(0, ms), run, o),
      soon: (run) => systemTimers.soon(run),
    },
    ids: makeIds(() => Math.floor(Math.random() * 2 ** 32)),
    random: () => 0.5,
    processes: UNKNOWN_PROCESSES,
  }
  const target = new (chooseLibrary().open)(':memory:')
  const file = await openFile({ target, durability: 'process' }, true, systemWorld())
  const store = new SqliteStore(file, world, { durability: 'process', now: () => Math.floor(time.now) })
  const choice = { [STORE_CHOICE]: true as const, open: () => Promise.resolve(store) }
  mill = await buildMill({ logger: false, ...options }, { world, store: choice })
  // Closing waits by timers, which do not advance once a test is over.
  const close = mill.close.bind(mill)
  mill.close = async (o) => {
    const closing = close(o)
    let closed = false
    void closing.then(() => (closed = true))
    while (!closed) await time.advanceTo(time.now + 50)
    return closing
  }
  return time
}

const state = async (id: string): Promise<string | undefined> => (await mill.get(id))?.state

test.each([
  ['timed out', { timeout: '10s' }, 10_000, 'retrying'],
  ['was cancelled', {}, 0, 'cancelled'],
] as const)(
  'a handler that %s and does not come back is settled after its grace, and keeps its slot until it ends',
  async (why, options, toldAfterMs, settled) => {
    const began: number[] = []
    const end: (() => void)[] = []
    const work = job('work', {
      run: async (n: number) => {
        began.push(n)
        if (n === 1) await new Promise<void>((resolve) => end.push(resolve))
      },
      retry: { backoff: { start: '1h' } },
      ...options,
    })
    const time = await begin({ jobs: [work], concurrency: 1 })
    const [first, second] = await mill.enqueueMany(work, [1, 2])
    await mill.start()
    await time.advanceTo(time.now + 10)
    expect(began).toEqual([1])
    if (why === 'was cancelled') expect(await mill.cancel(first!.id)).toBe(true)
    await time.advanceTo(time.now + toldAfterMs + ABORT_GRACE_MS - 100)
    expect([await state(first!.id), began]).toEqual(['running', [1]])
    await time.advanceTo(time.now + 200)
    expect([await state(first!.id), began]).toEqual([settled, [1]])
    for (const resolve of end) resolve()
    await time.advanceTo(time.now + 100)
    expect([await state(first!.id), began]).toEqual([settled, [1, 2]])
    await second!.result()
  },
)

test('a cancel after the signal was aborted by the timeout cancels the job instead of retrying it', async () => {
  const late: (() => void)[] = []
  const work = job('work', {
    run: (_: undefined, ctx) =>
      new Promise<never>((_resolve, reject) => late.push(() => reject(ctx.signal.reason as Error))),
    timeout: '10s',
  })
  const time = await begin({ jobs: [work] })
  const { id } = await mill.enqueue(work)
  await mill.start()
  await time.advanceTo(time.now + 11_000)
  expect(await mill.cancel(id)).toBe(true)
  for (const reject of late) reject()
  await time.advanceTo(time.now + 100)
  expect(await mill.get(id)).toMatchObject({ state: 'cancelled', error: { name: 'TimeoutError' } })
})
