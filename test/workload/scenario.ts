import { MillraceError } from '../../src/errors.js'
import type { EnqueueOptions, Handle } from '../../src/job/enqueue.js'
import type { Mill } from '../../src/mill/mill-type.js'
import type { Random } from '../../src/testing/simulation/random.js'
import type { SimProcess } from '../../src/testing/simulation/sim-process.js'
import { recordingMill } from '../../src/testing/simulation/recording-mill.js'
import { anyJob } from './any-job.js'
import { HANDLER_BEHAVIOURS } from './cancellable-jobs.js'
import {
  cancel,
  commandHeld,
  edit,
  deleteJob,
  pause,
  pauseQueue,
  sendCommands,
  resume,
  resumeAll,
  resumeQueue,
  retry,
} from './commands.js'
import { beginRecurring, commandSchedule, endRecurring, hasSteps, recur } from './recurrings.js'
import { anyGroup, sealGroups } from './groups.js'
import { linkStep } from './links.js'
import { asTenant } from './shared-state.js'
import type { SharedState } from './shared-state.js'
import { enqueueInTransaction } from './transactions.js'
import { enqueueUnique } from './uniques.js'

/** The client of the scenario: what it knows, and what it must resume at the end. */
export interface ScenarioClient extends SharedState {
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
export async function runScenario(state: SharedState, mill: Mill, client: SimProcess, steps: number): Promise<void> {
  const random = state.sim.random('story')
  const scenario: ScenarioClient = {
    ...state,
    mill: recordingMill(mill, state.sim),
    client,
    random,
    groupRandom: state.sim.random('groups'),
    linkRandom: state.sim.random('links'),
    timerRandom: state.sim.random('timers'),
    clockRandom: state.sim.random('clock'),
    known: [],
    pausedJobs: new Set(),
    pausedQueues: new Set(),
  }
  await beginRecurring(scenario)
  for (let i = 0; i < steps; i += 1) {
    await attempt(scenario, () => step(scenario))
    if (scenario.linkRandom.chance(LINKED)) await attempt(scenario, () => linkStep(scenario))
    if (hasSteps(scenario) && scenario.clockRandom.chance(SCHEDULES))
      await attempt(scenario, () => scheduleStep(scenario))
    if (random.chance(0.6)) await state.sim.wait(client, random.next() * 900)
  }
  await sealGroups(scenario)
  await resumeAll(scenario)
  await endRecurring(scenario)
}

/** The store may fail at any call; the scenario continues, as a caller would after logging it. */
export async function attempt({ sim }: SharedState, work: () => Promise<void>): Promise<void> {
  try {
    await work()
  } catch (error) {
    if (!(error instanceof MillraceError)) throw error
    sim.count(`refused: ${error.code}`)
  }
}

/** How often each step is taken, of a hundred. */
const STEPS: readonly (readonly [share: number, step: (scenario: ScenarioClient) => Promise<void>])[] = [
  [22, enqueue],
  [3, recur],
  [2, commandSchedule],
  [2, deploy],
  [5, schedule],
  [3, enqueueMany],
  [6, burst],
  [5, sendCommandsToOne],
  [13, enqueueUnique],
  [6, enqueueInTransaction],
  [7, cancel],
  [5, retry],
  [3, edit],
  [2, deleteJob],
  [2, unschedule],
  [4, pause],
  [3, resume],
  [4, pauseQueue],
  [3, resumeQueue],
]

/** Enqueues a slow or delayed job, and sends commands to it meanwhile. */
async function sendCommandsToOne(scenario: ScenarioClient): Promise<void> {
  const { sim, mill, random } = scenario
  const before = Math.floor(sim.clock.soonest)
  const delay = random.chance(0.5) ? random.int(500, 3_000) : 0
  const payload = { ms: random.int(300, 2_500), behaviour: random.pick(HANDLER_BEHAVIOURS) }
  const options = { in: delay, queue: random.pick(['default', 'mail', 'slow']) }
  const handle = await asTenant(scenario, random, (tenant) => mill.enqueue('patient', { ...payload, tenant }, options))
  scenario.known.push(handle.id)
  if (delay > 0) sim.runs.notBefore(handle.id, before + delay)
  await sendCommands(scenario, handle.id)
}

async function step(scenario: ScenarioClient): Promise<void> {
  let dice = scenario.random.int(0, 99)
  for (const [share, act] of STEPS) {
    if (dice < share) return act(scenario)
    dice -= share
  }
}

/** Declares or commands a schedule, with random numbers of its own. */
function scheduleStep(scenario: ScenarioClient): Promise<void> {
  const own = { ...scenario, random: scenario.clockRandom }
  return own.random.chance(0.4) ? recur(own) : commandSchedule(own)
}

async function enqueue(scenario: ScenarioClient): Promise<void> {
  const { sim, mill, random } = scenario
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
    ...anyGroup(scenario.groupRandom),
  }
  const { group } = options
  const given = group === undefined ? payload : { ...payload, group }
  const handle = await asTenant(scenario, random, (tenant) => mill.enqueue(name, { ...given, tenant }, options))
  scenario.known.push(handle.id)
  sim.note('client', `enqueued ${name}${handle.isNew ? '' : ' (held key)'}`)
  if (!handle.isNew) sim.count('duplicates returned')
  // Under a key it can be moved by a call whose reply is lost.
  else if (delay > 0 && !keyed) sim.runs.notBefore(handle.id, Math.floor(before) + delay)
}

