import { expect, test } from 'vitest'
import { runSeed } from '../src/testing/campaign.js'
import { MUTANTS } from './mutants/mutants.js'

/** Seeds tried before a planted bug counts as not found. */
const SEEDS_MAX = 400

/** Long enough for every honest seed here to drain, as the control shows, and short enough that a stuck one is soon told. */
const CHANGE = { drainMs: 60_000 }

/** Where each was found when it was planted: tried first, so that this test is quick; the search goes on if it is not there. */
const FOUND_AT: { readonly [mutant: string]: number } = {
  'a rescue is not guarded by the beat': 502,
  'an end is written without its fence': 14,
  'a claim takes jobs that are held': 1,
  'a claim leaves no lease to be found by': 1,
  'closing one lease closes them all': 1,
  'a dead worker off the list keeps its leases unseen': 1,
  'beats do not count': 1,
  'retries are never promoted': 1,
  'a scheduled job is written as ready': 1,
  'a finished job keeps its key': 1,
  'pruning forgets what is still kept': 1,
  'an ended job stays in the live table': 1,
  'new lanes are never seen': 1,
  'due times are judged by the clock of the worker': 1,
  'a lease is judged by a clock that runs six times too fast': 1,
  'long timers are lost': 1,
  'a key can be taken twice': 2,
  'every crash is charged as if the job ran alone': 2,
  'a retry by command counts attempts anew': 3,
  'a retry forgets how often it was tried': 4,
  'due jobs are promoted before their time': 5,
  'a worker off the list may claim': 12,
  'no crash is ever charged': 19,
  'a rescued job is no suspect': 19,
  'a retry is written without its fence': 139,
  'a held job that was cancelled begins all the same': 139,
}

const found: string[] = []

test.each(MUTANTS.map((mutant) => [mutant.name, mutant] as const))(
  'the simulator finds: %s',
  { timeout: 120_000 },
  async (name, mutant) => {
    for (let seed = 0; seed <= SEEDS_MAX; seed += 1) {
      const report = await runSeed(seed === 0 ? (FOUND_AT[name] ?? 1) : seed, mutant.plants, CHANGE)
      if (report.ok) continue
      // The same seed without the bug: what was found is the bug, and nothing else.
      expect((await runSeed(report.seed, {}, CHANGE)).error).toBeUndefined()
      found.push(
        `seed ${String(report.seed).padStart(3)}  ${name}: ${report.error instanceof Error ? report.error.message : String(report.error)}`,
      )
      return
    }
    expect.fail(`${SEEDS_MAX} seeds did not find it`)
  },
)

test('at least twenty bugs were planted and all were found', () => {
  console.log(found.join('\n'))
  expect(found.length).toBeGreaterThanOrEqual(20)
  expect(found).toHaveLength(MUTANTS.length)
})
