import { job } from '../../src/index.js'
import type { Mill, MillOptions } from '../../src/index.js'
import { buildMill, millrace } from '../../src/mill.js'
import { STORE_CHOICE } from '../../src/store/choice.js'
import type { ClaimedJob } from '../../src/store/store.js'
import { UNKNOWN_PROCESSES } from '../../src/world/processes.js'
import { systemWorld } from '../../src/world/world.js'
import { Bench } from '../bounds/bound.js'
import { openStore } from '../bounds/stores.js'
import type { ContractFixture } from '../contract/fixture.js'
import { postgres } from '../../src/postgres.js'
import { freshSchema } from '../support/fresh-store.js'
import type { Placed } from './row.js'

const mail = job<unknown, unknown>('mail', async () => undefined)

/** How long a look waits for something that may never come. */
const NEVER_MS = 2_000

/** A mill on a store whose rows and clock the look changes by itself. */
async function beside<T>(
  placed: Placed,
  options: MillOptions,
  before: (store: ContractFixture) => Promise<string>,
  look: (mill: Mill, id: string, store: ContractFixture) => Promise<T>,
): Promise<T> {
  const bench = new Bench()
  try {
    const store = await openStore(bench)
    const id = await before(store)
    // The end of a process of this machine would be proven at once: here only the heartbeat decides.
    const world = { ...systemWorld(), processes: UNKNOWN_PROCESSES }
    const choice = { [STORE_CHOICE]: true as const, open: () => Promise.resolve(store.store) }
    const mill = await buildMill({ logger: false, poll: '50ms', ...options, ...placed.mill }, { world, store: choice })
    await mill.start()
    if (placed.configure !== undefined) mill.configure(placed.configure)
    const seen = await look(mill, id, store)
    await mill.stop({ deadline: 0 })
    return seen
  } finally {
    await bench.close()
  }
}

async function stateOf(
  mill: Mill,
  id: string,
  isOver: (state: string | undefined) => boolean,
  ms: number,
): Promise<string | undefined> {
  const end = Date.now() + ms
  for (;;) {
    const state = (await mill.get(id))?.state
    if (isOver(state) || Date.now() > end) return state
    await new Promise((next) => setTimeout(next, 20))
  }
}

/** A job that a worker without a heartbeat runs in quarantine. */
async function leaveSuspect(store: ContractFixture): Promise<string> {
  const id = await store.one()
  const first = await store.worker()
  const [claimed] = (await store.claim(first)).jobs
  await store.store.leases.rescueJobs(first, 0, [
    store.settled(claimed as ClaimedJob, { to: 'ready', attempt: 0, streak: 2 }),
  ])
  await store.claim(await store.worker(), { suspects: 'first' })
  return id
}

const isSettled = (state: string | undefined): boolean => state === 'parked' || state === 'done'

/** What a mill makes of the job of a worker that has died. */
export const deadWorkersJob = {
  afterCrash: (placed: Placed): Promise<string> =>
    beside(placed, { jobs: [mail], lease: '500ms' }, leaveSuspect, async (mill, id) =>
      (await stateOf(mill, id, isSettled, 20_000)) === 'parked' ? 'parked' : 'runs again',
    ),
  afterLease: (placed: Placed, expected: 'done' | 'running'): Promise<string | undefined> =>
    beside(
      placed,
      { jobs: [mail] },
      async (store) => {
        const id = await store.one()
        await store.claim(await store.worker())
        return id
      },
      (mill, id) => stateOf(mill, id, isSettled, expected === 'done' ? 20_000 : NEVER_MS),
    ),
  /** The state of a scheduled job after the database's clock has passed its time, which no hint announces. */
  afterClockStep: (placed: Placed): Promise<string | undefined> =>
    beside(
      placed,
      { poll: '10m' },
      async (store) => {
        await store.one({ key: 'first', due: { inMs: 1 } })
        store.clock.now += 1
        return store.one({ due: { inMs: 3_600_000 } })
      },
      async (mill, id, store) => {
        // The first poll has made the first job ready, and has seen when the other one is due.
        const [first] = await store.found({ queues: ['default'], order: 'oldest', limit: 1 })
        await stateOf(mill, first?.id as string, (state) => state === 'ready', 20_000)
        store.clock.now += 3_600_000
        return stateOf(mill, id, (state) => state === 'ready', NEVER_MS)
      },
    ),
  /** Opens a mill where there are no tables yet. */
  withoutTables: async (placed: Placed): Promise<void> => {
    const fresh = freshSchema()
    const store =
      fresh === undefined
        ? ':memory:'
        : postgres(fresh.url, { schema: `${fresh.schema} without tables ${Math.random()}` })
    const mill = await millrace({ logger: false, store, ...placed.mill })
    await mill.close()
  },
}
