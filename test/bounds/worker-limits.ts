import { expect, vi } from 'vitest'
import { job } from '../../src/index.js'
import type { EnqueueOptions, Handle } from '../../src/index.js'
import type { TestKit } from '../../src/testing/index.js'
import type { Bench, Bound } from './bound.js'
import { noop, payloads, refusedAbove, text } from './bound.js'
import { openStore } from './stores.js'

/** Handlers that all wait for each other: they end only if so many run at the same time. */
async function runTogether(bench: Bench, size: number, queueOf: (n: number) => string): Promise<void> {
  const state = (bench.notes[0] ??= { expected: 0, begun: 0, release: [] }) as {
    expected: number
    begun: number
    release: (() => void)[]
  }
  const together = job<unknown, unknown>('together', async () => {
    state.begun += 1
    if (state.begun === state.expected) for (const release of state.release.splice(0)) release()
    else await new Promise<void>((resolve) => state.release.push(resolve))
  })
  const mill = await bench.mill({ jobs: [together], concurrency: 600, poll: '10m' })
  Object.assign(state, { expected: size, begun: 0 })
  const handles = await mill.enqueueMany(together, payloads(size), (_, n) => ({ queue: queueOf(n) }))
  await Promise.all(handles.map((handle) => handle.result({ timeout: '30s' })))
  expect(state.begun).toBe(size)
}

const isolatedJob = (memoryMb: number): unknown =>
  job('isolated', { executor: 'process', module: import.meta.url, memoryMb })

/** So many jobs that wait as suspects, and how many of them each claim takes until none is left. */
async function quarantines(bench: Bench, size: number): Promise<readonly number[]> {
  const store = await openStore(bench)
  const dead = await store.worker()
  await store.insert(Array.from({ length: size }, () => store.job()))
  await store.claim(dead, { max: size })
  const crashed = (await store.store.leases.readLeases(dead)).map((each) =>
    store.settled(each, { to: 'ready', attempt: 0, streak: 2 }),
  )
  await store.store.leases.rescueJobs(dead, 0, crashed)
  const worker = await store.worker()
  const taken: number[] = []
  for (let left = size; left > 0; left -= taken.at(-1) as number) {
    const claimed = await store.claim(worker, { suspects: 'first', max: size })
    taken.push(claimed.jobs.length)
    await store.store.leases.settleJobs(
      claimed.jobs.map((each) => store.settled(each)),
      [],
    )
    if (claimed.jobs.length === 0) break
  }
  return taken
}

const sum = (numbers: readonly number[]): number => numbers.reduce((all, each) => all + each, 0)

/** A handler that ignores its abort, and the time from its start to now. */
const deaf = job('deaf', {
  run: () => new Promise<void>(() => undefined),
  retry: { limit: 0 },
  timeout: '1m',
})

const fails = job<undefined, unknown>('fails', async () => {
  throw new Error('no')
})

/** A job that has failed once, with these options for its retry. */
async function failOnce(kit: TestKit, retry: NonNullable<EnqueueOptions['retry']>): Promise<Handle<unknown>> {
  const handle = await kit.mill.enqueue(fails, undefined, { retry })
  await kit.consume().catch(() => undefined)
  return handle
}

