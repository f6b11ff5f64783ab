import { expect, test } from 'vitest'
import type { ClaimedJob, LeaseStore } from '../../store/store.js'
import { ReportBeforeStart } from './report-before-start.js'

const job = (ref: number, streak: number): ClaimedJob => ({ ref, fence: ref * 10, streak }) as ClaimedJob

function reporting() {
  const reports: unknown[] = []
  const store = { reportJobs: async (jobs: unknown) => void reports.push(jobs) } as unknown as LeaseStore
  return { reports, before: new ReportBeforeStart(store) }
}

test('a job that was in flight at a crash is reported once before it begins, and others are not', async () => {
  const { reports, before } = reporting()
  const [plain, crashed] = [job(1, 0), job(2, 1)]
  expect([undefined, plain, crashed].map((each) => before.isDue(each))).toEqual([false, false, true])
  expect(before.isReported(crashed)).toBe(false)
  await before.report([plain, crashed], 5)
  expect(reports).toEqual([[{ ref: 2, fence: 20, startedAt: 5, progress: null }]])
  expect([before.isDue(crashed), before.isReported(crashed), before.isReported(plain)]).toEqual([false, true, false])
})

test('nothing is written when none of the next jobs was in flight at a crash', async () => {
  const { reports, before } = reporting()
  const crashed = job(2, 1)
  await before.report([job(1, 0)], 5)
  expect(reports).toEqual([])
  await before.report([crashed], 6)
  await before.report([crashed], 7)
  expect(reports).toHaveLength(1)
})
