import { buildMill } from '../../src/mill.js'
import type { Mill, MillOptions } from '../../src/index.js'
import { STORE_CHOICE } from '../../src/store/choice.js'
import { chooseLibrary } from '../../src/store/sqlite/connection/library.js'
import { openFile } from '../../src/store/sqlite/connection/open.js'
import { SqliteStore } from '../../src/store/sqlite/sqlite-store.js'
import { VirtualTime } from '../../src/testing/simulation/virtual-time.js'
import { makeIds } from '../../src/world/ids.js'
import { UNKNOWN_PROCESSES } from '../../src/world/processes.js'
import { systemTimers } from '../../src/world/timers.js'
import type { World } from '../../src/world/world.js'
import { systemWorld } from '../../src/world/world.js'

export interface VirtualMill {
  readonly mill: Mill
  readonly time: VirtualTime
  readonly store: SqliteStore
}

/** A whole mill in memory, with a worker, in virtual time: half a minute of grace passes at once. */
export async function virtualMill(options: MillOptions): Promise<VirtualMill> {
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
  const mill = await buildMill({ logger: false, ...options }, { world, store: choice })
  return { mill: closedInVirtualTime(mill, time), time, store }
}

/** Closing waits by timers, which do not advance once a test is over. */
function closedInVirtualTime(mill: Mill, time: VirtualTime): Mill {
  const close = mill.close.bind(mill)
  mill.close = async (options) => {
    const closing = close(options)
    let isClosed = false
    void closing.then(() => (isClosed = true))
    while (!isClosed) await time.advanceTo(time.now + 50)
    return closing
  }
  return mill
}
