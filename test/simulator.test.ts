import { describe, expect, test } from 'vitest'
import { addCoverage, runSeed, SEEDS, SHORT_DRAIN, uncovered } from './campaign/campaign.js'
import { runSequenceSeed } from './campaign/sequence-campaign.js'
import { runWorkflowSeed } from './campaign/workflow-campaign.js'
import type { Coverage } from '../src/testing/simulation/simulation.js'
import { SqliteEngine } from '../src/testing/simulation/sqlite-engine.js'
import type { Store } from '../src/store/store.js'

/** Seeds that once found a fault of the engine, with what it was. They stay, though a seed produces another history when the workload changes. */
const KEPT: readonly [seed: number, found: string][] = [
  [2, 'a claim whose reply was lost kept its jobs for as long as the worker lived'],
  [12, 'jobs claimed while a confirmation was in progress were treated as cancelled'],
  [25, 'a process suspended inside a claim began stale jobs when it resumed'],
  [146, 'a suspect was treated as alone while ended jobs were not written yet'],
  [7532, 'a suspect that had ended and was not written yet was charged with the crash of the next one'],
  [6240, 'a suspect whose claim got no reply was charged, though it was being given back'],
  [7609, 'a rescue dropped a lease that was written after its observation'],
  [37, 'a job that was taken from its worker and claimed by it again was begun by the old claim too'],
  [242, 'a held job that was announced, and then cancelled, began when its confirmation failed and was repeated'],
  [8276, 'a held job that was reported before its start, and then paused, began'],
  [4465, 'a schedule was written with a next tick that its process computed before the clock was set back'],
  [300, 'a schedule that was given another rule after the clock was set back had no tick for as long'],
]
const isKept = (seed: number): boolean => KEPT.some(([kept]) => kept === seed)

/** In shares, so that a failure names its seeds. Ten thousand are a campaign of their own: `npm run simulate`. */
const SHARES = 3

describe('the simulated fleet', () => {
  const coverage: Coverage = {}
  const expectHeld = async (seed: number): Promise<void> => {
    const report = await runSeed(seed, {}, SHORT_DRAIN)
    addCoverage(coverage, report.coverage)
    if (!report.ok)
      throw new Error(
        `seed ${seed}: ${String(report.error)}\nconfiguration: ${JSON.stringify(report.config)}\nreplay: npm run simulate -- --seed ${seed}`,
      )
  }

  test.each(KEPT)('seed %i holds every promise: %s', expectHeld)

  const share = Math.ceil(SEEDS / SHARES)
  test.each(Array.from({ length: SHARES }, (_, i) => 1 + i * share))(
    `holds every promise for ${share} seeds from %i`,
    { timeout: 300_000 },
    async (from) => {
      for (let seed = from; seed < from + share; seed += 1) if (!isKept(seed)) await expectHeld(seed)
    },
  )

  test('covered every fault and case', () => {
    expect(uncovered(coverage)).toEqual([])
  })

  test('produces the same history for the same seed, byte for byte', { timeout: 60_000 }, async () => {
    for (let seed = 1000; seed < 1002; seed += 1) {
      const [first, second] = [await runSeed(seed), await runSeed(seed)]
      expect(second.trace.join('\n')).toBe(first.trace.join('\n'))
      expect(second.coverage).toEqual(first.coverage)
    }
  })
})

test('a census that reads only what has changed since the last one is the whole census', async () => {
  const runJobSeed: typeof runSequenceSeed = (seed, plants, open) =>
    runSeed(seed, plants, SHORT_DRAIN, open) as ReturnType<typeof runSequenceSeed>
  for (const run of [runJobSeed, runSequenceSeed, runWorkflowSeed]) {
    const engine = await SqliteEngine.open()
    const stores: Store[] = []
    const wrapStore = (store: Store): Store => {
      stores.push(store)
      return store
    }
    await run(8, { wrapStore }, () => Promise.resolve(engine))
    const { works: _, ...changing } = engine.census()
    const inOrder = { ...changing, jobs: changing.jobs.toSorted((a, b) => a.seq - b.seq) }
    expect(inOrder).toEqual(await stores[0]?.readCensus())
  }
})
