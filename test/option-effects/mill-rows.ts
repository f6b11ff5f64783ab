import { AsyncLocalStorage } from 'node:async_hooks'
import { vi } from 'vitest'
import { category, job, millrace } from '../../src/index.js'
import type { Mill, MillOptions } from '../../src/index.js'
import { passingStore } from '../support/fresh-store.js'
import { deadWorkersJob } from './dead-worker.js'
import type { OptionRow, Placed } from './row.js'

/** A started mill with these options, changed by `configure`, and closed after the look. */
async function withMill<T>(placed: Placed, options: MillOptions, look: (mill: Mill) => Promise<T>): Promise<T> {
  const mill = await millrace({ store: passingStore(), logger: false, poll: '10m', ...options, ...placed.mill })
  try {
    await mill.start()
    if (placed.configure !== undefined) mill.configure(placed.configure)
    return await look(mill)
  } finally {
    await mill.close({ deadline: 0 })
  }
}

/** The most handlers of a queue that run at once, of twelve jobs in each of two queues. */
async function together(placed: Placed, queue: string): Promise<number> {
  const running = new Map<string, number>()
  let most = 0
  const counted = job('counted', async ({ of }: { of: string }) => {
    running.set(of, (running.get(of) ?? 0) + 1)
    most = Math.max(most, queue === 'all' ? [...running.values()].reduce((a, b) => a + b) : (running.get(queue) ?? 0))
    await new Promise((next) => setTimeout(next, 5))
    running.set(of, (running.get(of) ?? 0) - 1)
  })
  return withMill(placed, { jobs: [counted] }, async (mill) => {
    const payloads = Array.from({ length: 24 }, (_, i) => ({ of: i % 2 === 0 ? 'mail' : 'sms' }))
    const handles = await mill.enqueueMany(counted, payloads, ({ of }: { of: string }) => ({ queue: of }))
    await Promise.all(handles.map((handle) => handle.result({ timeout: '20s' })))
    return most
  })
}

const nothing = (): void => undefined
const silent = { debug: nothing, info: nothing, warn: nothing, error: nothing }

/** Lines that are logged while a job runs for 300 ms. */
async function slowLines(placed: Placed): Promise<string> {
  const lines: string[] = []
  const run = (): Promise<void> => new Promise((end) => setTimeout(end, 300))
  const slow = job('slow', { run, is: [category('above', { ...placed.category })], ...placed.job })
  const logger = { ...silent, error: (_: object, line: string) => void lines.push(line) }
  return withMill(placed, { jobs: [slow], logger }, async (mill) => {
    await (await mill.enqueue(slow)).result({ timeout: '20s' })
    return lines.some((line) => line.startsWith('slow slow')) ? 'reported' : 'not reported'
  })
}

const noted = job<undefined, unknown>('noted', async () => 'ran')

