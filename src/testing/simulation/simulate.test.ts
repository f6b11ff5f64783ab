import { expect, test } from 'vitest'
import { job } from '../../job/definition/define.js'
import { simulate, SimulationError } from './simulate.js'

const steps: string[] = []
const charge = job('charge', async (p: { order: number }, ctx) => {
  steps.push(`${ctx.id} ${p.order}`)
  return p.order
})

const scenario = async ({
  mill,
  sleep,
  random,
}: Parameters<Parameters<typeof simulate>[0]['scenario']>[0]): Promise<void> => {
  for (let order = 0; order < 15; order += 1) {
    await mill.enqueue(charge, { order }, { key: `order-${order % 7}` }).catch(() => undefined)
    await sleep(random.int(1, 700))
  }
}

test('a user’s jobs live through a fleet that crashes, and one seed is one history', async () => {
  // Which seed crashes changes with every new question to the store; that one of these does, does not.
  let seed = 1
  let first = await simulate({ jobs: [charge], seed, scenario })
  while (first.coverage['fault: crash'] === undefined && seed < 50)
    first = await simulate({ jobs: [charge], seed: (seed += 1), scenario })
  const second = await simulate({ jobs: [charge], seed, scenario })
  const other = await simulate({ jobs: [charge], seed: seed + 1, scenario })
  expect(second.trace).toEqual(first.trace)
  expect(other.trace).not.toEqual(first.trace)
  expect(first.coverage['fault: crash']).toBeGreaterThan(0)
  expect(first.runs).toBeGreaterThan(7)
})

test('without faults every job runs exactly once', async () => {
  steps.length = 0
  const report = await simulate({
    jobs: { charge },
    faults: 'none',
    scenario: async ({ mill }) => void (await mill.enqueueMany(charge, [{ order: 1 }, { order: 2 }])),
  })
  expect(report.runs).toBe(2)
  expect(steps).toHaveLength(2)
})

test('the check at the end sees what became of the jobs', async () => {
  const states: string[] = []
  await simulate({
    jobs: [charge],
    seed: 9,
    scenario,
    check: async ({ mill }) => {
      for await (const found of mill.find()) states.push(found.state)
    },
  })
  expect(states.length).toBeGreaterThan(0)
  expect(new Set(states)).toEqual(new Set(['done']))
})

test('the error of a scenario that fails has its seed and configuration', async () => {
  const failing = simulate({ jobs: [charge], seed: 77, scenario: () => Promise.reject(new Error('my mistake')) })
  await expect(failing).rejects.toThrow(SimulationError)
  await expect(failing).rejects.toThrow(/seed 77: my mistake[^]*seed: 77[^]*"workers":3/)
})

test('all wrong options are reported in one error', async () => {
  const wrong = simulate({ jobs: [charge], seed: -1, workers: 0, sede: 1 } as never)
  await expect(wrong).rejects.toThrow(/4 problems[^]*seed[^]*workers[^]*sede[^]*scenario/)
})
