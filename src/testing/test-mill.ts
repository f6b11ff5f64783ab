import { buildMill } from '../mill.js'
import type { Instant } from '../job/duration/duration.js'
import { parseInstant } from '../job/duration/duration.js'
import type { PartsToStart } from '../mill/started-parts.js'
import type { Mill } from '../mill/mill-type.js'
import type { MillOptions } from '../mill/options.js'
import { firePartsOf } from '../mill/recurring.js'
import { promotePartsOf } from '../mill/upkeep.js'
import { promoteOnce } from '../upkeep/promote.js'
import { fireDue } from '../schedule/fire.js'
import { STORE_CHOICE } from '../store/choice.js'
import { chooseLibrary } from '../store/sqlite/connection/library.js'
import { openFile } from '../store/sqlite/connection/open.js'
import { SqliteStore } from '../store/sqlite/sqlite-store.js'
import type { SqliteHandle } from '../store/sqlite/connection/driver.js'
import type { Store } from '../store/store.js'
import type { Running } from '../worker/attempt/running.js'
import { makeIds } from '../world/ids.js'
import { UNKNOWN_PROCESSES } from '../world/processes.js'
import { systemTimers } from '../world/timers.js'
import type { World } from '../world/world.js'
import { systemWorld } from '../world/world.js'
import { seeded } from './simulation/random.js'
import { rest, VirtualTime } from './simulation/virtual-time.js'
import { SteppedWorker } from './stepped-worker.js'
import type { EndedAttempt } from './stepped-worker.js'

/** Noon on a day that every test shares. */
const START = Date.UTC(2030, 0, 1, 12)
/** Turns of the event loop that the store has for its answer, before virtual time advances anyway. */
const SETTLE_TURNS_MAX = 1_000

/** What a mill under test takes: all that any mill does, but for its store, which is in memory unless you have a handle. */
export type TestOptions = Omit<MillOptions, 'store'> & {
  /** A handle that the code under test works with; its transactions are the store's. Default: a store in memory. */
  readonly store?: SqliteHandle | undefined
  /** When the virtual clock begins. Default '2030-01-01T12:00:00Z'. */
  readonly now?: Instant | undefined
}

/** Opens the store of a mill under test: it lives in the mill's world, and its clock is the test's. */
export type OpenTestStore = (world: World, now: () => number) => Promise<Store>

export async function buildTestMill(
  { store: given, now, ...options }: TestOptions,
  openStore: OpenTestStore = onSqlite(given),
): Promise<TestMill> {
  const begin = now === undefined ? undefined : parseInstant(now)
  const time = new VirtualTime(begin?.ok === true ? begin.atMs : START)
  const world = testWorld(time)
  const store = await openStore(world, () => Math.floor(time.now))
  // Its worker holds no job in advance, and a wait for that would be one in virtual time.
  Object.assign(store, { info: { ...store.info, heldUnconfirmedMs: 0 } })
  const choice = { [STORE_CHOICE]: true as const, open: () => Promise.resolve(store) }
  const started: { parts?: PartsToStart; worker?: SteppedWorker } = {}
  const mill = await buildMill(
    { ...options, logger: options.logger ?? false, workflows: { strict: true, ...options.workflows } },
    {
      world,
      store: choice,
      startParts: async (parts) => {
        const worker = new SteppedWorker(parts)
        await worker.start()
        Object.assign(started, { parts, worker })
        return worker.parts
      },
    },
  )
  await mill.start()
  // Code under test may start and stop its mill, also on signals, as in production: here that changes nothing.
  const nothing = {
    start: () => Promise.resolve(),
    stop: () => Promise.resolve(),
    stopOnSignals: () => () => undefined,
  }
  Object.assign(mill, nothing)
  return new TestMill(mill, time, started.parts as PartsToStart, started.worker as SteppedWorker)
}

