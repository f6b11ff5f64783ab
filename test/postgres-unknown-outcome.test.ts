import { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { job, millrace, OutcomeUnknownError } from '../src/index.js'
import type { Handle, Mill } from '../src/index.js'
import { freshDatabase } from './postgres/shared-postgres.js'
import { startProxy } from './postgres/proxy.js'
import type { Proxy } from './postgres/proxy.js'

/**
 * F1, L4: a statement or a COMMIT was sent and its reply was lost. The call rejects with E_OUTCOME_UNKNOWN, and `retry()` returns
 * what the call would have returned, whether or not the first write happened; nothing is written twice.
 */
let database: Awaited<ReturnType<typeof freshDatabase>>
let proxy: Proxy
let mill: Mill
let sql: Client

const work = job('work', async (p: { n: unknown }) => void p)
const vanishing = job('vanishing', { run: async (p: { n: unknown }) => void p, keep: 'none' })
const options = { jobs: { work, vanishing }, logger: false, poll: '200ms' } as const

beforeAll(async () => {
  database = await freshDatabase()
  proxy = await startProxy(database.url)
  mill = await millrace({ store: proxy.url, ...options })
  sql = new Client(database.url)
  await sql.connect()
}, 60_000)
afterAll(async () => {
  await mill?.close()
  await proxy?.close()
  await sql?.end()
  await database?.drop()
})

/** In every message that commits under a receipt. */
const COMMIT = 'receipts (id, answer)'
let numbers = 0
const secret = (): string => `secret ${(numbers += 1)}.`

async function jobsLike(text: string): Promise<number> {
  const { rows } = await sql.query(`select count(*)::int as n from millrace.jobs where payload like $1`, [`%${text}%`])
  return (rows[0] as { n: number }).n
}

async function unknownOf(call: Promise<unknown>): Promise<OutcomeUnknownError> {
  const error: unknown = await call.then(
    () => new Error('it resolved'),
    (reason: unknown) => reason,
  )
  expect(error).toBeInstanceOf(OutcomeUnknownError)
  expect(error).toMatchObject({ code: 'E_OUTCOME_UNKNOWN', message: expect.stringContaining('may or may not') })
  return error as OutcomeUnknownError
}

/** The two possible outcomes. */
const sides = [
  ['written', (text: string) => proxy.loseAnswerTo(text)],
  ['not written', (text: string) => proxy.swallow(text)],
] as const

/** A call, its expected result, and the expected state afterwards. `arrange` runs before the connection is disturbed. */
interface Case {
  readonly arrange?: () => Promise<string | void>
  readonly call: (id: string) => Promise<unknown>
  readonly gives: (answer: unknown, id: string) => unknown
  readonly after?: (id: string) => Promise<unknown>
  readonly ids?: number
  /** A text of the message to disturb; default: every message that commits under a receipt. */
  readonly at?: string
}

const enqueued = async (options: object = {}): Promise<string> => (await mill.enqueue(work, { n: 1 }, options)).id
const stateOf = async (id: string): Promise<string | undefined> => (await mill.get(id))?.state
const isTrue = (answer: unknown): void => expect(answer).toBe(true)
const to = (state: string | undefined) => async (id: string) => expect(await stateOf(id)).toBe(state)
const inGroup = async (group: string): Promise<string> => {
  await mill.enqueueMany(work, [{ n: 1 }, { n: 2 }, { n: 3 }], { group })
  return group
}
const recurring = async (): Promise<string> => {
  const id = secret()
  await mill.recurring(id, work, { n: id }, { every: '1h' })
  return id
}

const cases: Record<string, Case> = {
  'enqueue with a key': {
    arrange: async () => secret(),
    call: (id) => mill.enqueue(work, { n: id }, { key: id }),
    gives: (answer) => expect(answer).toMatchObject({ isNew: true }),
    after: async (id) => expect(await jobsLike(id)).toBe(1),
    ids: 1,
  },
  'enqueueMany, of which one key is held': {
    arrange: () => enqueued({ key: `held ${(numbers += 1)}` }).then(async (id) => `${(await mill.get(id))?.key} ${id}`),
    call: (held) =>
      mill.enqueueMany(work, [{ n: held }, { n: held }], (_, i) => (i === 0 ? { key: held.slice(0, -37) } : {})),
    gives: (answer, held) => {
      const [first, second] = answer as Handle<unknown>[]
      expect(first).toMatchObject({ id: held.slice(-36), isNew: false })
      expect(second).toMatchObject({ isNew: true })
    },
    after: async (held) => expect(await jobsLike(held)).toBe(1),
    ids: 2,
  },
  flow: {
    arrange: async () => secret(),
    call: (id) =>
      mill.flow((f) => {
        const a = f.add(work, { n: id })
        return { a, b: f.add(work, { n: id }, { after: [a] }) }
      }),
    gives: (answer) => expect(answer).toMatchObject({ a: { isNew: true }, b: { isNew: true } }),
    after: async (id) => expect(await jobsLike(id)).toBe(2),
    ids: 2,
  },
  'schedule, which moves a job': {
    arrange: () => enqueued({ key: `move ${(numbers += 1)}` }),
    call: async (id) => mill.schedule(work, { n: 2 }, '1h', { key: (await mill.get(id))?.key as string }),
    gives: (answer, id) => expect(answer).toMatchObject({ id, isNew: false }),
    after: to('scheduled'),
    ids: 1,
  },
  unschedule: {
    arrange: () => enqueued({ key: `key ${(numbers += 1)}`, in: '1h' }),
    call: async (id) => mill.unschedule(work, (await mill.get(id))?.key as string),
    gives: isTrue,
    after: to('cancelled'),
    ids: 1,
  },
  cancel: { arrange: enqueued, call: (id) => mill.cancel(id), gives: isTrue, after: to('cancelled'), ids: 1 },
  retry: {
    arrange: async () => {
      const id = await enqueued()
      await mill.cancel(id)
      return id
    },
    call: (id) => mill.retry(id),
    gives: isTrue,
    after: to('ready'),
    ids: 1,
  },
  pause: { arrange: enqueued, call: (id) => mill.pause(id), gives: isTrue, after: to('paused'), ids: 1 },
  resume: {
    arrange: async () => {
      const id = await enqueued()
      await mill.pause(id)
      return id
    },
    call: (id) => mill.resume(id),
    gives: isTrue,
    after: to('ready'),
    ids: 1,
  },
  edit: {
    arrange: enqueued,
    call: (id) => mill.edit(id, { payload: { n: 'edited' } }),
    gives: isTrue,
    after: async (id) => {
      const record = await mill.get(id)
      expect(record?.payload).toEqual({ n: 'edited' })
    },
    ids: 1,
  },
  delete: { arrange: enqueued, call: (id) => mill.delete(id), gives: isTrue, after: to(undefined), ids: 1 },
  recurring: {
    arrange: async () => secret(),
    call: (id) => mill.recurring(id, work, { n: 1 }, { every: '1h' }),
    gives: (answer, id) => expect(answer).toMatchObject({ id }),
    after: async (id) => expect((await mill.schedules.get(id))?.id).toBe(id),
  },
  deleteRecurring: {
    arrange: recurring,
    call: (id) => mill.deleteRecurring(id),
    gives: isTrue,
    after: async (id) => expect(await mill.schedules.get(id)).toBeUndefined(),
  },
  'schedules.pause': {
    arrange: recurring,
    call: (id) => mill.schedules.pause(id),
    gives: isTrue,
    after: async (id) => expect((await mill.schedules.get(id))?.pausedAt).toBeDefined(),
  },
  'schedules.resume': {
    arrange: async () => {
      const id = await recurring()
      await mill.schedules.pause(id)
      return id
    },
    call: (id) => mill.schedules.resume(id),
    gives: isTrue,
    after: async (id) => expect((await mill.schedules.get(id))?.pausedAt).toBeUndefined(),
  },
  'schedules.runNow': {
    arrange: recurring,
    call: (id) => mill.schedules.runNow(id),
    gives: (answer) => expect(answer).toMatchObject({ id: expect.any(String) }),
    after: async (id) => expect(await jobsLike(id)).toBe(1),
    ids: 1,
  },
  'schedules.backfill': {
    arrange: async () => {
      const id = secret()
      await mill.recurring(id, work, { n: id }, '0 * * * *')
      return id
    },
    call: (id) => mill.schedules.backfill(id, '2026-01-01T00:00:00Z', '2026-01-01T03:00:00Z'),
    gives: (answer) => expect(answer).toBe(3),
    after: async (id) => expect(await jobsLike(id)).toBe(3),
    ids: 3,
  },
  'queue.pause': {
    arrange: async () => secret(),
    call: (queue) => mill.queue(queue).pause(),
    gives: (answer) => expect(answer).toBeUndefined(),
    after: async (queue) => expect((await mill.queue(queue).get()).paused).toBe(true),
  },
  'queue.resume': {
    arrange: async () => {
      const queue = secret()
      await mill.queue(queue).pause()
      return queue
    },
    call: (queue) => mill.queue(queue).resume(),
    gives: (answer) => expect(answer).toBeUndefined(),
    after: async (queue) => expect((await mill.queue(queue).get()).paused).toBe(false),
  },
  'group.seal': {
    arrange: () => inGroup(secret()),
    call: (group) => mill.group(group).seal(),
    gives: isTrue,
    after: async (group) => expect((await mill.group(group).progress()).sealed).toBe(true),
  },
  'group.cancel, whose commands share a transaction': {
    arrange: () => inGroup(secret()),
    call: (group) => mill.group(group).cancel(),
    gives: (answer) => expect(answer).toBe(3),
    after: async (group) => expect(await mill.group(group).progress()).toMatchObject({ cancelled: 3 }),
    ids: 2,
    // The first is sent alone; the others arrive meanwhile.
    at: '["changed","changed"]',
  },
}

for (const [side, disturb] of sides)
  describe(`a COMMIT whose reply is lost, ${side}`, () => {
    test.each(Object.entries(cases))('%s', { timeout: 20_000 }, async (_, one) => {
      const id = (await one.arrange?.()) ?? ''
      const before = proxy.lost
      disturb(one.at ?? COMMIT)
      const error = await unknownOf(one.call(id))
      expect(proxy.lost).toBe(before + 1)
      expect(error.ids).toHaveLength(one.ids ?? 0)
      const [answer, again] = [await error.retry(), await error.retry()]
      one.gives(answer, id)
      one.gives(again, id)
      await one.after?.(id)
    })

    test('enqueue, one statement', { timeout: 20_000 }, async () => {
      const n = secret()
      disturb(n)
      const error = await unknownOf(mill.enqueue(work, { n }))
      expect(await jobsLike(n)).toBe(side === 'written' ? 1 : 0)
      const handles = await Promise.all([error.retry<Handle<unknown>>(), error.retry<Handle<unknown>>()])
      expect(handles.map(({ id, isNew }) => ({ id, isNew }))).toEqual(
        [1, 2].map(() => ({ id: error.ids[0], isNew: true })),
      )
      expect(await jobsLike(n)).toBe(1)
    })

    test('calls that share a statement converge each by itself', { timeout: 20_000 }, async () => {
      const n = secret()
      await mill.enqueue(work, { n: 'warm' })
      disturb(`${n} 3`)
      // The first is in progress when the others arrive; those share the second statement.
      const calls = Array.from({ length: 6 }, (_, i) => mill.enqueue(work, { n: `${n} ${i}` }))
      const settled = await Promise.allSettled(calls)
      const errors = settled.flatMap((one) => (one.status === 'rejected' ? [one.reason as OutcomeUnknownError] : []))
      expect(errors).toHaveLength(5)
      for (const error of errors) {
        expect(error.code).toBe('E_OUTCOME_UNKNOWN')
        expect((await error.retry<Handle<unknown>>()).id).toBe(error.ids[0])
      }
      expect(await jobsLike(n)).toBe(6)
    })

    test('calls under keys that share a transaction converge each by itself', { timeout: 20_000 }, async () => {
      const n = secret()
      const held = await mill.enqueue(work, { n: 'held' }, { key: `${n} 2`, in: '1h' })
      // The first is in progress when the others arrive. Their receipt holds the answer of the call whose key is held.
      disturb(`{"id":"${held.id}","isNew":false}`)
      const calls = Array.from({ length: 6 }, (_, i) => mill.enqueue(work, { n: `${n} ${i}` }, { key: `${n} ${i}` }))
      const settled = await Promise.allSettled(calls)
      const errors = settled.flatMap((one) => (one.status === 'rejected' ? [one.reason as OutcomeUnknownError] : []))
      expect(errors).toHaveLength(5)
      const answers = await Promise.all(errors.map((error) => error.retry<Handle<unknown>>()))
      const [isNew, ids] = [answers.map((answer) => answer.isNew), answers.map((answer) => answer.id)]
      expect(isNew).toEqual([true, false, true, true, true])
      expect(ids).toEqual(errors.map((error, i) => (i === 1 ? held.id : error.ids[0])))
      expect(await jobsLike(n)).toBe(5)
    })

    test('a job that ran and was removed is not written again', { timeout: 20_000 }, async () => {
      const n = secret()
      disturb(n)
      const error = await unknownOf(mill.enqueue(vanishing, { n }))
      const other = await millrace({ store: database.url, ...options })
      try {
        await other.start()
        if (side === 'written') await expect.poll(() => jobsLike(n), { timeout: 10_000, interval: 20 }).toBe(0)
        expect(await error.retry()).toMatchObject({ id: error.ids[0], isNew: true })
        await expect.poll(() => jobsLike(n), { timeout: 10_000, interval: 20 }).toBe(0)
        await error.retry()
        expect(await jobsLike(n)).toBe(0)
      } finally {
        await other.close()
      }
    })
  })

describe('a COMMIT that is still in progress when retry() runs', () => {
  /** While `hold` has a row, COMMITs of receipts wait in the server; afterwards they commit, or fail if that row says so. */
  beforeAll(async () => {
    await sql.query(`
      create table hold (fails boolean not null);
      create function wait_at_commit() returns trigger language plpgsql as $$
      declare
        f boolean;
      begin
        select fails into f from hold;
        while exists (select from hold) loop perform pg_sleep(0.02); end loop;
        if f then raise exception 'fails at its commit'; end if;
        return null;
      end $$;
      create constraint trigger wait_at_commit after insert on millrace.receipts deferrable initially deferred
        for each row when (not new.is_void) execute function wait_at_commit()`)
  })
  afterAll(() => sql.query('drop trigger wait_at_commit on millrace.receipts'))

  const waiters = `
    select 1 from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock' and query like '%on conflict (id) do nothing%'`

  test.each([
    ['commits', false, 'one statement', {}],
    ['rolls back', true, 'one statement', {}],
    ['commits', false, 'a transaction', { key: 'held back' }],
    ['rolls back', true, 'a transaction', { key: 'held back and failed' }],
  ])('delays retry(), and %s (%s, %s)', { timeout: 20_000 }, async (_, fails, __, options) => {
    const n = secret()
    await sql.query('insert into hold values ($1)', [fails])
    proxy.loseAnswerTo('key' in options ? COMMIT : n)
    const error = await unknownOf(mill.enqueue(work, { n }, options))
    const retrying = error.retry<Handle<unknown>>()
    await expect.poll(async () => (await sql.query(waiters)).rowCount, { timeout: 5_000, interval: 5 }).toBe(1)
    expect(await jobsLike(n)).toBe(0)
    await sql.query('delete from hold')
    expect(await retrying).toMatchObject({ id: error.ids[0], isNew: true })
    expect(await jobsLike(n)).toBe(1)
  })

  test('stays unknown while the store cannot be reached', { timeout: 20_000 }, async () => {
    const n = secret()
    proxy.loseAnswerTo(n)
    const error = await unknownOf(mill.enqueue(work, { n }))
    proxy.lead('postgres://127.0.0.1:1/nowhere')
    try {
      const again = await unknownOf(error.retry())
      expect(again.cause).toMatchObject({ code: 'E_STORE_UNREACHABLE' })
    } finally {
      proxy.lead(database.url)
    }
    expect(await error.retry()).toMatchObject({ id: error.ids[0], isNew: true })
    expect(await jobsLike(n)).toBe(1)
  })
})

describe('what is known is not reported as unknown', () => {
  test('a transaction that is cut before its COMMIT was sent has written nothing', { timeout: 20_000 }, async () => {
    const n = secret()
    proxy.loseAnswerTo(n)
    await expect(mill.enqueue(work, { n }, { key: n })).rejects.toMatchObject({ code: 'E_STORE_UNREACHABLE' })
    expect(await jobsLike(n)).toBe(0)
  })

  test('an error reply of the server is that error', { timeout: 20_000 }, async () => {
    await sql.query('alter table millrace.receipts add constraint none check (is_void) not valid')
    try {
      await expect(mill.enqueue(work, { n: 1 })).rejects.toMatchObject({ code: 'E_STORE' })
      await expect(mill.enqueue(work, { n: 1 }, { key: secret() })).rejects.toMatchObject({ code: 'E_STORE' })
    } finally {
      await sql.query('alter table millrace.receipts drop constraint none')
    }
  })

  test('receipts of resolved calls are deleted', { timeout: 20_000 }, async () => {
    const count = async (): Promise<number> =>
      ((await sql.query(`select count(*)::int as n from millrace.receipts`)).rows[0] as { n: number }).n
    const before = await count()
    for (let i = 0; i < 200; i += 1) await mill.enqueue(work, { n: i })
    await expect.poll(count, { timeout: 5_000, interval: 20 }).toBeLessThan(before + 100)
  })
})

test('through hooks, retry() returns what the call returns', { timeout: 20_000 }, async () => {
  const through: string[] = []
  const hooked = await millrace({
    store: proxy.url,
    ...options,
    hooks: {
      enqueue: async (call, next) => {
        through.push(call.verb)
        return next()
      },
    },
  })
  try {
    const n = secret()
    proxy.loseAnswerTo(n)
    const one = await unknownOf(hooked.enqueue(work, { n }))
    expect(await one.retry()).toMatchObject({ id: one.ids[0], isNew: true })
    proxy.swallow(COMMIT)
    const whole = await unknownOf(
      hooked.flow((f) => {
        const a = f.add(work, { n })
        f.add(work, { n }, { after: [a] })
      }),
    )
    const handles = await whole.retry<Handle<unknown>[]>()
    expect(handles.map(({ id }) => id)).toEqual(whole.ids)
    expect(await jobsLike(n)).toBe(3)
    expect(through).toEqual(['enqueue', 'flow', 'flow'])
  } finally {
    await hooked.close()
  }
})

describe.each(sides)('ctx.transaction whose COMMIT loses its reply, %s', (_, disturb) => {
  test('returns its value by retry(), and its writes are there once', { timeout: 20_000 }, async () => {
    await sql.query('create table if not exists app (n text)')
    const n = secret()
    const seen: unknown[] = []
    const move = job('move', async (_: object, ctx) => {
      try {
        return await ctx.transaction(async (tx) => {
          await (tx as Client).query('insert into app values ($1)', [n])
          if (seen.length === 0) disturb(COMMIT)
          return 'moved'
        })
      } catch (error) {
        seen.push((error as OutcomeUnknownError).code, (error as OutcomeUnknownError).ids)
        return (error as OutcomeUnknownError).retry<string>()
      }
    })
    const worker = await millrace({ store: proxy.url, jobs: { move }, logger: false, poll: '200ms' })
    try {
      const handle = await worker.enqueue(move, {})
      await worker.start()
      expect(await handle.result({ timeout: '15s' })).toBe('moved')
      expect(seen).toEqual(['E_OUTCOME_UNKNOWN', [handle.id]])
      expect(await handle.get()).toMatchObject({ state: 'done', attempt: 1 })
      expect((await sql.query('select * from app where n = $1', [n])).rowCount).toBe(1)
    } finally {
      await worker.close()
    }
  })
})
