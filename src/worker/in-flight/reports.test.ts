import { expect, test } from 'vitest'
import type { Running } from '../attempt/running.js'
import { IndexedSet } from './indexed-set.js'
import { AttemptReporter } from './reports.js'

function setUp() {
  const armed: [ms: number, run: () => void][] = []
  const written: object[][] = []
  const failed: string[] = []
  let answer = (): readonly number[] => []
  const running = new IndexedSet<Running>()
  const parts = {
    world: {
      timers: {
        after: (ms: number, run: () => void) => {
          const entry: [number, () => void] = [ms, run]
          armed.push(entry)
          return () => void armed.splice(armed.indexOf(entry), 1)
        },
      },
    },
    store: { leases: { reportJobs: async (reports: object[]) => (written.push(reports), answer()) } },
    events: { storeFailed: (what: string) => failed.push(what) },
  }
  const reporter = new AttemptReporter(parts as never, running)
  const begin = (ref: number, change: object = {}): Running & { aborted: unknown[] } => {
    const aborted: unknown[] = []
    const given = { id: `id-${ref}`, startedAt: ref * 100, progressText: null, reported: false, settled: false }
    const claimed = { ref, fence: 5, id: `id-${ref}`, name: 'mail' }
    const each = {
      ...given,
      claimed,
      settledIn: undefined,
      aborted,
      abort: (reason: unknown) => aborted.push(reason),
      ...change,
    }
    running.add(each as unknown as Running)
    return each as unknown as Running & { aborted: unknown[] }
  }
  return { reporter, begin, written, failed, armed, answers: (next: typeof answer) => (answer = next) }
}

test('attempts are reported once, with their progress, and ended ones are not', async () => {
  const { reporter, begin, written } = setUp()
  await reporter.report()
  expect(written).toEqual([])
  begin(1)
  begin(2, { progressText: '{"done":1}' })
  begin(3, { settled: true })
  begin(4, { reported: true })
  await reporter.report()
  await reporter.report()
  const report = { fence: 5, name: 'mail' }
  expect(written).toEqual([
    [
      { ...report, ref: 1, id: 'id-1', startedAt: 100, progress: null },
      { ...report, ref: 2, id: 'id-2', startedAt: 200, progress: '{"done":1}' },
    ],
  ])
})

test('an attempt whose claim was lost is aborted, unless its own transaction has settled it', async () => {
  const { reporter, begin, answers } = setUp()
  const attempts = [begin(1), begin(2), begin(3, { settledIn: 'done' })]
  answers(() => [2, 3])
  await reporter.report()
  expect(attempts.map(({ aborted }) => aborted.length)).toEqual([0, 1, 0])
  expect(attempts[1]?.aborted).toMatchObject([{ code: 'E_LEASE_LOST' }])
})

test('what could not be reported is reported again', async () => {
  const { reporter, begin, written, failed, answers } = setUp()
  begin(1)
  answers(() => {
    throw new Error('away')
  })
  await reporter.report()
  answers(() => [])
  await reporter.report()
  expect([failed, written.length]).toEqual([['report'], 2])
})

test('progress is written after a quarter of a second, however often it is noted, and not after a stop', async () => {
  const { reporter, begin, written, armed } = setUp()
  const each = begin(1, { reported: true })
  for (const _ of [1, 2, 3]) reporter.noteProgress(each)
  expect(armed.map(([ms]) => ms)).toEqual([250])
  armed.splice(0).forEach(([, run]) => run())
  await new Promise((next) => setImmediate(next))
  expect(written.length).toBe(1)
  reporter.noteProgress(each)
  expect(armed.length).toBe(1)
  reporter.stop()
  expect(armed.length).toBe(0)
})
