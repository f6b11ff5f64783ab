import { mkdirSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { seededRandom } from '../torture/random.mjs'
import { measureReach } from './reach.mjs'
import { readProgram } from './program.mjs'
import { RunnerProcess } from './runner-process.mjs'

/** The tests that are tried together first; most mutants are found by one of them. */
const FIRST_TESTS = 10
/** A test whose result an earlier mutant has spoiled is tried again in a new process this often. */
const SPOILED_MAX = 2
/** So many of the nearest tests are tried whatever they cost. */
const NEAREST_TESTS = 10
/** Tests that wait cost little CPU time: together they may take this many times the budget by the clock. */
const WAIT_FACTOR = 3

/**
 * Plants mutants one at a time and runs the tests that reach them, nearest and fastest first, until one fails.
 *
 * @param {object} options
 * @param {string} options.root
 * @param {string} options.cache a folder for what is kept between runs
 * @param {Record<string, string | undefined>} [options.env] for the process that runs the tests
 * @param {{ key: string, path: string, setup?: string, env?: object }[]} options.entries files of tests
 * @param {(path: string) => boolean} options.isMutated files that get mutants
 * @param {(path: string) => boolean} options.isChosen of those, files whose mutants are tried
 * @param {{ file: string, source: string, nth?: number, original: string, mutated: string }[]} options.equivalent
 * @param {number} [options.sample] how many mutants are tried; all of them without it
 * @param {number} [options.seed] of the sample
 * @param {number} [options.deadline] when no further mutant is tried, in ms since 1970
 * @param {number} [options.stuckMs] how long the process may show no sign of life
 * @param {(key: string) => void} options.onMeasured
 * @param {(problems: string[]) => void} [options.onProblems] tests that cannot be used
 * @param {(result: object, done: number, all: number) => void} [options.onTried]
 * @param {number} options.budgetMs how much CPU time the tests of one mutant may take, as measured without it
 */
export async function runCampaign(options) {
  const {
    root,
    entries,
    isMutated,
    isChosen,
    cache,
    env,
    deadline = Infinity,
    onMeasured,
    onTried,
    onProblems,
  } = options
  const program = readProgram(root, entries, isMutated, cache)
  const { files, offsets, mutants } = program
  // A process that was ended removes no files: what its tests wrote is removed with this folder.
  const temporary = join(cache, `tmp-${process.pid}`)
  mkdirSync(temporary, { recursive: true })
  const task = { root, files, offsets, total: mutants.length }
  const runner = new RunnerProcess(task, { ...env, TMPDIR: temporary }, options.stuckMs)
  try {
    const { reach, problems } = await measureReach(program, entries, runner, cache, onMeasured)
    onProblems?.(problems)
    const { chosen, equivalents, stale } = choose(
      mutants.filter(({ path }) => isChosen(path)),
      options,
    )
    const trials = new Trials(runner, reach, options.budgetMs)
    const results = []
    for (const mutant of chosen) {
      if (Date.now() > deadline) break
      const result = await trials.run(mutant)
      results.push(result)
      onTried?.(result, results.length, chosen.length)
    }
    return { results, chosen, equivalents, stale, problems }
  } finally {
    await runner.end()
    rmSync(temporary, { recursive: true, force: true })
  }
}

/** Leaves out the mutants that are listed as equivalent, and draws the sample. */
function choose(mutants, { equivalent, sample, seed = 1 }) {
  const keyOf = ({ file, source, nth = 1, original, mutated }) => JSON.stringify([file, source, nth, original, mutated])
  const listed = new Map(equivalent.map((each) => [keyOf(each), each]))
  const isListed = (mutant) => listed.has(keyOf({ ...mutant, file: mutant.path }))
  const met = new Set(mutants.map((mutant) => keyOf({ ...mutant, file: mutant.path })))
  const paths = new Set(mutants.map(({ path }) => path))
  const stale = equivalent.filter((each) => paths.has(each.file) && !met.has(keyOf(each)))
  const open = mutants.filter((mutant) => !isListed(mutant))
  return { chosen: draw(open, sample ?? open.length, seed), equivalents: mutants.length - open.length, stale }
}

/** In the order in which they are drawn: where the time ends early, those that were tried are a sample too. */
function draw(list, count, seed) {
  if (count >= list.length) return list
  const random = seededRandom(seed)
  const rest = [...list]
  return Array.from({ length: count }, () => rest.splice(random.between(0, rest.length - 1), 1)[0])
}

class Trials {
  #runner
  #reach
  #budgetMs
  /** How many mutants of a path a test has found: its neighbours are tried with it first. */
  #kills = new Map()
  #unreliable = new Set()

  constructor(runner, reach, budgetMs) {
    this.#runner = runner
    this.#reach = reach
    this.#budgetMs = budgetMs
  }

  async run(mutant) {
    const start = performance.now()
    let spoiled = 0
    for (;;) {
      const tests = this.#tests(mutant)
      if (tests.length === 0) return { mutant, status: 'unreached', tests: 0, ms: 0 }
      const message = { type: 'try', mutant: mutant.id, isStatic: this.#reach.isStatic(mutant), plan: planOf(tests) }
      const answer = await this.#runner.ask(message, Math.max(...tests.map(({ ms }) => ms)))
      const ms = performance.now() - start
      if (answer.type === 'survived') return { mutant, status: 'survived', tests: answer.ran, ms }
      if (answer.type === 'stuck' || answer.type === 'exited') return { mutant, status: 'killed', by: answer.type, ms }
      if (answer.type === 'killed') {
        const killer = idOf(answer.by)
        const counts = this.#killsOf(mutant.path)
        counts.set(killer, (counts.get(killer) ?? 0) + 1)
        return { mutant, status: 'killed', by: killer, why: answer.why, ms }
      }
      if (answer.type === 'broken') throw new Error(answer.reason)
      this.#runner.restart()
      spoiled += 1
      if (spoiled >= SPOILED_MAX) this.#unreliable.add(idOf(answer.by))
    }
  }

  #killsOf(path) {
    if (!this.#kills.has(path)) this.#kills.set(path, new Map())
    return this.#kills.get(path)
  }

  /**
   * The tests of a mutant in the order in which they are tried: the nearest, and as many as fit into the budget. CPU time is compared:
   * on a busy machine a test takes several times as long, and the choice must be the same.
   */
  #tests(mutant) {
    const kills = this.#killsOf(mutant.path)
    const rank = (test) => [-(kills.get(idOf(test)) ?? 0), test.cpuMs * farness(mutant.path, test.entry.path)]
    const ranked = this.#reach
      .testsOf(mutant)
      .filter((test) => !this.#unreliable.has(idOf(test)))
      .map((test) => ({ test, rank: rank(test) }))
      .sort((one, other) => compare(one.rank, other.rank))
    let [leftMs, leftWallMs] = [this.#budgetMs, this.#budgetMs * WAIT_FACTOR]
    return ranked
      .map(({ test }) => test)
      .filter(({ ms, cpuMs }, at) => {
        const isAffordable = cpuMs <= leftMs && ms <= leftWallMs
        if (isAffordable || at < NEAREST_TESTS) [leftMs, leftWallMs] = [leftMs - cpuMs, leftWallMs - ms]
        return isAffordable || at < NEAREST_TESTS
      })
  }
}

const idOf = ({ entry, key = entry.key, index }) => `${key}#${index}`

function compare(one, other) {
  const at = one.findIndex((value, index) => value !== other[index])
  return at === -1 ? 0 : one[at] - other[at]
}

/** A test beside the file is tried before one that is much faster, but far. */
function farness(path, testPath) {
  if (testPath === path.replace(/\.ts$/, '.test.ts')) return 0.1
  return dirname(path) === dirname(testPath) ? 0.5 : 1
}

/** Tests of one file run together: the file is opened once. */
function planOf(tests) {
  return [tests.slice(0, FIRST_TESTS), tests.slice(FIRST_TESTS)].flatMap((part) => {
    const byEntry = new Map()
    for (const { entry, ...test } of part) {
      if (!byEntry.has(entry.key)) byEntry.set(entry.key, { entry, tests: [] })
      byEntry.get(entry.key).tests.push(test)
    }
    return [...byEntry.values()]
  })
}
