import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { closureOf } from './program.mjs'
import { hashOf } from './transpile.mjs'

const MEASURED_TEST_MAX_MS = 10_000
/** The program that measures is part of every key of the cache. */
const OWN = readFileSync(new URL('./child.mjs', import.meta.url), 'utf8')

/**
 * Which tests reach which mutants. Measured once for each file of tests and kept: while the file and its helpers are the same, the
 * measurement holds for every source that is the same too. Of a source that has changed since, only "reaches the file" is known.
 *
 * @typedef {{ entry: object, index: number, ms: number, cpuMs: number, hasStray: boolean }} Test
 */
export class Reach {
  #program
  #tests = []
  /** For each mutated path: the tests that reach it, and for each of its mutants. */
  #byPath = new Map()
  #atLoad = new Set()
  /** Paths that have changed since a measurement. */
  #changed = new Set()

  constructor(program) {
    this.#program = program
  }

  get testCount() {
    return this.#tests.length
  }

  add(entry, measured) {
    const { modules } = this.#program
    const isCurrent = (path) => measured.hashes[path] === modules.get(path)?.hash
    for (const [path, indices] of Object.entries(measured.byLoads))
      if (isCurrent(path)) for (const index of indices) this.#atLoad.add(`${path}#${index}`)
      else this.#changed.add(path)
    measured.tests.forEach(({ ms, cpuMs, isGreen, hasStray, reached }, index) => {
      if (!isGreen) return
      const test = { entry, index, ms, cpuMs, hasStray }
      this.#tests.push(test)
      for (const [path, indices] of Object.entries(reached)) {
        const known = this.#of(path)
        known.tests.push(test)
        if (!isCurrent(path)) known.unsure.push(test)
        else for (const each of indices) known.mutants.set(each, [...(known.mutants.get(each) ?? []), test])
      }
    })
  }

  #of(path) {
    const known = this.#byPath.get(path) ?? { tests: [], unsure: [], mutants: new Map() }
    this.#byPath.set(path, known)
    return known
  }

  /** A mutant that is reached while modules load needs them loaded again, and any test of its module may notice it. */
  isStatic({ path, index }) {
    return this.#changed.has(path) || this.#atLoad.has(`${path}#${index}`)
  }

  /** @returns {Test[]} */
  testsOf(mutant) {
    const { path, index } = mutant
    const known = this.#of(path)
    if (!this.isStatic(mutant)) return [...(known.mutants.get(index) ?? []), ...known.unsure]
    const isDirect = ({ entry }) => this.#program.modules.get(entry.path).imports.includes(path)
    return [...new Set([...known.tests, ...this.#tests.filter(isDirect), ...this.#testsOfImporters(path)])]
  }

  /** The tests that reach a module which imports it, directly or through modules that no test reaches. */
  #testsOfImporters(path) {
    const [found, seen] = [new Set(), new Set([path])]
    for (const each of seen)
      for (const [importer, { imports }] of this.#program.modules) {
        if (!imports.includes(each) || seen.has(importer)) continue
        const tests = [...this.#of(importer).tests, ...this.#tests.filter(({ entry }) => entry.path === importer)]
        if (tests.length === 0) seen.add(importer)
        else for (const test of tests) found.add(test)
      }
    return [...found]
  }
}

/** Measures the entries that have no kept measurement. `onStep` is called after each. */
export async function measureReach(program, entries, runner, cache, onStep) {
  const reach = new Reach(program)
  const problems = []
  for (const entry of entries) {
    const file = join(cache, `reach-${hashOf(OWN, entry.key, ...testHashes(program, entry))}.json`)
    const kept = readKept(file) ?? (await measure(program, entry, runner, file))
    if (kept.problem !== undefined) problems.push(`${entry.key}: ${kept.problem}`)
    else reach.add(entry, kept)
    for (const [index, { isGreen, error }] of (kept.tests ?? []).entries())
      if (!isGreen) problems.push(`${entry.key}, test ${index + 1}: ${error}`)
    onStep(entry.key)
  }
  return { reach, problems }
}

/** A test that mutated sources belong to is measured again only when the test changes. */
function testHashes(program, entry) {
  const paths = [...closureOf(program, entry.path), entry.setup ?? entry.path]
  return paths.filter((path) => program.offsets[path] === undefined).map((path) => program.modules.get(path).hash)
}

function readKept(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch {
    return undefined // Not measured yet.
  }
}

async function measure(program, entry, runner, file) {
  const answer = await runner.ask({ type: 'measure', entry }, MEASURED_TEST_MAX_MS)
  if (answer.type !== 'measured') return { problem: answer.reason ?? answer.type }
  const tests = answer.tests.map(({ reached, ...test }) => ({ ...test, reached: byPath(program, reached) }))
  const hashes = Object.fromEntries(Object.keys(program.offsets).map((path) => [path, program.modules.get(path).hash]))
  const kept = { tests, byLoads: byPath(program, answer.byLoads), hashes }
  mkdirSync(join(file, '..'), { recursive: true })
  writeFileSync(file, JSON.stringify(kept))
  return kept
}

function byPath({ mutants }, ids) {
  const found = {}
  for (const id of ids) (found[mutants[id].path] ??= []).push(mutants[id].index)
  return found
}