/** A mill whose time advances only when a test moves it, whose worker runs one job when a test asks for it, and whose upkeep a test steps. */
export class TestMill {
  readonly mill: Mill
  readonly time: VirtualTime
  readonly #parts: PartsToStart
  readonly #worker: SteppedWorker
  /** When the next tick is due, as far as it is known: a hint announces an earlier one. */
  #tickAt = -Infinity
  /** Questions of the upkeep that the store has not answered yet. */
  #storeCalls = 0

  constructor(mill: Mill, time: VirtualTime, parts: PartsToStart, worker: SteppedWorker) {
    this.mill = mill
    this.time = time
    this.#parts = parts
    this.#worker = worker
    parts.store.changes.onHint((hint) => {
      if (hint.dueInMs !== null) this.#tickAt = Math.min(this.#tickAt, this.time.now + hint.dueInMs)
    })
  }

  /** Makes ready what is due, fires what recurs, and cancels what has expired. */
  promote(): Promise<void> {
    return this.#inStore(() => this.#promote())
  }

  runNext(queues: readonly string[] | undefined): Promise<EndedAttempt | undefined> {
    return this.#worker.runNext(queues)
  }

  callAgain(running: Running): Promise<unknown> {
    return this.#worker.callAgain(running)
  }

  /** Moves time on, stopping at each moment at which something happens. */
  async advance(ms: number): Promise<void> {
    const until = this.time.now + ms
    await this.#settle()
    for (let at = await this.#nextMoment(); at <= until; at = await this.#nextMoment()) {
      if (this.time.next === undefined || at < this.time.next) await this.time.advanceTo(at)
      else await this.time.step()
      await this.#settle()
    }
    await this.time.advanceTo(until)
    await this.promote()
  }

  close(): Promise<void> {
    return this.mill.close()
  }

  /** When something happens next: a timer, or a tick of what recurs. Ticks that are due are fired. */
  async #nextMoment(): Promise<number> {
    await this.#inStore(() => this.#fire())
    return Math.min(this.time.next ?? Infinity, this.#tickAt)
  }

  async #fire(): Promise<void> {
    while (this.#tickAt <= this.time.now) {
      const { fired, nextInMs } = await fireDue(firePartsOf(this.#parts))
      if (fired === 0) this.#tickAt = nextInMs === null ? Infinity : this.time.now + nextInMs
    }
  }

  async #promote(): Promise<void> {
    await this.#fire()
    const { again, promoted } = await promoteOnce(promotePartsOf(this.#parts))
    if (again || promoted > 0) await this.#promote()
  }

  async #inStore<T>(work: () => Promise<T>): Promise<T> {
    this.#storeCalls += 1
    try {
      return await work()
    } finally {
      this.#storeCalls -= 1
    }
  }

  /** A claimed job begins, and an ended one is settled, before time advances: neither takes any virtual time. */
  async #settle(): Promise<void> {
    const isBusy = (): boolean => this.#storeCalls > 0 || this.#worker.isBusy
    for (let turn = 0; turn === 0 || (isBusy() && turn < SETTLE_TURNS_MAX); turn += 1) await rest()
  }
}

function onSqlite(given: SqliteHandle | undefined): OpenTestStore {
  return async (world, now) => {
    const target = given ?? new (chooseLibrary().open)(':memory:')
    const file = await openFile({ target, durability: 'process' }, true, systemWorld())
    return new SqliteStore(file, world, { durability: 'process', now })
  }
}

/** Turns of the event loop are real, so that what is awaited goes on; timers wait for a test to move time. */
function testWorld(time: VirtualTime): World {
  const random = seeded(1)
  return {
    clock: { now: () => Math.floor(time.now), monotonic: () => time.now },
    timers: {
      after: (ms, run, o) => time.at(time.now + Math.max(0, ms), run, o),
      soon: (run) => systemTimers.soon(run),
    },
    ids: makeIds(() => random.word()),
    random: () => random.next(),
    processes: UNKNOWN_PROCESSES,
  }
}
