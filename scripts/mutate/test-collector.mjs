import './worker-state.mjs'
import { createExpect } from 'vitest'
import * as vitest from 'vitest'

const TIMEOUT_MS = 60_000
const SKIPPED = Symbol('skipped')

/**
 * The functions of vitest that a file of tests calls, so that its tests can be run one by one, many times, in a process of ours. Matchers
 * and `vi` are those of vitest. `collect()` calls `load` and returns the tests which that file has registered.
 */
export class TestCollector {
  #suite
  /** Where `onTestFinished` adds to while a test runs. */
  #finishers = []

  /** What `import … from 'vitest'` gives a test. */
  api = {
    ...vitest,
    __esModule: true,
    ...this.#registering(),
    expect: createExpect({
      type: 'test',
      name: '',
      fullTestName: '',
      promises: [],
      onFinished: [],
      context: {},
      file: { filepath: '' },
    }),
  }

  constructor() {
    this.api.expect.extend({ toMatchInlineSnapshot: matchesSnapshot })
  }

  async collect(load) {
    const suite = newSuite(undefined)
    this.#suite = suite
    await load()
    return { suite, tests: testsOf(suite) }
  }

  #registering() {
    const test = this.#chain((name, ...rest) => this.#addTest(name, rest))
    const describe = this.#chain((name, ...rest) => this.#addSuite(name, rest))
    const hook = (kind) => (run) => void this.#suite[kind].push(run)
    const onTestFinished = (run) => void this.#finishers.push(run)
    const hooks = ['beforeAll', 'afterAll', 'beforeEach', 'afterEach'].map((kind) => [kind, hook(kind)])
    return { test, it: test, describe, suite: describe, onTestFinished, ...Object.fromEntries(hooks) }
  }

  #chain(add) {
    const nothing = () => {}
    const skipIf = (isSkipped) => (isSkipped ? Object.assign(nothing, { each: () => nothing }) : chained)
    // Rows are spread over the arguments only if each of them is a list.
    const each =
      (table) =>
      (name, ...rest) => {
        const isSpread = table.every(Array.isArray)
        for (const row of table) add(name, ...withRow(rest, isSpread ? row : [row]))
      }
    const forEach =
      (table) =>
      (name, ...rest) => {
        for (const row of table) add(name, ...withRow(rest, [row]))
      }
    const skip = Object.assign(() => {}, { each: () => nothing })
    const chained = Object.assign((...given) => add(...given), {
      skip,
      todo: skip,
      each,
      for: forEach,
      skipIf,
      runIf: (is) => skipIf(!is),
    })
    return chained
  }

  #addTest(name, rest) {
    const run = rest.find((each) => typeof each === 'function')
    const limit = rest.find((each) => typeof each === 'number') ?? rest.find((each) => each?.timeout)?.timeout
    this.#suite.children.push({ name, run, suite: this.#suite, timeoutMs: limit ?? TIMEOUT_MS })
  }

  #addSuite(name, rest) {
    const outer = this.#suite
    const suite = newSuite(outer)
    outer.children.push(suite)
    this.#suite = suite
    rest.find((each) => typeof each === 'function')()
    this.#suite = outer
  }

  /** Runs a test with its hooks. Resolves to `undefined`, or to the error that failed it. */
  async run(test, timeoutMs = test.timeoutMs) {
    this.#finishers = []
    const suites = [...ancestors(test.suite)].reverse()
    const context = {
      skip: () => {
        throw SKIPPED
      },
      expect: this.api.expect,
      onTestFinished: this.api.onTestFinished,
      task: test,
    }
    const errors = []
    const attempt = async (run) => {
      try {
        return await run()
      } catch (error) {
        if (error !== SKIPPED) errors.push(error ?? new Error('undefined was thrown'))
      }
      return undefined
    }
    const inside = async () => {
      const cleaners = []
      for (const suite of suites) await attempt(() => begin(suite))
      for (const hook of suites.flatMap((suite) => suite.beforeEach)) {
        const clean = errors.length === 0 ? await attempt(() => hook(context)) : undefined
        if (typeof clean === 'function') cleaners.push(clean)
      }
      if (errors.length === 0) await attempt(() => test.run(context))
      for (const hook of suites.toReversed().flatMap((suite) => suite.afterEach.toReversed()))
        await attempt(() => hook(context))
      for (const clean of [...cleaners, ...this.#finishers].reverse()) await attempt(clean)
    }
    const late = await within(timeoutMs, inside())
    return late ?? errors[0]
  }

  /** Runs the `afterAll` hooks of the suites that a test has begun. */
  async end(suite, timeoutMs = TIMEOUT_MS) {
    for (const child of suite.children) if (child.children !== undefined) await this.end(child, timeoutMs)
    if (suite.begun === undefined) return
    suite.begun = undefined
    for (const hook of suite.afterAll.toReversed())
      await within(
        timeoutMs,
        Promise.resolve()
          .then(hook)
          .catch(() => {}),
      )
  }
}

const newSuite = (outer) => ({
  outer,
  children: [],
  beforeAll: [],
  afterAll: [],
  beforeEach: [],
  afterEach: [],
  begun: undefined,
})

function withRow(rest, row) {
  return rest.map((each) => (typeof each === 'function' ? (context) => each(...row, context) : each))
}

function testsOf(suite) {
  return suite.children.flatMap((child) => (child.children === undefined ? [child] : testsOf(child)))
}

function* ancestors(suite) {
  for (let each = suite; each !== undefined; each = each.outer) yield each
}

/** The `beforeAll` hooks run once, before the first test that needs them; a function that one returns runs after the last. */
function begin(suite) {
  suite.begun ??= (async () => {
    for (const hook of suite.beforeAll) {
      const clean = await hook()
      if (typeof clean === 'function') suite.afterAll.push(clean)
    }
  })()
  return suite.begun
}

/** Snapshots of vitest need its own run. Texts are enough here: in quotes, indented like the code around them. */
function matchesSnapshot(received, snapshot) {
  const indent = /^\n( *)/.exec(snapshot)?.[1] ?? ''
  const expected = snapshot.trim().replaceAll(`\n${indent}`, '\n')
  return { pass: expected === `"${received}"`, message: () => `the text is not that of the snapshot: ${received}` }
}

/** Resolves to an error after `timeoutMs`, or to undefined when `work` ends. Its timer is real where a test fakes timers. */
const { setTimeout: startTimer, clearTimeout: stopTimer } = globalThis

function within(timeoutMs, work) {
  return new Promise((resolve) => {
    const timer = startTimer(() => resolve(new Error(`took longer than ${timeoutMs} ms`)), timeoutMs)
    work.then(() => {
      stopTimer(timer)
      resolve(undefined)
    })
  })
}
