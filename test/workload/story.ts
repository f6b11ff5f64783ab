import { MillraceError } from '../../src/errors.js'
import type { EnqueueOptions, Handle } from '../../src/job/enqueue.js'
import type { Mill } from '../../src/mill/mill-type.js'
import type { Random } from '../../src/testing/simulation/random.js'
import type { SimProcess } from '../../src/testing/simulation/sim-process.js'
import { witness } from '../../src/testing/simulation/witness.js'
import { anyJob } from './any-job.js'
import { MANNERS } from './asked-jobs.js'
import {
  cancel,
  commandHeld,
  edit,
  forget,
  pause,
  pauseQueue,
  press,
  resume,
  resumeAll,
  resumeQueue,
  retry,
} from './commands.js'
import { beginRecurring, commandSchedule, endRecurring, hasSteps, recur } from './recurrings.js'
import { anyGroup, sealGroups } from './groups.js'
import { linkStep } from './links.js'
import { asTenant } from './stage.js'
import type { Stage } from './stage.js'
import { enqueueInTransaction } from './transactions.js'
import { enqueueUnique } from './uniques.js'

/** The client of the scenario: what it knows, and what it must resume at the end. */
export interface Teller extends Stage {
  readonly mill: Mill
  readonly client: SimProcess
  readonly random: Random
  readonly groupRandom: Random
  readonly linkRandom: Random
  readonly timerRandom: Random
  readonly clockRandom: Random
  readonly known: string[]
  /** Jobs and queues that may be paused without a time. */
  readonly pausedJobs: Set<string>
  readonly pausedQueues: Set<string>
}

/** How often a step is followed by a step with parents and children. */
const LINKED = 0.3
/** How often a step is followed by one about schedules, where the clock is set. */
const SCHEDULES = 0.4

/** Runs `steps` random steps of the client, with pauses between them, through the public API. */
export async function tellStory(stage: Stage, mill: Mill, client: SimProcess, steps: number): Promise<void> {
  const random = stage.sim.random('story')
  const teller: Teller = {
    ...stage,
    mill: witness(mill, stage.sim),
    client,
    random,
    groupRandom: stage.sim.random('groups'),
    linkRandom: stage.sim.random('links'),
    timerRandom: stage.sim.random('timers'),
    clockRandom: stage.sim.random('clock'),
    known: [],
    pausedJobs: new Set(),
    pausedQueues: new Set(),
  }
  await beginRecurring(teller)
  for (let i = 0; i < steps; i += 1) {
    await attempt(teller, () => step(teller))
    if (teller.linkRandom.chance(LINKED)) await attempt(teller, () => linkStep(teller))
    if (hasSteps(teller) && teller.clockRandom.chance(SCHEDULES)) await attempt(teller, () => scheduleStep(teller))
    if (random.chance(0.6)) await stage.sim.wait(client, random.next() * 900)
  }
  await sealGroups(teller)
  await resumeAll(teller)
  await endRecurring(teller)
}

/** The store may fail at any call; the scenario continues, as a caller would after logging it. */
export async function attempt({ sim }: Stage, work: () => Promise<void>): Promise<void> {
  try {
    await work()
  } catch (error) {
    if (!(error instanceof MillraceError)) throw error
    sim.count(`refused: ${error.code}`)
  }
}

/** How often each step is taken, of a hundred. */
const STEPS: readonly (readonly [share: number, step: (teller: Teller) => Promise<void>])[] = [
  [22, enqueue],
  [3, recur],
  [2, commandSchedule],
  [2, deploy],
  [5, schedule],
  [3, enqueueMany],
  [6, burst],
  [5, pressOne],
  [13, enqueueUnique],
  [6, enqueueInTransaction],
  [7, cancel],
  [5, retry],
  [3, edit],
  [2, forget],
  [2, unschedule],
  [4, pause],
  [3, resume],
  [4, pauseQueue],
  [3, resumeQueue],
]

/** Enqueues a slow or delayed job, and sends commands to it meanwhile. */
async function pressOne(teller: Teller): Promise<void> {
  const { sim, mill, random } = teller
  const before = Math.floor(sim.clock.soonest)
  const delay = random.chance(0.5) ? random.int(500, 3_000) : 0
  const payload = { ms: random.int(300, 2_500), manner: random.pick(MANNERS) }
  const options = { in: delay, queue: random.pick(['default', 'mail', 'slow']) }
  const handle = await asTenant(teller, random, (tenant) => mill.enqueue('patient', { ...payload, tenant }, options))
  teller.known.push(handle.id)
  if (delay > 0) sim.book.notBefore(handle.id, before + delay)
  await press(teller, handle.id)
}

async function step(teller: Teller): Promise<void> {
  let dice = teller.random.int(0, 99)
  for (const [share, act] of STEPS) {
    if (dice < share) return act(teller)
    dice -= share
  }
}

/** Declares or commands a schedule, with random numbers of its own. */
function scheduleStep(teller: Teller): Promise<void> {
  const own = { ...teller, random: teller.clockRandom }
  return own.random.chance(0.4) ? recur(own) : commandSchedule(own)
}

