import { isFinal } from '../../src/job/rules/states.js'
import type { CensusJob } from '../../src/store/census.js'
import type { ScenarioClient } from './scenario.js'

const QUEUES = ['default', 'mail', 'slow'] as const
/** How long to wait before a failed call is repeated. */
const AGAIN_MS = 100

export async function cancel(scenario: ScenarioClient, id = choose(scenario)): Promise<void> {
  const { sim, mill } = scenario
  if (id === undefined) return
  const state = sim.stateOf(id)
  if (await mill.cancel(id)) sim.count(state === 'running' ? 'cancelled running' : 'cancelled')
}

export async function pause(scenario: ScenarioClient, id = choose(scenario)): Promise<void> {
  const { sim, mill, pausedJobs } = scenario
  if (id === undefined) return
  // Whatever the call returns, the job may be paused now.
  pausedJobs.add(id)
  const state = sim.stateOf(id)
  if (await mill.pause(id)) sim.count(state === 'running' ? 'paused running' : 'paused')
}

export async function resume({ sim, mill, random, pausedJobs }: ScenarioClient, id?: string): Promise<void> {
  if (id === undefined && pausedJobs.size === 0) return
  id ??= random.pick([...pausedJobs])
  if (await mill.resume(id)) sim.count('resumed')
  pausedJobs.delete(id)
}

export async function pauseQueue(
  scenario: ScenarioClient,
  queue: string = scenario.random.pick(QUEUES),
): Promise<void> {
  const { sim, mill, random, pausedQueues } = scenario
  if (random.chance(0.6)) {
    // It ends by itself, unless the call failed and an older pause is still there, which resumeAll ends.
    await mill.queue(queue).pauseUntil(random.int(20, 3_000))
    pausedQueues.delete(queue)
    sim.count('queues paused until a time')
  } else {
    pausedQueues.add(queue)
    await mill.queue(queue).pause()
    sim.count('queues paused')
  }
}

export async function resumeQueue({ sim, mill, random, pausedQueues }: ScenarioClient): Promise<void> {
  const queue = pausedQueues.size > 0 ? random.pick([...pausedQueues]) : random.pick(QUEUES)
  await mill.queue(queue).resume()
  pausedQueues.delete(queue)
  sim.count('queues resumed')
}

/** Sends one command after the other to a job that may be running. */
export async function sendCommands(scenario: ScenarioClient, id: string): Promise<void> {
  const { sim, client, random } = scenario
  for (let times = random.int(1, 3); times > 0; times -= 1) {
    await sim.wait(client, random.int(1, 300))
    await random.pick([cancel, cancel, pause, pause, resume, resume])(scenario, id)
  }
}

/** Sends a command to a job that a worker holds in advance, or to its queue. */
export async function commandHeld(scenario: ScenarioClient): Promise<void> {
  const { sim, mill, random } = scenario
  const held = sim.census().jobs.filter(isHeld)
  if (held.length === 0) return
  const { id } = random.pick(held)
  const dice = random.int(0, 9)
  if (dice < 4) return void (await mill.cancel(id))
  if (dice < 6) {
    scenario.pausedJobs.add(id)
    await mill.pause(id)
  } else if (dice === 6) await forgetOne(scenario, id)
  else await pauseQueue(scenario, 'default')
}

export async function retry(scenario: ScenarioClient, id = choose(scenario, isStopped)): Promise<void> {
  if (id !== undefined && (await scenario.mill.retry(id))) scenario.sim.count('retried by command')
}

export async function edit(scenario: ScenarioClient, id = choose(scenario, isWaiting)): Promise<void> {
  const { sim, mill, random } = scenario
  if (id === undefined) return
  const due = random.chance(0.5) ? { in: random.int(1, 2_000) } : {}
  if (await mill.edit(id, { priority: random.int(-1, 3), ...due })) sim.count('edited')
}

export async function deleteJob(scenario: ScenarioClient): Promise<void> {
  if (scenario.known.length > 0) await forgetOne(scenario, scenario.random.pick(scenario.known))
}

export async function forgetOne({ sim, mill }: ScenarioClient, id: string): Promise<void> {
  if (await mill.delete(id)) sim.count('deleted')
}

/** At the end everything that was paused without a time is resumed, however often the store fails. */
export async function resumeAll(scenario: ScenarioClient): Promise<void> {
  const { mill, pausedJobs, pausedQueues } = scenario
  for (const id of pausedJobs) await insist(scenario, () => mill.resume(id))
  for (const queue of pausedQueues) await insist(scenario, () => mill.queue(queue).resume())
}

export async function insist({ sim, client }: ScenarioClient, call: () => Promise<unknown>): Promise<void> {
  for (;;) {
    try {
      return void (await call())
    } catch {
      sim.count('insisted') // The store failed, which it may for a while.
      await sim.wait(client, AGAIN_MS)
    }
  }
}

/** A job of some kind from the store, or any job known so far. */
function choose(
  { sim, random, known }: ScenarioClient,
  ...kinds: readonly ((job: CensusJob) => boolean)[]
): string | undefined {
  const kind = random.pick([...(kinds.length > 0 ? kinds : [isRunning, isRunning, isHeld, isWaiting]), undefined])
  const found = kind === undefined ? [] : sim.census().jobs.filter(kind)
  if (found.length > 0) return random.pick(found).id
  return known.length === 0 ? undefined : random.pick(known)
}

function isRunning(job: CensusJob): boolean {
  return job.state === 'running'
}

function isHeld(job: CensusJob): boolean {
  return job.state === 'ready' && job.fence !== null
}

export function isWaiting(job: CensusJob): boolean {
  return job.state !== null && job.state !== 'running' && !isFinal(job.state)
}

export function isStopped(job: CensusJob): boolean {
  return job.state === 'failed' || job.state === 'cancelled' || job.state === 'parked'
}

export function isSettled(job: CensusJob): boolean {
  return job.state !== null && isFinal(job.state)
}
