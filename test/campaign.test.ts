import { expect, test } from 'vitest'
import { job } from '../src/job/definition/define.js'
import { writeWork } from '../src/store/sqlite/verbs/census.js'
import { configOf } from './campaign/campaign.js'
import { NO_FAULTS } from '../src/testing/simulation/faults.js'
import { Simulation } from '../src/testing/simulation/simulation.js'

test('the checkers run after every step, also after those of the moment in which the faults stop', async () => {
  const waits = job('waits', async () => undefined)
  const config = { ...configOf(1), faults: NO_FAULTS, workers: 0, faultyMs: 100, drainMs: 1_000 }
  const sim = new Simulation(config, { jobs: () => [waits] })
  const history = sim.run(async (mill) => {
    await mill.enqueue(waits) // No worker runs it, so the history continues when the faults have stopped.
    const moment = sim.time.now + 100
    const told = new Promise<void>((resolve) => sim.time.at(moment, resolve))
    // Work that no job did exists for one step, and for no simulated time.
    sim.time.at(moment, () => sim.transaction((tx) => writeWork(tx, 'nobody')))
    sim.time.at(moment, () => sim.transaction((tx) => tx.exec('delete from simulated_work')))
    await told
  })
  await expect(history).rejects.toThrow('I5: the work of job nobody')
})