/** Options of a mill. */
export const millRows: readonly OptionRow[] = [
  {
    option: 'concurrency',
    levels: ['configure', 'mill'],
    otherwise: 10,
    values: [
      { given: 3, seen: 3 },
      { given: 5, seen: 5 },
    ],
    see: (placed) => together(placed, 'all'),
  },
  {
    option: 'queues',
    levels: ['configure', 'mill'],
    values: [
      { given: { mail: 1 }, seen: 1 },
      { given: { mail: { concurrency: 2 } }, seen: 2 },
    ],
    see: (placed) => together(placed, 'mail'),
  },
  {
    option: 'slowAfter',
    levels: ['job', 'category', 'configure', 'mill'],
    otherwise: 'not reported',
    values: [
      { given: '20ms', seen: 'reported' },
      { given: '10m', seen: 'not reported' },
    ],
    see: slowLines,
  },
  {
    option: 'poll',
    levels: ['configure', 'mill'],
    values: [
      { given: '20ms', seen: 'ready' },
      { given: '10m', seen: 'scheduled' },
    ],
    see: (placed) => deadWorkersJob.afterClockStep(placed),
  },
  {
    option: 'crashBudget',
    levels: ['configure', 'mill'],
    values: [
      { given: 1, seen: 'parked' },
      { given: 2, seen: 'runs again' },
    ],
    see: (placed) => deadWorkersJob.afterCrash(placed),
  },
  {
    option: 'lease',
    levels: ['mill'],
    values: [
      { given: '500ms', seen: 'done' },
      { given: '10m', seen: 'running' },
    ],
    see: (placed) =>
      deadWorkersJob.afterLease(placed, (placed.mill as MillOptions).lease === '500ms' ? 'done' : 'running'),
  },
  {
    option: 'jobs',
    levels: ['mill'],
    otherwise: 'ready',
    values: [
      { given: [noted], seen: 'done' },
      { given: { noted }, seen: 'done' },
    ],
    see: (placed) =>
      withMill(placed, {}, async (mill) => {
        const handle = await mill.enqueue(noted)
        if (mill.has('noted')) await handle.result({ timeout: '20s' })
        return (await handle.get())?.state
      }),
  },
  {
    option: 'unknown',
    levels: ['mill'],
    values: [
      { given: () => 'a', seen: 'a' },
      { given: () => 'b', seen: 'b' },
    ],
    see: (placed) =>
      withMill(placed, {}, async (mill) => (await mill.enqueue(noted)).result({ timeout: '20s' }) as Promise<unknown>),
  },
  {
    option: 'redact',
    levels: ['mill'],
    otherwise: 'talks: charging card=4111 4111 token=t',
    values: [
      { given: ['card'], seen: 'talks: charging card=‹redacted› ‹redacted› token=t' },
      { given: [/^tok/], seen: 'talks: charging card=4111 4111 token=‹redacted›' },
    ],
    see: async (placed) => {
      const lines: string[] = []
      const info = (fields: { readonly card?: string | number }, line: string): void =>
        void (fields.card === undefined || lines.push(line.replace('token', `${fields.card} token`)))
      const talks = job('talks', (_: undefined, ctx) => ctx.log({ card: 4111 }, 'charging card=4111 token=t'))
      return withMill(placed, { jobs: [talks], logger: { ...silent, info } }, async (mill) => {
        await (await mill.enqueue(talks)).result({ timeout: '20s' })
        return lines.join()
      })
    },
  },
  {
    option: 'hooks',
    levels: ['mill'],
    otherwise: 'ready',
    values: [
      { given: { enqueue: (_: unknown, next: (change: object) => unknown) => next({ in: '1h' }) }, seen: 'scheduled' },
      { given: [], seen: 'ready' },
    ],
    see: (placed) => withMill(placed, {}, async (mill) => (await (await mill.enqueue(noted)).get())?.state),
  },
  {
    option: 'capture',
    levels: ['mill'],
    otherwise: {},
    values: [
      { given: { tenant: stored('acme') }, seen: { tenant: 'acme' } },
      { given: false, seen: {} },
    ],
    see: (placed) => withMill(placed, {}, async (mill) => (await (await mill.enqueue(noted)).get())?.captured),
  },
  {
    option: 'logger',
    levels: ['mill'],
    values: [
      { given: { ...silent, info: (_: object, line: string) => void logged.push(line) }, seen: true },
      { given: false, seen: false },
    ],
    see: async (placed) => {
      logged.length = 0
      await withMill(placed, { jobs: [noted] }, async (mill) => (await mill.enqueue(noted)).result({ timeout: '20s' }))
      return logged.some((line) => line.startsWith('done noted'))
    },
  },
  {
    option: 'changeLog',
    levels: ['mill'],
    otherwise: 'refused',
    values: [
      { given: false, seen: 'refused' },
      { given: true, seen: 'read' },
    ],
    see: (placed) =>
      withMill(placed, { jobs: [] }, async (mill) => {
        try {
          await mill.changes('mirror').return()
          return 'read'
        } catch {
          return 'refused'
        }
      }),
  },
  {
    option: 'dashboard',
    levels: ['mill'],
    otherwise: 'no link',
    values: [
      { given: { port: 0 }, seen: 'a link' },
      { given: false, seen: 'no link' },
    ],
    see: async (placed) => {
      const printed = vi.spyOn(process.stderr, 'write').mockReturnValue(true)
      try {
        await withMill(placed, { jobs: [noted] }, async () => undefined)
        return printed.mock.calls.some(([line]) => String(line).startsWith('dashboard: http')) ? 'a link' : 'no link'
      } finally {
        printed.mockRestore()
      }
    },
  },
  {
    option: 'autoMigrate',
    levels: ['mill'],
    otherwise: 'opened',
    values: [
      { given: false, seen: 'refused' },
      { given: true, seen: 'opened' },
    ],
    see: (placed) =>
      deadWorkersJob.withoutTables(placed).then(
        () => 'opened',
        () => 'refused',
      ),
  },
]

const logged: string[] = []

/** A store of the app that always has this value. */
function stored(value: string): AsyncLocalStorage<string> {
  const storage = new AsyncLocalStorage<string>()
  storage.getStore = () => value
  return storage
}
