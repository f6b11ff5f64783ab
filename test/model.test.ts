import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { CASES } from './model/cases.js'
import { openModelDatabase } from './model/databases.js'
import type { ModelDatabase } from './model/databases.js'
import { Fleet } from './model/fleet.js'
import { MILLS, NAMES, Pair } from './model/pair.js'
import { programs } from './model/programs.js'
import type { Step } from './model/steps.js'
import { onPostgres } from './support/fresh-store.js'

/** `npm run model` asks for more programs, and for more time. */
const asked = process.env['MILLRACE_PROGRAMS']
const NUM_RUNS = Number(asked ?? (onPostgres ? 20 : 100))
const MAX_MS = Number(process.env['MILLRACE_PROGRAMS_MS'] ?? 4_000)
const seed = process.env['MILLRACE_PROGRAMS_SEED']
const REPORT_EVERY = 50
/** The time to find the shortest program that fails. */
const SHRINK_MS = 120_000

let database: ModelDatabase
beforeAll(async () => {
  database = await openModelDatabase(MILLS)
})
afterAll(() => database.close())

async function run(steps: readonly Step[]): Promise<void> {
  await database.empty()
  const pair = new Pair(await Fleet.start(database, MILLS, NAMES))
  for (const step of steps) await pair.run(step)
}

/** One line that a terminal overwrites, and a log keeps. */
function progress(ran: number, tookMs: number): string {
  const width = 30
  const full = Math.round((ran / NUM_RUNS) * width)
  const rate = (ran * 1000) / tookMs
  const bar = `${'█'.repeat(full)}${'░'.repeat(width - full)} ${ran}/${NUM_RUNS} programs, ${rate.toFixed(1)} a second`
  return process.stderr.isTTY ? `\r${bar} ` : `${bar}\n`
}

for (const [found, steps] of Object.entries(CASES)) test(`a program that once found: ${found}`, () => run(steps))

test('mills do what the reference model says, whatever the program', { timeout: MAX_MS + 300_000 }, async () => {
  let ran = 0
  let hasFailed = false
  const start = performance.now()
  // At least one program runs, however slow the machine is, and one that fails is shrunk.
  const isOver = (): boolean => ran > 0 && !hasFailed && performance.now() - start > MAX_MS
  await fc.assert(
    fc.asyncProperty(programs(60), async (steps) => {
      if (isOver()) return
      await run(steps).catch((error: unknown) => {
        hasFailed = true
        throw error
      })
      ran += 1
      if (asked !== undefined && ran % REPORT_EVERY === 0)
        process.stderr.write(progress(ran, performance.now() - start))
    }),
    {
      numRuns: NUM_RUNS,
      interruptAfterTimeLimit: MAX_MS + SHRINK_MS,
      markInterruptAsFailure: false,
      unbiased: true,
      ...(seed === undefined ? {} : { seed: Number(seed) }),
    },
  )
  if (asked !== undefined) process.stderr.write(`${ran} programs agree\n`)
  expect(ran).toBeGreaterThan(0)
})
