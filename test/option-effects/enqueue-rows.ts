import type { Handle } from '../../src/index.js'
import { job } from '../../src/index.js'
import { withSubject } from './row.js'
import type { OptionRow, Placed, Subject } from './row.js'

const nothing = (): undefined => undefined
const parent = job<undefined, unknown>('parent', async () => undefined)

/** When a job that is enqueued at noon is due, in ms after noon. */
const dueAfter = (placed: Placed): Promise<number> =>
  withSubject(placed, nothing, async (subject) => {
    const handle = await subject.enqueue()
    const record = await handle.get()
    const waits = (record?.dueAt.getTime() ?? 0) - subject.kit.now.getTime()
    // It runs at that time, and not before.
    if (waits > 0) {
      await subject.kit.advance(waits - 1)
      if ((await handle.get())?.state !== 'scheduled') return -1
      await subject.kit.advance(1)
    }
    return (await handle.get())?.state === 'ready' ? waits : -1
  })

async function second(subject: Subject): Promise<[Handle<unknown>, string]> {
  const first = await subject.enqueue()
  const answer = await subject.enqueue().then(
    ({ isNew }) => (isNew ? 'new' : 'the first'),
    (error: { code: string }) => error.code,
  )
  return [first, answer]
}

/** Options of one enqueue alone. */
export const enqueueRows: readonly OptionRow[] = [
  {
    option: 'in',
    levels: ['edit', 'enqueue'],
    isStored: true,
    otherwise: 0,
    values: [
      { given: '1m', seen: 60_000 },
      { given: 5_000, seen: 5_000 },
    ],
    see: dueAfter,
  },
  {
    option: 'at',
    levels: ['edit', 'enqueue'],
    isStored: true,
    otherwise: 0,
    values: [
      { given: '2030-01-01T12:01:00Z', seen: 60_000 },
      { given: new Date(Date.UTC(2030, 0, 1, 12, 2)), seen: 120_000 },
    ],
    see: dueAfter,
  },
  {
    option: 'expires',
    levels: ['enqueue'],
    isStored: true,
    otherwise: 'ready',
    values: [
      { given: '1m', seen: 'cancelled' },
      { given: '2h', seen: 'ready' },
    ],
    see: (placed) =>
      withSubject(placed, nothing, async (subject) => {
        const handle = await subject.enqueue()
        await subject.kit.advance('1h')
        return (await handle.get())?.state
      }),
  },
  {
    option: 'key',
    levels: ['enqueue'],
    isStored: true,
    otherwise: 'new',
    values: [
      { given: 'a', seen: 'the first' },
      { given: 'b', seen: 'the first' },
    ],
    see: (placed) => withSubject(placed, nothing, async (subject) => (await second(subject))[1]),
  },
  {
    option: 'onDuplicate',
    levels: ['enqueue'],
    isStored: true,
    values: [
      { given: 'reject', seen: 'E_DUPLICATE_KEY, the first is ready' },
      { given: 'replace', seen: 'new, the first is cancelled' },
    ],
    see: (placed) =>
      withSubject({ ...placed, enqueue: { key: 'a', ...placed.enqueue } }, nothing, async (subject) => {
        const [first, answer] = await second(subject)
        return `${answer}, the first is ${(await first.get())?.state}`
      }),
  },
  {
    option: 'meta',
    levels: ['edit', 'enqueue'],
    isStored: true,
    values: [
      { given: { by: 'Ada' }, seen: { by: 'Ada' } },
      { given: new Date(0), seen: new Date(0) },
    ],
    see: (placed) => withSubject(placed, nothing, async (subject) => (await (await subject.enqueue()).get())?.meta),
  },
  {
    option: 'group',
    levels: ['enqueue'],
    isStored: true,
    otherwise: [0, 0],
    values: [
      { given: 'a', seen: [1, 0] },
      { given: 'b', seen: [0, 1] },
    ],
    see: (placed) =>
      withSubject(placed, nothing, async (subject) => {
        await subject.enqueue()
        return Promise.all(['a', 'b'].map(async (name) => (await subject.mill.group(name).progress()).total))
      }),
  },
  {
    option: 'after',
    levels: ['edit', 'enqueue', 'job'],
    isStored: true,
    otherwise: 'ready',
    values: [
      { given: [['parent', 'waits']], seen: 'blocked' },
      { given: [['parent', 'ran']], seen: 'ready' },
    ],
    // An edit adds parents to those that the job has.
    see: (placed) =>
      withSubject(
        placed,
        nothing,
        async (subject) => {
          await subject.mill.enqueue(parent, undefined, { key: 'ran', queue: 'parents' })
          await subject.kit.consume('parents')
          await subject.mill.enqueue(parent, undefined, { key: 'waits', in: '1h' })
          return (await (await subject.enqueue()).get())?.state
        },
        [parent as never],
      ),
  },
  {
    option: 'payload',
    levels: ['edit'],
    isStored: true,
    otherwise: {},
    values: [
      { given: { n: 1 }, seen: { n: 1 } },
      { given: 'text', seen: 'text' },
    ],
    see: async (placed) => {
      const got: { payload?: unknown } = {}
      return withSubject(placed, ((payload: unknown) => void (got.payload = payload)) as never, async (subject) => {
        await subject.enqueue()
        await subject.run()
        return got.payload
      })
    },
  },
]