async function enqueue(teller: Teller): Promise<void> {
  const { sim, mill, random } = teller
  const [name, payload] = anyJob(random)
  const before = sim.clock.soonest
  const delay = random.chance(0.2) ? random.int(1, 5_000) : 0
  const keyed = name === 'steady' && random.chance(0.5)
  const options: EnqueueOptions = {
    ...(delay > 0 ? { in: delay } : {}),
    ...(random.chance(0.2) ? { priority: random.int(-2, 2) } : {}),
    ...(random.chance(0.25) ? { queue: random.pick(['mail', 'slow']) } : {}),
    ...(random.chance(0.08) ? { expires: random.int(1, 3_000) } : {}),
    ...(keyed
      ? { key: `key-${random.int(1, 3)}`, onDuplicate: random.pick(['return', 'reject', 'replace'] as const) }
      : {}),
    ...anyGroup(teller.groupRandom),
  }
  const { group } = options
  const given = group === undefined ? payload : { ...payload, group }
  const handle = await asTenant(teller, random, (tenant) => mill.enqueue(name, { ...given, tenant }, options))
  teller.known.push(handle.id)
  sim.note('client', `enqueued ${name}${handle.isNew ? '' : ' (held key)'}`)
  if (!handle.isNew) sim.count('duplicates returned')
  // Under a key it can be moved by a call whose reply is lost.
  else if (delay > 0 && !keyed) sim.book.notBefore(handle.id, Math.floor(before) + delay)
}

/** Above every number of jobs of the same name that were only enqueued. */
const SCHEDULED = 1_000

async function schedule(teller: Teller): Promise<void> {
  const { random, timerRandom } = teller
  const [when, key] = [random.int(1, 6_000), `key-${random.int(1, 3)}`]
  if (timerRandom.chance(0.5)) await scheduleWhileRunning(teller, key)
  await scheduleOne(teller, key, 5, when)
}

/** A timer that fires soon and runs for a while; meanwhile it is scheduled again, and some of that is unscheduled. */
async function scheduleWhileRunning(teller: Teller, key: string): Promise<void> {
  const { sim, mill, client, timerRandom } = teller
  await scheduleOne(teller, key, timerRandom.int(500, 2_500), 1)
  for (let times = timerRandom.int(1, 3); times > 0; times -= 1) {
    await sim.wait(client, timerRandom.int(20, 600))
    if (timerRandom.chance(0.2) && (await mill.unschedule('steady', key))) sim.count('unscheduled')
    await attempt(teller, () => scheduleOne(teller, key, timerRandom.int(5, 800), timerRandom.int(1, 1_500)))
  }
}

async function scheduleOne(teller: Teller, key: string, ms: number, inMs: number): Promise<void> {
  const { sim, mill, random } = teller
  const n = SCHEDULED + teller.known.length
  const handle = await asTenant(teller, random, (tenant) => mill.schedule('steady', { ms, n, tenant }, inMs, { key }))
  teller.known.push(handle.id)
  // Whichever job ran under the key at that moment: this payload must run, or a later one.
  teller.newest.set(handle.id, n)
  sim.count(handle.isNew ? 'scheduled' : 'moved')
}

async function enqueueMany(teller: Teller): Promise<void> {
  const { sim, random } = teller
  const waits = Array.from({ length: random.int(2, 15) }, () => random.int(0, 200))
  await enqueueAll(teller, 'steady', waits)
  sim.count('bulks')
}

/**
 * A burst of quick jobs, so that workers look ahead, and then some with a slow one among them now and then: jobs after
 * it are held. Meanwhile held jobs are cancelled, paused and deleted.
 */
async function burst(teller: Teller): Promise<void> {
  const { sim, client, random } = teller
  await enqueueAll(teller, 'quick', Array<number>(random.int(5, 15)).fill(0))
  await sim.wait(client, random.int(1, 60))
  const waits = Array.from({ length: random.int(8, 20) }, () => (random.chance(0.3) ? random.int(20, 400) : 0))
  await enqueueAll(teller, 'quick', waits)
  sim.count('bursts')
  for (let times = random.int(1, 4); times > 0; times -= 1) {
    await sim.wait(client, random.int(0, 15))
    await attempt(teller, () => commandHeld(teller))
  }
}

async function enqueueAll(teller: Teller, name: string, waits: readonly number[]): Promise<void> {
  const handles: readonly Handle<unknown>[] = await asTenant(teller, teller.random, (tenant) =>
    teller.mill.enqueueMany(
      name,
      waits.map((ms, n) => ({ ms, n, tenant })),
      anyGroup(teller.groupRandom),
    ),
  )
  teller.known.push(...handles.map(({ id }) => id))
}

async function deploy({ sim, random }: Teller): Promise<void> {
  sim.deploy(random, random.pick([0, 100, 1_000]))
}

async function unschedule({ sim, mill, random }: Teller): Promise<void> {
  if (await mill.unschedule('steady', `key-${random.int(1, 3)}`)) sim.count('unscheduled')
}
