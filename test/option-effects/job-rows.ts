import { job } from '../../src/index.js'
import type { Codec, State } from '../../src/index.js'
import { withSubject } from './row.js'
import type { Level, OptionRow, Placed } from './row.js'

const DEFINED: readonly Level[] = ['job', 'category']
const SHARED: readonly Level[] = ['enqueue', ...DEFINED]
const EDITED: readonly Level[] = ['edit', ...SHARED]
const OF_ALL: readonly Level[] = [...EDITED, 'mill']

const nothing = (): undefined => undefined
const fail = (): never => {
  throw new Error('no')
}

/** Runs a job that always fails until it is not retried any more; returns its retries. */
const retries = (placed: Placed): Promise<unknown> =>
  withSubject(placed, fail, async (subject) => {
    const handle = await subject.enqueue()
    for (let left = 30; left > 0; left -= 1) {
      const { queue = 'default', state } = (await handle.get()) ?? {}
      if (state === 'failed') break
      await subject.run(queue)
      await subject.kit.advance('2h')
    }
    const record = await handle.get()
    return record?.state === 'failed' ? record.attempt - 1 : record?.state
  })

/** How long the first retry of a failed job waits, in ms. */
const firstWait = (placed: Placed): Promise<number> =>
  withSubject(placed, fail, async (subject) => {
    const handle = await subject.enqueue()
    await subject.run()
    return ((await handle.get())?.dueAt.getTime() ?? 0) - subject.kit.now.getTime()
  })

/** When the signal of a handler that waits is aborted, in ms after its start. */
const abortedAfter = async (placed: Placed): Promise<number> => {
  const state = { begunAt: 0, now: () => 0, tookMs: -1 }
  const run = async (_: never, ctx: { readonly signal: AbortSignal }): Promise<void> => {
    state.begunAt = state.now()
    await new Promise<void>((resolve) => ctx.signal.addEventListener('abort', () => resolve()))
    state.tookMs = state.now() - state.begunAt
  }
  return withSubject(placed, run as never, async (subject) => {
    state.now = () => subject.kit.now.getTime()
    await subject.enqueue()
    const running = subject.run()
    while (state.begunAt === 0) await new Promise((next) => setImmediate(next))
    await subject.kit.advance('1h')
    await running
    return state.tookMs
  })
}

/** The state of a job whose parent was cancelled. */
const afterCancelledParent = (placed: Placed): Promise<State | undefined> =>
  withSubject(
    placed,
    nothing,
    async (subject) => {
      const parent = await subject.mill.enqueue(other, undefined, { in: '1h' })
      const { edit, ...rest } = placed
      // An edit that names a policy names the parents that it is for.
      const handle = await withoutEdit(subject, rest, edit === undefined ? { after: [parent] } : {})
      if (edit !== undefined) await subject.mill.edit(handle.id, { ...edit, after: [parent] })
      await parent.cancel()
      await subject.kit.advance(0)
      return (await handle.get())?.state
    },
    [other as never],
  )

const withoutEdit = (subject: Parameters<Parameters<typeof withSubject>[2]>[0], placed: Placed, options: object) =>
  subject.mill.enqueue(subject.job, {}, { ...options, ...placed.enqueue })

const other = job<undefined, unknown>('other', async () => undefined)
const rival = job<undefined, unknown>('rival', async () => undefined)

/** A codec that marks what it has written and read. */
const marked = (mark: string): Codec => ({
  encode: (value) => JSON.stringify([mark, value]),
  decode: (text) => {
    const [by, value] = JSON.parse(text as string) as [string, unknown]
    return `${by} ${JSON.stringify(value)}`
  },
})

const kept = (end: 'done' | 'failed' | 'cancelled') => (placed: Placed) =>
  withSubject(placed, end === 'failed' ? fail : nothing, async (subject) => {
    const handle = await subject.enqueue({}, { retry: { limit: 0 } })
    if (end === 'cancelled') await handle.cancel()
    else await subject.run()
    return (await handle.get())?.state ?? 'gone'
  })

/** What a second enqueue of the same payload gets. */
const secondEnqueue = (placed: Placed, change: { readonly endFirst?: boolean; readonly other?: object } = {}) =>
  withSubject(placed, nothing, async (subject) => {
    const first = await subject.enqueue({ user: 1, at: 1 })
    if (change.endFirst === true) await subject.run()
    const second = await subject
      .enqueue({ user: 1, at: 1, ...change.other })
      .then(({ isNew }) => (isNew ? 'new' : 'the first'))
      .catch((error: { code: string }) => error.code)
    return `${second}, the first is ${(await first.get())?.state}`
  })

