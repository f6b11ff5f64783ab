import { buildMill } from '../../mill.js'
import type { Mill } from '../../mill/mill-type.js'
import { isSuspect } from '../../job/rules/quarantine.js'
import { isThenable } from '../../job/definition/schema.js'
import type { Running } from '../../worker/attempt/running.js'
import { never, thaw } from './faults.js'
import { isProven } from '../checkers/rescue-checks.js'
import type { Run } from './run-history.js'
import type { Simulation } from './simulation.js'
import type { SimProcess } from './sim-process.js'

/** A whole mill in a simulated process: the production code, with a store and an executor that faults strike. */
export function simMill(sim: Simulation, process: SimProcess): Promise<Mill> {
  const { concurrency, leaseMs, pollMs, crashBudget, keep, quarantineMs } = sim.config
  const { jobs, capture, options: more } = sim.scene
  const options = {
    jobs: [...jobs(process)],
    logger: false as const,
    concurrency,
    lease: leaseMs,
    poll: pollMs,
    crashBudget,
    ...(keep === undefined ? {} : { keep }),
    ...(capture === undefined ? {} : { capture }),
    ...more?.(process),
  }
  return buildMill(options, {
    world: sim.plants.wrapWorld?.(process.world, process) ?? process.world,
    store: sim.database.storeFor(process, sim.faults, leaseMs),
    quarantineMs,
    executor: {
      call: (handler, payload, running) => callHandler(sim, process, () => handler(payload, running), running),
    },
    watch: {
      lost: (what) => {
        sim.count('fence refusals')
        sim.note(process.name, 'why' in what ? `worker … lost its lease: ${what.why}` : `lost job ${what.name} …`)
        if ('why' in what) sim.runs.excuse(process)
      },
      rescued: (worker, jobs, parked) => {
        sim.count('rescues')
        if (isProven(sim.database, worker, sim.time.now, leaseMs)) sim.count('rescues by proof')
        sim.count('rescued jobs', jobs.length)
        sim.count('crash-budget parks', parked)
      },
      settled: (job) => sim.count(`to ${job.to}`),
    },
  })
}

/** Handlers are called here: their beginning and their end are seams too, and are recorded. */
function callHandler(sim: Simulation, process: SimProcess, call: () => unknown, running: Running): unknown {
  if (!process.alive) return never()
  const run = begin(sim, process, running)
  if (!sim.faults.seam(process, 'handler start', sim.config.leaseMs)) return never()
  const ended = (returned: unknown): unknown => end(sim, process, running, run, returned)
  const threw = (error: unknown): never => {
    close(sim, run, 'threw')
    throw error
  }
  const waiting = thaw(process)
  if (waiting !== undefined) return waiting.then(call).then(ended, threw)
  try {
    const returned = call()
    // One that returned at once ends at once, as it does at work: whole bursts of such jobs run in one go.
    return isThenable(returned) ? Promise.resolve(returned).then(ended, threw) : ended(returned)
  } catch (error) {
    return threw(error)
  }
}

function begin(sim: Simulation, process: SimProcess, running: Running): Run {
  const { id, job, attempt, claimed } = running
  const isSuspected = isSuspect(claimed.streak)
  if (isSuspected) sim.count('suspect runs')
  sim.note(process.name, `begins ${job} ${id.slice(-6)} attempt ${attempt}${isSuspected ? ' as a suspect' : ''}`)
  try {
    const run = sim.runs.began(id, process, claimed.fence, sim.time.now, sim.config.concurrency, itemOf(running))
    sim.checkParents(id, process)
    sim.scene.checks?.begins(id, process, claimed.fence)
    const how = sim.requests.begins(id, claimed.queue, process, sim.time.now)
    if (how === 'by the end of a pause') sim.count('begun after a pause of their queue')
    return run
  } catch (error) {
    sim.fail(error)
    throw error
  }
}

/** The items of a sequence are runs of their own, in each of its runs; and so is each claim of a workflow, which is suspended between. */
function itemOf({ claimed: { sequence, fence }, registered }: Running): string {
  if (registered.workflow !== undefined) return ` claim ${fence}`
  return sequence === undefined ? '' : ` run ${sequence.run} item ${sequence.index}`
}

function end(sim: Simulation, process: SimProcess, { id, job }: Running, run: Run, returned: unknown): unknown {
  if (!sim.faults.seam(process, 'handler end', sim.config.leaseMs)) return never()
  const closed = (): unknown => {
    close(sim, run, 'returned')
    sim.note(process.name, `ends ${job} ${id.slice(-6)}`)
    return returned
  }
  return thaw(process)?.then(closed) ?? closed()
}

function close(sim: Simulation, run: Run, how: 'returned' | 'threw'): void {
  run.end = how
  run.endedAt = sim.time.now
}