/** Limits of claims and attempts. */
export const workerLimits: readonly Bound[] = [
  {
    of: 'src/worker/claim.ts#BATCH_MAX',
    at: 500,
    on: 'both',
    isLong: 'postgres',
    holds: (size, bench) => runTogether(bench, size, () => 'one'),
  },
  {
    of: 'src/store/postgres/verbs/claim.ts#FILLED_AT_ONCE',
    at: 500,
    on: 'postgres',
    isLong: true,
    holds: (size, bench) => runTogether(bench, size, (n) => `queue ${n}`),
  },
  {
    of: 'src/store/postgres/verbs/claim.ts#MANY_LANES',
    at: 32,
    on: 'postgres',
    holds: (size, bench) => runTogether(bench, size, (n) => `queue ${n}`),
  },
  {
    of: 'src/store/sqlite/verbs/claim.ts#FILLED_AT_ONCE',
    at: 64,
    on: 'sqlite',
    holds: (size, bench) => runTogether(bench, size, (n) => `queue ${n}`),
  },
  {
    of: 'src/store/sqlite/verbs/claim.ts#FEW_LANES',
    at: 8,
    on: 'sqlite',
    holds: (size, bench) => runTogether(bench, size, (n) => `queue ${n}`),
  },
  {
    of: 'src/store/postgres/verbs/claim.ts#LARGE',
    at: 1_024,
    on: 'postgres',
    holds: async (size, bench) => {
      const echo = job('echo', async (payload: string) => payload)
      const kit = await bench.kit({ jobs: [echo] })
      // The average of one claim decides how the next one gets its payloads.
      for (let round = 0; round < 3; round += 1) {
        await kit.mill.enqueue(echo, text(size - 2))
        expect(await kit.consume()).toBe(text(size - 2))
      }
    },
  },
  {
    of: 'src/job/rules/quarantine.ts#ONE_BY_ONE_MAX',
    at: 8,
    on: 'both',
    also: ['src/job/rules/quarantine.ts#SUSPECT_STREAK'],
    holds: async (size, bench) => {
      const taken = await quarantines(bench, size)
      expect(taken[0]).toBe(size <= 8 ? 1 : 5)
      expect(sum(taken)).toBe(size)
    },
  },
  {
    of: 'src/store/sqlite/verbs/claim.ts#SUSPECTS_MAX',
    at: 1_000,
    on: 'sqlite',
    isLong: true,
    holds: async (size, bench) => expect(sum(await quarantines(bench, size))).toBe(size),
  },
  {
    of: 'src/store/postgres/verbs/claim.ts#SUSPECTS_MAX',
    at: 1_000,
    on: 'postgres',
    isLong: true,
    holds: async (size, bench) => expect(sum(await quarantines(bench, size))).toBe(size),
  },
  {
    of: 'src/worker/attempt/run.ts#RESULT_MAX_BYTES',
    at: 1024 * 1024,
    on: 'both',
    isLong: 'postgres',
    holds: async (size, bench) => {
      const large = job('large', async (length: number) => text(length))
      const kit = await bench.kit({ jobs: [large] })
      // A text is written in quotes.
      const handle = await kit.mill.enqueue(large, size - 2)
      await kit.consume()
      const record = await handle.get()
      expect(record).toMatchObject({ state: 'done' })
      expect(record?.result === text(size - 2)).toBe(size <= 1024 * 1024)
      expect(record?.reason === undefined).toBe(size <= 1024 * 1024)
    },
  },
  {
    of: 'src/worker/attempt/running.ts#LOG_LINES_MAX',
    at: 100,
    on: 'both',
    holds: async (size, bench) => {
      const logs = job('logs', async (lines: number, ctx) => {
        for (let n = 0; n < lines; n += 1) ctx.log(`line ${n}`)
      })
      const kit = await bench.kit({ jobs: [logs] })
      const handle = await kit.mill.enqueue(logs, size)
      await kit.consume()
      const log = (await handle.get())?.attempts[0]?.log ?? []
      const kept = Array.from({ length: Math.min(size, 100) }, (_, n) => `line ${n}`)
      expect(log.slice(0, 100)).toEqual(kept)
      expect(log.slice(100)).toEqual(size > 100 ? ['… more lines were logged than the 100 that are kept'] : [])
    },
  },
  {
    of: 'src/worker/attempt/running.ts#REPORTED_LINES',
    at: 20,
    on: 'both',
    holds: async (size, bench) => {
      const tells = job('tells', async (lines: number, ctx) => {
        for (let n = 0; n < lines; n += 1) ctx.log(`line ${n}`)
        await new Promise<void>((resolve) => bench.notes.push(resolve))
      })
      const mill = await bench.mill({ jobs: [tells] })
      const sequence = await mill.sequence(tells, [size])
      const last = Array.from({ length: Math.min(size, 20) }, (_, n) => `line ${n + Math.max(0, size - 20)}`)
      await vi.waitFor(async () => expect((await sequence.progress()).item?.log).toEqual(last), { timeout: 20_000 })
      ;(bench.notes.pop() as () => void)()
      await sequence.result({ timeout: '20s' })
    },
  },
  {
    of: 'src/worker/attempt/running.ts#LOG_LINE_MAX',
    at: 2_000,
    on: 'both',
    holds: async (size, bench) => {
      const logs = job('logs', async (length: number, ctx) => ctx.log(text(length)))
      const kit = await bench.kit({ jobs: [logs] })
      const handle = await kit.mill.enqueue(logs, size)
      await kit.consume()
      expect((await handle.get())?.attempts[0]?.log).toEqual([text(Math.min(size, 2_000))])
    },
  },
  {
    of: 'src/worker/in-flight/overdue.ts#ABORT_GRACE_MS',
    at: 30_000,
    on: 'both',
    holds: async (size, bench) => {
      const kit = await bench.kit({ jobs: [deaf] })
      const queue = `of ${size}`
      const handle = await kit.mill.enqueue(deaf, undefined, { queue })
      // The handler never returns, so this promise rejects only when the attempt is settled without it, or never.
      void kit.consume(queue).catch(() => undefined)
      await expect.poll(async () => (await handle.get())?.state).toBe('running')
      await kit.advance(60_000)
      await kit.advance(size)
      const state = async (): Promise<unknown> => (await handle.get())?.state
      if (size < 30_000) expect(await state()).toBe('running')
      else await expect.poll(state).toBe('failed')
    },
  },
  {
    of: 'src/job/rules/retry.ts#BACKOFF_START_MS',
    at: 1_000,
    on: 'both',
    holds: async (size, bench) => {
      const kit = await bench.kit({ jobs: [fails] })
      const handle = await failOnce(kit, { jitter: 0 })
      await kit.advance(size)
      expect((await handle.get())?.state).toBe(size < 1_000 ? 'retrying' : 'ready')
      await handle.cancel()
    },
  },
  {
    of: 'src/job/rules/retry.ts#BACKOFF_MAX_MS',
    at: 3_600_000,
    on: 'both',
    holds: async (size, bench) => {
      const kit = await bench.kit({ jobs: [fails] })
      const handle = await failOnce(kit, { jitter: 0, backoff: { start: size } })
      expect((await handle.get())?.dueAt.getTime()).toBe(kit.now.getTime() + Math.min(size, 3_600_000))
      await handle.cancel()
    },
  },
  {
    of: 'src/store/rows/ordering.ts#PRIORITY_STEP_MS',
    at: 600_000,
    on: 'both',
    holds: async (size, bench) => {
      const ran = job('ran', async (which: string) => which)
      const kit = await bench.kit({ jobs: [ran] })
      // A point of priority counts as much as ten minutes of waiting; of equals the first enqueued runs first.
      await kit.mill.enqueue(ran, 'first')
      await kit.advance(size)
      await kit.mill.enqueue(ran, 'later', { priority: 1 })
      expect(await kit.consume()).toBe(size < 600_000 ? 'later' : 'first')
      await kit.consume()
    },
  },
  {
    of: 'src/mill/unregistered.ts#NAMES_MAX',
    at: 1_000,
    on: 'none',
    isLong: true,
    holds: async (size, bench) => {
      const warned = (bench.notes[0] ??= []) as string[]
      const nothing = (): void => undefined
      const warn = (_: object, line: string): void => void (line.includes('unknown') && warned.push(line))
      const kit = await bench.kit({ jobs: [noop], logger: { debug: nothing, info: nothing, warn, error: nothing } })
      await bench.grow(size, async (missing) => {
        const names = Array.from({ length: missing }, (_, i) => `unknown ${size - missing + i}`)
        await Promise.all(names.map((name) => kit.mill.enqueue(job(name, async () => undefined))))
      })
      expect(warned).toHaveLength(Math.min(size, 1_000))
    },
  },
  {
    of: 'src/mill/check-hooks-and-context.ts#HOOKS_MAX',
    at: 16,
    on: 'none',
    holds: async (size, bench) => {
      const called: number[] = []
      const hooks = Array.from({ length: size }, (_, n) => ({
        settle: async (): Promise<void> => void called.push(n),
      }))
      const refusal = { code: 'E_INVALID_OPTIONS', text: /must be at most 16 objects of hooks, got 17/ }
      const kit = await refusedAbove(size, 16, () => bench.another({ jobs: [noop], hooks }), refusal)
      if (kit === undefined) return
      await kit.mill.enqueue(noop, {})
      await kit.consume()
      expect(called).toHaveLength(size)
    },
  },
  {
    of: 'src/mill/check-hooks-and-context.ts#CAPTURES_MAX',
    at: 16,
    on: 'none',
    holds: async (size, bench) => {
      const stores = Array.from({ length: size }, (_, n) => [
        `store ${n}`,
        { getStore: () => n, run: (_: never, call: () => unknown) => call() },
      ])
      const refusal = { code: 'E_INVALID_OPTIONS', text: /must be at most 16 stores, got 17/ }
      const open = () => bench.another({ jobs: [noop], capture: Object.fromEntries(stores) as never })
      const kit = await refusedAbove(size, 16, open, refusal)
      if (kit === undefined) return
      const handle = await kit.mill.enqueue(noop, {})
      expect(Object.keys((await handle.get())?.captured ?? {})).toHaveLength(size)
    },
  },
  {
    of: 'src/mill/options.ts#CONCURRENCY_MAX',
    at: 100_000,
    on: 'none',
    holds: async (size, bench) => {
      const refusal = { code: 'E_INVALID_OPTIONS', text: /must be a whole number from 1 to 100000, got 100001/ }
      await refusedAbove(size, 100_000, () => bench.another({ concurrency: size }), refusal)
      await refusedAbove(size, 100_000, () => bench.another({ queues: { mail: size } }), refusal)
      const { mill } = await bench.kit()
      await refusedAbove(size, 100_000, () => mill.configure({ concurrency: size }), refusal)
    },
  },
  {
    of: 'src/job/definition/isolation.ts#MEMORY_MAX_MB',
    at: 1_048_576,
    on: 'none',
    holds: (size) =>
      refusedAbove(size, 1_048_576, () => isolatedJob(size), {
        code: 'E_INVALID_OPTIONS',
        text: /must be a whole number from 16 to 1048576, got 1048577/,
      }),
  },
  {
    of: 'src/job/definition/isolation.ts#MEMORY_MIN_MB',
    at: 16,
    on: 'none',
    holds: (size) =>
      refusedAbove(-size, -16, () => isolatedJob(size), {
        code: 'E_INVALID_OPTIONS',
        text: /must be a whole number from 16 to 1048576, got 15/,
      }),
  },
  {
    of: 'src/mill/options.ts#CRASH_BUDGET_MAX',
    at: 1_000,
    on: 'none',
    holds: (size, bench) =>
      refusedAbove(size, 1_000, () => bench.another({ crashBudget: size }), {
        code: 'E_INVALID_OPTIONS',
        text: /must be a whole number from 1 to 1000, got 1001/,
      }),
  },
  ...(['poll', 'lease', 'slowAfter'] as const).map((option): Bound => ({
    ...{
      poll: { of: 'src/mill/options.ts#POLL_MIN_MS', at: 10 },
      lease: { of: 'src/mill/options.ts#LEASE_MIN_MS', at: 500 },
      slowAfter: { of: 'src/job/definition/check-values.ts#SLOW_AFTER_MIN_MS', at: 10 },
    }[option],
    on: 'none',
    holds: (size, bench) => {
      const least = option === 'lease' ? 500 : 10
      const refusal = { code: 'E_INVALID_OPTIONS', text: new RegExp(`${option} must be ${least} ms or more`) }
      return refusedAbove(-size, -least, () => bench.another({ [option]: size }), refusal)
    },
  })),
]
