import { describe, expect, test } from 'vitest'
import { addCoverage } from './campaign/campaign.js'
import { runWorkflowSeed, WORKFLOWS_MUST_COVER } from './campaign/workflow-campaign.js'
import type { Coverage } from '../src/testing/simulation/simulation.js'

/** Random schedules of send, cancel, pause, resume, retry, stop and kill. `MILLRACE_WORKFLOW_SEEDS=1000` runs a whole campaign. */
const SEEDS = Number(process.env['MILLRACE_WORKFLOW_SEEDS'] ?? 24)

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

  test('cover every verb', () => {
    expect(WORKFLOWS_MUST_COVER.filter((what) => (coverage[what] ?? 0) === 0)).toEqual([])
  })

  test('have the same history for the same seed', async () => {
    const [first, second] = [await runWorkflowSeed(7), await runWorkflowSeed(7)]
    expect(second.trace).toEqual(first.trace)
  })
})
