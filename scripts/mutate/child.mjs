import './worker-state.mjs'
import { vi } from 'vitest'
import { ModuleRegistry } from './module-registry.mjs'
import { TestCollector } from './test-collector.mjs'

/**
 * A process that runs tests of mutants. The campaign sends what to do and ends the process if it does not answer: a mutant may loop
 * for ever. Messages: `measure` (which mutants does each test of an entry reach), `try` (does one of these tests find a mutant).
 */
const ALIVE_MS = 250
/** A test of a mutant gets this long, and a multiple of what it took without: the machine may be busy. */
const SLACK_MS = 2_000
const SLOWER_MAX = 10
const NO_MUTANT = -1

const { setInterval: startInterval } = globalThis
const collector = new TestCollector()
let registry
let active = NO_MUTANT
/** Which mutants were reached: by a test, or while modules were loaded. */
let reached
let reachedByLoads
let setUpFor
/** What was thrown in the background during the current test. */
let stray

process.on('message', (message) => void answer(message))
// Vitest fails a run for these; here they fail the test that runs, unless it has them without a mutant too.
process.on('unhandledRejection', (error) => (stray ??= new Error('an unhandled rejection', { cause: error })))
process.on('uncaughtException', (error) => (stray ??= new Error('an uncaught exception', { cause: error })))
startInterval(() => process.send({ type: 'alive' }), ALIVE_MS)
process.on('disconnect', () => process.exit())

async function answer(message) {
  const result = await perform(message).catch((error) => ({ type: 'broken', reason: String(error?.stack ?? error) }))
  process.send(result)
}

async function perform(message) {
  if (message.type === 'begin') return prepare(message)
  if (message.type === 'measure') return measure(message.entry)
  return tryMutant(message)
}

function prepare({ root, files, offsets, total }) {
  reached = new Uint8Array(total)
  reachedByLoads = new Uint8Array(total)
  const switchOf = (path) => {
    const offset = offsets[path]
    if (offset === undefined) return () => false
    return (index) => {
      ;(registry.loading > 0 ? reachedByLoads : reached)[offset + index] = 1
      return active === offset + index
    }
  }
  registry = new ModuleRegistry({ root, files, replaced: { vitest: collector.api }, switchOf })
  return { type: 'ready' }
}

/** Runs every test of an entry and reports what it reached. What a suite's hooks reach counts for the test that began it. */
async function measure(entry) {
  const opened = await open(entry)
  const tests = []
  for (const test of opened.tests) {
    reached.fill(0)
    stray = undefined
    const [start, startCpu] = [performance.now(), process.cpuUsage()]
    const error = await collector.run(test)
    vi.useRealTimers()
    const { user, system } = process.cpuUsage(startCpu)
    tests.push({
      ms: performance.now() - start,
      cpuMs: (user + system) / 1_000,
      isGreen: error === undefined,
      hasStray: stray !== undefined,
      reached: take(reached),
      error: shown(error),
    })
  }
  await collector.end(opened.suite)
  return { type: 'measured', entry: entry.key, tests, byLoads: take(reachedByLoads) }
}

const shown = (error) => (error === undefined ? undefined : String(error?.stack ?? error).slice(0, 600))

const take = (flags) => {
  const indices = []
  for (let index = 0; index < flags.length; index += 1) if (flags[index] === 1) indices.push(index)
  return indices
}

async function tryMutant({ mutant, isStatic, plan }) {
  let ran = 0
  for (const { entry, tests } of plan) {
    const failed = await firstFailure(mutant, isStatic, entry, tests)
    ran += failed === undefined ? tests.length : tests.indexOf(failed.test) + 1
    if (failed === undefined) continue
    // A test that fails without the mutant too says nothing about it: an earlier mutant left something behind.
    const without = await firstFailure(NO_MUTANT, isStatic, entry, [failed.test])
    const isBlamed = without === undefined || (await firstFailure(NO_MUTANT, isStatic, entry, tests)) === undefined
    // What was thrown in the background may be of an earlier mutant: it has to be thrown again.
    if (failed.isStray && (await firstFailure(mutant, isStatic, entry, [failed.test])) === undefined) continue
    const { index } = failed.test
    return {
      type: isBlamed ? 'killed' : 'unsure',
      mutant,
      by: { key: entry.key, index },
      why: shown(failed.error),
      ran,
    }
  }
  return { type: 'survived', mutant, ran }
}

async function firstFailure(mutant, isStatic, entry, tests) {
  active = mutant
  if (isStatic) registry.forgetAll()
  let opened
  try {
    opened = await open(entry)
    for (const test of tests) {
      stray = undefined
      const error = await collector.run(opened.tests[test.index], SLACK_MS + SLOWER_MAX * test.ms)
      vi.useRealTimers()
      if (error !== undefined) return { test, error, isStray: false }
      if (stray !== undefined && !test.hasStray) return { test, error: stray, isStray: true }
    }
    return undefined
  } catch (error) {
    return { test: tests[0], error, isStray: false } // The module does not even load.
  } finally {
    if (opened !== undefined) await collector.end(opened.suite, SLACK_MS)
    active = NO_MUTANT
    if (isStatic) registry.forgetAll()
  }
}

/** Registers the tests of a file once more; its modules stay as they are, unless another entry had another set-up. */
async function open({ path, setup, env }) {
  if (setUpFor !== undefined && setUpFor !== (setup ?? '')) registry.forgetAll()
  setUpFor = setup ?? ''
  const before = { ...process.env }
  Object.assign(process.env, env)
  registry.forget(path)
  if (setup !== undefined) registry.forget(setup)
  const opened = await collector.collect(async () => {
    if (setup !== undefined) await registry.load(setup)
    await registry.load(path)
  })
  opened.suite.afterAll.unshift(() => restoreEnvironment(before))
  return opened
}

function restoreEnvironment(before) {
  for (const name of Object.keys(process.env)) if (before[name] === undefined) delete process.env[name]
  Object.assign(process.env, before)
}
