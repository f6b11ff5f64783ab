import { writeFileSync } from 'node:fs'

/**
 * Writes how many tests passed, failed and were skipped to the file named by MILLRACE_TALLY, for scripts/test.mjs to add
 * up. A file that could not be loaded, a broken hook and an error outside every test count as one failure each: they
 * are not tests, but a run that has one has not passed.
 */
export default class TallyReporter {
  onTestRunEnd(testModules, unhandledErrors) {
    const tally = { passed: 0, failed: unhandledErrors.length, skipped: 0 }
    for (const testModule of testModules) {
      tally.failed += testModule.errors().length
      for (const suite of testModule.children.allSuites()) tally.failed += suite.errors().length
      for (const test of testModule.children.allTests()) {
        const { state } = test.result()
        if (state === 'passed') tally.passed++
        else if (state === 'failed') tally.failed++
        else tally.skipped++
      }
    }
    const file = process.env.MILLRACE_TALLY
    if (file !== undefined) writeFileSync(file, JSON.stringify(tally))
  }
}
