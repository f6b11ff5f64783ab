import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Context } from '../src/index.js'
import { Pair, programs } from './model/programs.js'
import { onPostgres } from './support/fresh-store.js'
import { testing } from './support/testing.js'

/** `npm run model` asks for more programs, and for more time. */
const asked = process.env['MILLRACE_PROGRAMS']
const NUM_RUNS = Number(asked ?? (onPostgres ? 40 : 200))
const MAX_MS = Number(process.env['MILLRACE_PROGRAMS_MS'] ?? (onPostgres ? 8_000 : 15_000))
const REPORT_EVERY = 100

test('a mill does what the reference model says, whatever the program', { timeout: MAX_MS + 60_000 }, async () => {
  let ran = 0
  await fc.assert(
    fc.asyncProperty(programs(60), async (steps) => {
      const handlers: ((ctx: Context) => Promise<unknown>)[] = []
      const kit = await testing({ jobs: Pair.jobs(handlers) })
      try {
        const pair = new Pair(kit, handlers)
        for (const step of steps) await pair.run(step)
      } finally {
        await kit.close()
      }
      ran += 1
      if (asked !== undefined && ran % REPORT_EVERY === 0) process.stderr.write(`${ran} of ${NUM_RUNS} programs\n`)
    }),
    { numRuns: NUM_RUNS, interruptAfterTimeLimit: MAX_MS, markInterruptAsFailure: false },
  )
  if (asked !== undefined) process.stderr.write(`${ran} programs agree\n`)
  expect(ran).toBeGreaterThan(0)
})
