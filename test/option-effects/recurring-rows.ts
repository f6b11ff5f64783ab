import { job } from '../../src/index.js'
import type { Context, RecurringOptions, State } from '../../src/index.js'
import type { TestKit } from '../../src/testing/index.js'
import { testing } from '../support/testing.js'

const report = job('report', async (_: unknown, ctx) => behaviour.run(ctx))
const parent = job<unknown, unknown>('parent', async () => undefined)
/** What the job does in the present case. */
const behaviour: { run: (ctx: Context) => unknown } = { run: () => undefined }
const NOON = Date.UTC(2030, 0, 1, 12)

/** An option of `mill.recurring`: given with the first call, and by a later call that changes it alone. */
export interface RecurringRow {
  readonly option: keyof RecurringOptions
  readonly values: readonly [
    { readonly given: unknown; readonly seen: unknown },
    { readonly given: unknown; readonly seen: unknown },
  ]
  readonly rule?: unknown
  /** Options that the case needs beside it. */
  readonly beside?: object
  /** Called before the schedule is made. */
  readonly begin?: (kit: TestKit) => Promise<unknown>
  /** What is seen of the schedule "r" from here on. */
  readonly see: (kit: TestKit) => Promise<unknown>
}

/** A kit with a schedule, by one call for each of these options, the last of which counts. */
export async function seeRecurring(row: RecurringRow, calls: readonly object[]): Promise<unknown> {
  const kit = await testing({ jobs: [report, parent] })
  behaviour.run = () => undefined
  try {
    await row.begin?.(kit)
    for (const options of calls)
      await kit.mill.recurring('r', report, {}, (row.rule ?? { every: '1m' }) as never, { ...row.beside, ...options })
    return await row.see(kit)
  } finally {
    await kit.close()
  }
}

async function states(kit: TestKit): Promise<State[]> {
  const found: State[] = []
  for await (const { state } of kit.mill.find({ order: 'oldest' })) found.push(state)
  return found
}

/** The states of the jobs of two ticks that no worker runs. */
async function twoTicks(kit: TestKit): Promise<State[]> {
  await kit.advance('2m')
  return states(kit)
}

const nextTick = async (kit: TestKit): Promise<string | undefined> =>
  (await kit.mill.schedules.get('r'))?.nextAt?.toISOString()

/** The record of the job of the first tick. */
async function firstJob(kit: TestKit) {
  await kit.advance('1m')
  for await (const record of kit.mill.find({ order: 'oldest' })) return record
  return undefined
}

const field = (name: 'queue' | 'priority' | 'title' | 'labels' | 'meta' | 'group') => async (kit: TestKit) =>
  (await firstJob(kit))?.[name]