/** Above every number of jobs of the same name that were only enqueued. */
const SCHEDULED = 1_000

async function schedule(scenario: ScenarioClient): Promise<void> {
  const { random, timerRandom } = scenario
  const [when, key] = [random.int(1, 6_000), `key-${random.int(1, 3)}`]
  if (timerRandom.chance(0.5)) await scheduleWhileRunning(scenario, key)
  await scheduleOne(scenario, key, 5, when)
}

/** A timer that fires soon and runs for a while; meanwhile it is scheduled again, and some of that is unscheduled. */
async function scheduleWhileRunning(scenario: ScenarioClient, key: string): Promise<void> {
  const { sim, mill, client, timerRandom } = scenario
  await scheduleOne(scenario, key, timerRandom.int(500, 2_500), 1)
  for (let times = timerRandom.int(1, 3); times > 0; times -= 1) {
    await sim.wait(client, timerRandom.int(20, 600))
    if (timerRandom.chance(0.2) && (await mill.unschedule('steady', key))) sim.count('unscheduled')
    await attempt(scenario, () => scheduleOne(scenario, key, timerRandom.int(5, 800), timerRandom.int(1, 1_500)))
  }
}

async function scheduleOne(scenario: ScenarioClient, key: string, ms: number, inMs: number): Promise<void> {
  const { sim, mill, random } = scenario
  const n = SCHEDULED + scenario.known.length
  const handle = await asTenant(scenario, random, (tenant) => mill.schedule('steady', { ms, n, tenant }, inMs, { key }))
  scenario.known.push(handle.id)
  // Whichever job ran under the key at that moment: this payload must run, or a later one.
  scenario.newest.set(handle.id, n)
  sim.count(handle.isNew ? 'scheduled' : 'moved')
}

async function enqueueMany(scenario: ScenarioClient): Promise<void> {
  const { sim, random } = scenario
  const waits = Array.from({ length: random.int(2, 15) }, () => random.int(0, 200))
  await enqueueAll(scenario, 'steady', waits)
  sim.count('bulks')
}

/**
 * A burst of quick jobs, so that workers look ahead, and then some with a slow one among them now and then: jobs after
 * it are held. Meanwhile held jobs are cancelled, paused and deleted.
 */
async function burst(scenario: ScenarioClient): Promise<void> {
  const { sim, client, random } = scenario
  await enqueueAll(scenario, 'quick', Array<number>(random.int(5, 15)).fill(0))
  await sim.wait(client, random.int(1, 60))
  const waits = Array.from({ length: random.int(8, 20) }, () => (random.chance(0.3) ? random.int(20, 400) : 0))
  await enqueueAll(scenario, 'quick', waits)
  sim.count('bursts')
  for (let times = random.int(1, 4); times > 0; times -= 1) {
    await sim.wait(client, random.int(0, 15))
    await attempt(scenario, () => commandHeld(scenario))
  }
}

async function enqueueAll(scenario: ScenarioClient, name: string, waits: readonly number[]): Promise<void> {
  const handles: readonly Handle<unknown>[] = await asTenant(scenario, scenario.random, (tenant) =>
    scenario.mill.enqueueMany(
      name,
      waits.map((ms, n) => ({ ms, n, tenant })),
      anyGroup(scenario.groupRandom),
    ),
  )
  scenario.known.push(...handles.map(({ id }) => id))
}

async function deploy({ sim, random }: ScenarioClient): Promise<void> {
  sim.deploy(random, random.pick([0, 100, 1_000]))
}

async function unschedule({ sim, mill, random }: ScenarioClient): Promise<void> {
  if (await mill.unschedule('steady', `key-${random.int(1, 3)}`)) sim.count('unscheduled')
}
