import { describe, expect, test } from 'vitest'
import { addCoverage } from './campaign/campaign.js'
import { runWorkflowSeed, WORKFLOWS_MUST_COVER } from './campaign/workflow-campaign.js'
import { expectFound } from './mutants/find-mutant.js'
import type { FoundAt } from './mutants/find-mutant.js'
import { RARE_WORKFLOW_MUTANTS, WORKFLOW_MUTANTS } from './mutants/workflow-mutants.js'
import type { Coverage } from '../src/testing/simulation/simulation.js'

/** Random schedules of send, cancel, pause, resume, retry, stop and kill. `MILLRACE_WORKFLOW_SEEDS=1000` runs a whole campaign. */
const SEEDS = Number(process.env['MILLRACE_WORKFLOW_SEEDS'] ?? 8)
const IS_WHOLE = process.env['MILLRACE_WORKFLOW_SEEDS'] !== undefined
/** Seeds tried before a planted bug counts as not found. */
const SEEDS_MAX = 60
const FOUND_AT: FoundAt = {
  'an event wakes no workflow': 2,
  'an answer is written without its fence': 149,
}

describe('workflows in a simulated fleet', () => {
  const coverage: Coverage = {}
  test('keep every promise', { timeout: 600_000 }, async () => {
    for (let seed = 1; seed <= SEEDS; seed += 1) {
      const report = await runWorkflowSeed(seed)
      addCoverage(coverage, report.coverage)
      if (report.error !== undefined)
        throw new Error(
          `seed ${seed}: ${(report.error as Error).message}\nconfiguration: ${JSON.stringify(report.config)}\n${report.trace.slice(-25).join('\n')}`,
        )
    }
  })

  test.runIf(IS_WHOLE)('cover every verb', () => {
    expect(WORKFLOWS_MUST_COVER.filter((what) => (coverage[what] ?? 0) === 0)).toEqual([])
  })

  test('have the same history for the same seed', async () => {
    const [first, second] = [await runWorkflowSeed(7), await runWorkflowSeed(7)]
    expect(second.trace).toEqual(first.trace)
  })

  test.each(
    [...WORKFLOW_MUTANTS, ...(IS_WHOLE ? RARE_WORKFLOW_MUTANTS : [])].map((mutant) => [mutant.name, mutant] as const),
  )('the simulator finds: %s', { timeout: 300_000 }, async (_, mutant) => {
    await expectFound(mutant, runWorkflowSeed, { seedsMax: SEEDS_MAX, foundAt: FOUND_AT })
  })
})