export const recurringRows: readonly RecurringRow[] = [
  {
    option: 'timezone',
    rule: '0 18 * * *',
    values: [
      { given: 'Europe/Oslo', seen: '2030-01-01T17:00:00.000Z' },
      { given: 'Asia/Tokyo', seen: '2030-01-02T09:00:00.000Z' },
    ],
    see: nextTick,
  },
  {
    option: 'overlap',
    values: [
      { given: 'skip', seen: ['ready'] },
      { given: 'wait', seen: ['ready', 'blocked'] },
    ],
    see: twoTicks,
  },
  {
    option: 'overlap',
    values: [
      { given: 'cancel', seen: ['cancelled', 'ready'] },
      { given: 'allow', seen: ['ready', 'ready'] },
    ],
    see: twoTicks,
  },
  {
    option: 'jitter',
    values: [
      { given: '20s', seen: 'delayed' },
      { given: 0, seen: 'at once' },
    ],
    see: async (kit) => ((await firstJob(kit))?.dueAt.getTime() === NOON + 60_000 ? 'at once' : 'delayed'),
  },
  {
    option: 'from',
    values: [
      { given: new Date(NOON + 300_000), seen: '2030-01-01T12:05:00.000Z' },
      { given: new Date(NOON + 600_000), seen: '2030-01-01T12:10:00.000Z' },
    ],
    see: nextTick,
  },
  {
    option: 'until',
    values: [
      { given: new Date(NOON + 60_000), seen: ['ready'] },
      { given: new Date(NOON + 120_000), seen: ['ready', 'ready'] },
    ],
    see: async (kit) => {
      await kit.advance('5m')
      return states(kit)
    },
  },
  {
    option: 'expires',
    values: [
      { given: '30s', seen: 'cancelled' },
      { given: '1h', seen: 'ready' },
    ],
    see: async (kit) => {
      const record = await firstJob(kit)
      await kit.advance('45s')
      return (await kit.mill.get(record?.id as string))?.state
    },
  },
  {
    option: 'queue',
    values: [
      { given: 'mail', seen: 'mail' },
      { given: 'sms', seen: 'sms' },
    ],
    see: field('queue'),
  },
  {
    option: 'priority',
    values: [
      { given: 3, seen: 3 },
      { given: -3, seen: -3 },
    ],
    see: field('priority'),
  },
  {
    option: 'title',
    values: [
      { given: 'a', seen: 'a' },
      { given: 'b', seen: 'b' },
    ],
    see: field('title'),
  },
  {
    option: 'labels',
    values: [
      { given: ['a'], seen: ['a'] },
      { given: ['b'], seen: ['b'] },
    ],
    see: field('labels'),
  },
  {
    option: 'meta',
    values: [
      { given: { n: 1 }, seen: { n: 1 } },
      { given: { n: 2 }, seen: { n: 2 } },
    ],
    see: field('meta'),
  },
  {
    option: 'group',
    values: [
      { given: 'a', seen: [1, 0] },
      { given: 'b', seen: [0, 1] },
    ],
    see: async (kit) => {
      await kit.advance('1m')
      return Promise.all(['a', 'b'].map(async (name) => (await kit.mill.group(name).progress()).total))
    },
  },
  {
    option: 'key',
    values: [
      { given: 'a', seen: ['a'] },
      { given: 'b', seen: ['b'] },
    ],
    // The job of the first tick holds the key, so the second tick has none.
    see: async (kit) => {
      await kit.advance('2m')
      const keys: (string | undefined)[] = []
      for await (const { key } of kit.mill.find()) keys.push(key)
      return keys
    },
  },
  {
    option: 'unique',
    values: [
      { given: {}, seen: ['ready'] },
      { given: false, seen: ['ready', 'ready'] },
    ],
    see: twoTicks,
  },
  {
    option: 'timeout',
    values: [
      { given: '1m', seen: 60_000 },
      { given: '2m', seen: 120_000 },
    ],
    see: async (kit) => {
      await firstJob(kit)
      await kit.mill.schedules.pause('r')
      const aborted = { afterMs: -1 }
      behaviour.run = async ({ signal }) => {
        const begunAt = kit.now.getTime()
        await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
        aborted.afterMs = kit.now.getTime() - begunAt
      }
      const running = kit.consume().catch(() => undefined)
      // Turns of the event loop, in which the handler begins.
      for (let turn = 0; turn < 200; turn += 1) await new Promise((next) => setImmediate(next))
      await kit.advance('1h')
      await running
      return aborted.afterMs
    },
  },
  {
    option: 'retry',
    values: [
      { given: { limit: 0 }, seen: 'failed' },
      { given: { limit: 1 }, seen: 'retrying' },
    ],
    see: async (kit) => {
      const record = await firstJob(kit)
      behaviour.run = () => {
        throw new Error('no')
      }
      await kit.consume().catch(() => undefined)
      return (await kit.mill.get(record?.id as string))?.state
    },
  },
  {
    option: 'onDuplicate',
    beside: { key: 'a' },
    values: [
      { given: 'replace', seen: ['cancelled', 'ready'] },
      { given: 'return', seen: ['ready'] },
    ],
    see: twoTicks,
  },
  {
    option: 'after',
    begin: beginParents,
    values: [
      { given: [['parent', 'waits']], seen: 'blocked' },
      { given: [['parent', 'ran']], seen: 'ready' },
    ],
    see: reportState,
  },
  {
    option: 'onParentFailure',
    begin: beginParents,
    beside: { after: [['parent', 'waits']] },
    values: [
      { given: 'cancel', seen: 'cancelled' },
      { given: 'run', seen: 'ready' },
    ],
    see: async (kit) => {
      await kit.advance('1m')
      await kit.mill.unschedule('parent', 'waits')
      await kit.advance(0)
      return reportState(kit)
    },
  },
]

async function beginParents(kit: TestKit): Promise<void> {
  await kit.mill.enqueue(parent, {}, { key: 'ran', queue: 'parents' })
  await kit.consume('parents')
  await kit.mill.enqueue(parent, {}, { key: 'waits', in: '10h' })
}

async function reportState(kit: TestKit): Promise<State | undefined> {
  await kit.advance('1m')
  for await (const { state } of kit.mill.find({ job: 'report', order: 'oldest' })) return state
  return undefined
}
