import { writeFileSync } from 'node:fs'

/**
 * Writes how many tests passed, failed and were skipped, in all and by project, to the file named by MILLRACE_TALLY, for
 * scripts/test.mjs to add up. A file that could not be loaded, a broken hook and an error outside every test count as one
 * failure each: they are not tests, but a run that has one has not passed. The files whose tests took longest are in it too.
 */
export default class TallyReporter {
  #began = new Map()
  #ended = new Map()

  onTestModuleQueued({ project }) {
    if (!this.#began.has(project.name)) this.#began.set(project.name, performance.now())
  }

  onTestModuleEnd({ project }) {
    this.#ended.set(project.name, performance.now())
  }

  onTestRunEnd(testModules, unhandledErrors) {
    const projects = {}
    for (const testModule of testModules) {
      const { name } = testModule.project
      projects[name] ??= { passed: 0, failed: 0, skipped: 0, seconds: this.#secondsOf(name) }
      countModule(testModule, projects[name])
    }
    const tally = { passed: 0, failed: unhandledErrors.length, skipped: 0, projects, longest: longestOf(testModules) }
    for (const each of Object.values(projects))
      for (const outcome of ['passed', 'failed', 'skipped']) tally[outcome] += each[outcome]
    const file = process.env.MILLRACE_TALLY
    if (file !== undefined) writeFileSync(file, JSON.stringify(tally))
  }

  /** From its first file to its last: files of another project may run at the same time. */
  #secondsOf(project) {
    return ((this.#ended.get(project) ?? 0) - (this.#began.get(project) ?? 0)) / 1000
  }
}

const LONGEST_SHOWN = 12

function longestOf(testModules) {
  return testModules
    .map((testModule) => ({
      project: testModule.project.name,
      file: testModule.relativeModuleId,
      seconds: testModule.diagnostic().duration / 1000,
    }))
    .sort((one, other) => other.seconds - one.seconds)
    .slice(0, LONGEST_SHOWN)
}

function countModule(testModule, tally) {
  tally.failed += testModule.errors().length
  for (const suite of testModule.children.allSuites()) tally.failed += suite.errors().length
  for (const test of testModule.children.allTests()) {
    const { state } = test.result()
    if (state === 'passed') tally.passed++
    else if (state === 'failed') tally.failed++
    else tally.skipped++
  }
}