/** Options of a job, which categories and the mill may set for all jobs, and one enqueue or an edit for one. */
export const jobRows: readonly OptionRow[] = [
  {
    option: 'queue',
    levels: EDITED,
    isStored: true,
    otherwise: 'default',
    values: [
      { given: 'mail', seen: 'mail' },
      { given: 'sms', seen: 'sms' },
    ],
    see: (placed) =>
      withSubject(placed, nothing, async (subject) => {
        const handle = await subject.enqueue()
        for (const queue of ['default', 'mail', 'sms']) {
          await subject.run(queue)
          if ((await handle.get())?.state === 'done') return queue
        }
        return undefined
      }),
  },
  {
    option: 'priority',
    levels: EDITED,
    isStored: true,
    otherwise: 'after the rival',
    values: [
      { given: 2, seen: 'before the rival' },
      { given: -2, seen: 'after the rival' },
    ],
    see: (placed) =>
      withSubject(
        placed,
        nothing,
        async (subject) => {
          const first = await subject.mill.enqueue(rival)
          await subject.enqueue()
          await subject.run()
          return (await first.get())?.state === 'done' ? 'after the rival' : 'before the rival'
        },
        [rival as never],
      ),
  },
  {
    option: 'retry.limit',
    levels: OF_ALL,
    isStored: true,
    otherwise: 25,
    values: [
      { given: 1, seen: 1 },
      { given: 3, seen: 3 },
    ],
    see: retries,
  },
  {
    option: 'retry.backoff',
    levels: OF_ALL,
    isStored: true,
    values: [
      { given: { start: 5_000 }, seen: 5_000 },
      { given: { start: 7_000 }, seen: 7_000 },
    ],
    otherwise: 1_000,
    // The jitter of the default adds up to a fifth.
    see: async (placed) => {
      const wait = await firstWait(placed)
      return [1_000, 5_000, 7_000].findLast((base) => wait >= base)
    },
  },
  {
    option: 'retry.jitter',
    levels: OF_ALL,
    isStored: true,
    otherwise: 'some jitter',
    values: [
      { given: 0, seen: 'no jitter' },
      { given: 1, seen: 'some jitter' },
    ],
    see: async (placed) => ((await firstWait(placed)) === 1_000 ? 'no jitter' : 'some jitter'),
  },
  {
    option: 'retry.when',
    levels: ['job', 'category', 'mill'],
    otherwise: 'retrying',
    values: [
      { given: () => false, seen: 'failed' },
      { given: () => true, seen: 'retrying' },
    ],
    see: (placed) =>
      withSubject(placed, fail, async (subject) => {
        const handle = await subject.enqueue()
        await subject.run()
        return (await handle.get())?.state
      }),
  },
  {
    option: 'timeout',
    levels: OF_ALL,
    isStored: true,
    otherwise: 1_800_000,
    values: [
      { given: '1m', seen: 60_000 },
      { given: '2m', seen: 120_000 },
    ],
    see: abortedAfter,
  },
  ...(['done', 'failed', 'cancelled'] as const).map((end): OptionRow => ({
    option: `keep.${end}`,
    levels: ['job', 'category', 'mill'],
    otherwise: end,
    values: [
      { given: 0, seen: 'gone' },
      { given: Infinity, seen: end },
    ],
    see: kept(end),
  })),
  {
    option: 'keep',
    levels: ['job', 'category', 'mill'],
    otherwise: 'done',
    values: [
      { given: 'none', seen: 'gone' },
      { given: '1h', seen: 'done' },
    ],
    see: kept('done'),
  },
  {
    option: 'treatAsDone',
    levels: DEFINED,
    otherwise: 'failed',
    values: [
      { given: () => true, seen: 'done' },
      { given: () => false, seen: 'failed' },
    ],
    see: kept('failed'),
  },
  {
    option: 'labels',
    levels: ['edit', 'enqueue'],
    isStored: true,
    otherwise: 'none',
    values: [
      { given: ['red'], seen: 'red' },
      { given: ['blue'], seen: 'blue' },
    ],
    see: (placed) => foundByLabel(placed),
  },
  {
    // The labels of an enqueue are added to those of the definition, so these two levels are compared with each other alone.
    option: 'labels',
    levels: DEFINED,
    otherwise: 'none',
    values: [
      { given: ['red'], seen: 'red' },
      { given: ['blue'], seen: 'blue' },
    ],
    see: (placed) => foundByLabel(placed),
  },
  {
    option: 'codec',
    levels: ['job', 'category', 'mill'],
    isStored: true,
    otherwise: { n: 1 },
    values: [
      { given: marked('a'), seen: 'a {"n":1}' },
      { given: marked('b'), seen: 'b {"n":1}' },
    ],
    see: async (placed) => {
      const got: { payload?: unknown } = {}
      return withSubject(placed, ((payload: unknown) => void (got.payload = payload)) as never, async (subject) => {
        await subject.enqueue({ n: 1 })
        await subject.run()
        return got.payload
      })
    },
  },
  {
    option: 'run',
    levels: DEFINED,
    values: [
      { given: () => 'a', seen: 'a' },
      { given: () => 'b', seen: 'b' },
    ],
    see: (placed) =>
      withSubject(placed, undefined, async (subject) => {
        await subject.enqueue()
        return subject.kit.consume()
      }),
  },
  {
    option: 'description',
    levels: ['job'],
    values: [
      { given: 'Sends mail', seen: 'Sends mail' },
      { given: 'Sends sms', seen: 'Sends sms' },
    ],
    see: (placed) =>
      withSubject(placed, nothing, async ({ mill }) => mill.jobs().find(({ name }) => name === 'subject')?.description),
  },
  {
    option: 'title',
    levels: ['edit', 'enqueue', 'job'],
    isStored: true,
    values: [
      { given: 'For {to}', seen: 'For Ada' },
      { given: 'To {to}', seen: 'To Ada' },
    ],
    see: (placed) =>
      withSubject(placed, nothing, async (subject) => {
        const handle = await subject.enqueue({ to: 'Ada' })
        return (await handle.get())?.title
      }),
  },
  {
    option: 'accepts',
    levels: ['job'],
    otherwise: 'accepted',
    values: [
      { given: () => false, seen: 'E_INVALID_PAYLOAD' },
      { given: () => true, seen: 'accepted' },
    ],
    see: (placed) => accepted(placed),
  },
  {
    option: 'input',
    levels: ['job'],
    otherwise: 'accepted',
    values: [
      { given: schema({ issues: [{ message: 'no' }] }), seen: 'E_INVALID_PAYLOAD' },
      { given: schema({ value: 1 }), seen: 'accepted' },
    ],
    see: (placed) => accepted(placed),
  },
  {
    option: 'unique.onDuplicate',
    levels: SHARED,
    isStored: true,
    otherwise: 'new, the first is ready',
    values: [
      { given: 'reject', seen: 'E_DUPLICATE_JOB, the first is ready' },
      { given: 'replace', seen: 'new, the first is cancelled' },
    ],
    see: (placed) => secondEnqueue(placed),
  },
  {
    option: 'unique.by',
    levels: SHARED,
    isStored: true,
    values: [
      { given: 'user', seen: 'the first, the first is ready' },
      { given: 'at', seen: 'new, the first is ready' },
    ],
    see: (placed) => secondEnqueue(placed, { other: { at: 2 } }),
  },
  {
    option: 'unique.for',
    levels: SHARED,
    isStored: true,
    values: [
      { given: '1h', seen: 'the first, the first is done' },
      { given: 1, seen: 'new, the first is done' },
    ],
    see: (placed) =>
      withSubject(placed, nothing, async (subject) => {
        const first = await subject.enqueue()
        await subject.run()
        await subject.kit.advance('1m')
        const { isNew } = await subject.enqueue()
        return `${isNew ? 'new' : 'the first'}, the first is ${(await first.get())?.state}`
      }),
  },
  {
    option: 'unique.while',
    levels: SHARED,
    isStored: true,
    values: [
      { given: 'waiting', seen: 'new' },
      { given: 'unfinished', seen: 'the first' },
    ],
    see: async (placed) => {
      const state: { enqueue?: () => Promise<{ isNew: boolean }>; seen?: string } = {}
      const run = async (): Promise<void> => {
        const again = state.enqueue
        state.enqueue = undefined as never
        if (again !== undefined) state.seen = (await again()).isNew ? 'new' : 'the first'
      }
      return withSubject(placed, run, async (subject) => {
        await subject.enqueue()
        // Inside the handler of the first job, which is running then.
        state.enqueue = () => subject.enqueue()
        await subject.run()
        return state.seen
      })
    },
  },
  {
    option: 'unique',
    levels: SHARED,
    isStored: true,
    otherwise: 'new, the first is ready',
    values: [
      { given: false, seen: 'new, the first is ready' },
      { given: {}, seen: 'the first, the first is ready' },
    ],
    see: (placed) => secondEnqueue(placed),
  },
  {
    option: 'onParentFailure',
    levels: ['enqueue', 'job', 'category'],
    isStored: true,
    otherwise: 'blocked',
    values: [
      { given: 'cancel', seen: 'cancelled' },
      { given: 'run', seen: 'ready' },
    ],
    see: afterCancelledParent,
  },
  {
    option: 'onParentFailure',
    levels: ['edit', 'job', 'category'],
    isStored: true,
    otherwise: 'blocked',
    values: [
      { given: 'cancel', seen: 'cancelled' },
      { given: 'run', seen: 'ready' },
    ],
    see: afterCancelledParent,
  },
]

async function foundByLabel(placed: Placed): Promise<string> {
  return withSubject(placed, nothing, async (subject) => {
    await subject.enqueue()
    const found: string[] = []
    for (const label of ['red', 'blue']) for await (const _ of subject.mill.find({ label })) found.push(label)
    return found.join(' and ') || 'none'
  })
}

async function accepted(placed: Placed): Promise<string> {
  return withSubject(placed, nothing, (subject) =>
    subject.enqueue().then(
      () => 'accepted',
      (error: { code: string }) => error.code,
    ),
  )
}

function schema(result: object): object {
  return { '~standard': { version: 1, vendor: 'test', validate: () => result } }
}
