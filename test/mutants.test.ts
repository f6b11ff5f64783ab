import { expect, test } from 'vitest'
import { runSeed, SEEDS, SHORT_DRAIN } from './campaign/campaign.js'
import { simulatedQueries } from '../src/testing/simulation/sqlite-engine.js'
import { MUTANTS, NotPlanted } from './mutants/mutants.js'

/** Seeds tried before a planted bug counts as not found. */
const SEEDS_MAX = 500

/** The seed that last found each, if not the first: it is tried first, which saves a minute; the search continues if it does not find it. */
const FOUND_AT: { readonly [mutant: string]: number } = {
  'a job is treated as settled by its handler': 2,
  'a job that is postponed keeps its old payload': 2,
  'a unique slot is not checked': 2,
  'a process with the pid of a dead one is treated as that one': 2,
  'jobs of a transaction are written without it': 2,
  'no death of a process is ever proven': 2,
  'pruning deletes jobs that are still kept': 2,
  'leases of a worker without a row are not found': 3,
  'heartbeats do not count': 3,
  'every other tick is skipped': 3,
  'a settlement is written without its fence': 3,
  'a job is not treated as blocked': 4,
  'a range of pruned jobs deletes the next job too': 4,
  'a retry resets its number of attempts': 5,
  'due times are compared with the clock of the worker': 5,
  'a child is released by the first of its parents': 6,
  'a paused queue is claimed from': 6,
  'a process of another machine is checked on this one': 6,
  'a tick is fired by every process that finds it due': 6,
  'a requested change outlives its claim': 7,
  "a cancel is dropped where its handler's signal was not aborted": 7,
  'finished jobs are never pruned': 7,
  'retries are never promoted': 7,
  'a requested change is written for another job': 9,
  'a cancel is dropped by the rescue': 9,
  'a held job that was cancelled begins anyway': 11,
  'a worker with held jobs gets no hint of other commits': 11,
  'a retry is written without its fence': 14,
  'unique slots that count are swept': 15,
  'a retry by command resets the attempts': 16,
  'a cancelled job keeps its unique slot': 17,
  'the window of a unique slot is not checked': 17,
  'a job that is deleted leaves its children blocked': 18,
  'a schedule under the key of a running job is dropped': 18,
  'the end of a job frees the key of its successor too': 19,
  'due jobs are promoted before their time': 20,
  'the times of a record are not clamped': 20,
  'a fold forgets the rows that it took': 20,
  'a resumed job is ready before its time': 22,
  'a worker without a row may claim': 23,
  'a pause is dropped when the attempt ends': 24,
  'the pause of a queue never ends': 24,
  'a refused bulk leaves a part in the transaction': 25,
  'every is not counted from now when the clock is set back': 34,
  "no handler's signal is aborted by a cancel": 34,
  'a pause replaces a cancel': 35,
  'a rescued job is no suspect': 39,
  'no crash is ever charged': 39,
  'held jobs of a paused queue begin': 44,
  'a parked job blocks the next ticks': 64,
  'a handler settles its job under any fence': 101,
  'a paused job that is moved runs': 135,
  'an observer ignores its own missing heartbeats': 242,
  'a rescue is not guarded by the heartbeat': 294,
}

/**
 * Each takes more than a second to find, mostly to see that a fleet does not drain, and another bug breaks the same promise sooner.
 * They run with `npm run mutants`, which runs all.
 */
const LONG: readonly string[] = [
  'a retry resets its number of attempts',
  'leases of a worker without a row are not found',
  'a worker without a row may claim',
  'every is not counted from now when the clock is set back',
  'due times are compared with the clock of the worker',
  'a retry is written without its fence',
  'a resumed job is ready before its time',
  'a rescue is not guarded by the heartbeat',
  'heartbeats do not count',
  'no crash is ever charged',
  'held jobs of a paused queue begin',
]
const PLANTED = MUTANTS.filter(({ name }) => process.env['MILLRACE_MUTANTS'] === 'all' || !LONG.includes(name))

const found: string[] = []

/** Many bugs are found by the same seeds: each seed is run once without a bug, the first ones by simulator.test.ts. */
const controls = new Map<number, unknown>()
async function errorWithout(seed: number): Promise<unknown> {
  if (seed <= SEEDS) return undefined
  if (!controls.has(seed)) controls.set(seed, (await runSeed(seed, {}, SHORT_DRAIN)).error)
  return controls.get(seed)
}

test('every bug can be planted', () => {
  expect(LONG.filter((name) => !MUTANTS.some((mutant) => mutant.name === name))).toEqual([])
  for (const { plants } of MUTANTS) plants.queries?.(simulatedQueries)
})

test.each(PLANTED.map((mutant) => [mutant.name, mutant] as const))(
  'the simulator finds: %s',
  { timeout: 300_000 },
  async (name, mutant) => {
    for (let seed = 0; seed <= SEEDS_MAX; seed += 1) {
      const report = await runSeed(seed === 0 ? (FOUND_AT[name] ?? 1) : seed, mutant.plants, SHORT_DRAIN)
      if (report.ok) continue
      if (report.error instanceof NotPlanted) throw report.error
      // The same seed passes without the bug, so the checker found the bug and nothing else.
      expect(await errorWithout(report.seed)).toBeUndefined()
      found.push(
        `seed ${String(report.seed).padStart(3)}  ${name}: ${report.error instanceof Error ? report.error.message : String(report.error)}`,
      )
      return
    }
    expect.fail(`${SEEDS_MAX} seeds did not find it`)
  },
)

test('at least forty bugs were planted and all were found', () => {
  console.log(found.join('\n'))
  expect(found.length).toBeGreaterThanOrEqual(40)
  expect(found).toHaveLength(PLANTED.length)
})
