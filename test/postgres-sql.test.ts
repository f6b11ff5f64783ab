import { readFileSync } from 'node:fs'
import { Client } from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { job, millrace, Snooze } from '../src/index.js'
import type { Context, Hooks, JobFilter, JobRecord, Mill } from '../src/index.js'
import { postgres } from '../src/postgres.js'
import { freshDatabase } from './postgres/shared-postgres.js'

/** The SQL function add_job, as triggers and other languages call it. Nothing sleeps: runs are awaited. */

const SCHEMA = `jobs "of" o'many $millrace$ \\ mill`
const HOME = `"${SCHEMA.replaceAll('"', '""')}"`

let database: Awaited<ReturnType<typeof freshDatabase>>
let sql: Client
let mill: Mill
let ran: { payload: unknown; id: string }[]
let woken: () => void

/** Records each payload. */
const note = job('note', {
  run: async (payload: unknown, ctx: Context) => {
    ran.push({ payload, id: ctx.id })
    woken()
  },
})

beforeAll(async () => {
  database = await freshDatabase()
  sql = new Client(database.url)
  await sql.connect()
})
afterAll(async () => {
  await sql.end()
  await database.drop()
})
beforeEach(async () => {
  ran = []
  woken = () => undefined
  // There is no poll: a job that runs was started by a notification.
  mill = await millrace({ store: postgres(database.url, { schema: SCHEMA }), jobs: [note], logger: false, poll: '10m' })
})
afterEach(async () => {
  await mill.close({ deadline: 0 })
  await sql.query(`drop schema ${HOME} cascade`)
})

async function add(args: string, values: unknown[] = []): Promise<string> {
  const { rows } = await sql.query(`select ${HOME}.add_job(${args}) as id`, values)
  return (rows[0] as { id: string }).id
}

async function found(filter: JobFilter): Promise<JobRecord[]> {
  const records: JobRecord[] = []
  for await (const record of mill.find(filter)) records.push(record)
  return records
}

/** Resolves with the next run. */
const nextRun = (): Promise<void> => new Promise((resolve) => (woken = resolve))

const refusal = async (args: string, values: unknown[] = []): Promise<Error & { code: string; detail?: string }> =>
  add(args, values).then(
    () => {
      throw new Error('it was taken')
    },
    (error: Error & { code: string }) => error,
  )

describe('a job from SQL', () => {
  test('wakes an idle worker and runs with its payload', async () => {
    await mill.start()
    const run = nextRun()
    const id = await add(`'note', '{"to": "ada", "n": [1, 2.5, null]}'`)
    await run
    expect(ran).toEqual([{ payload: { to: 'ada', n: [1, 2.5, null] }, id }])
    expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    expect(Math.abs(Number.parseInt(id.replace('-', '').slice(0, 12), 16) - Date.now())).toBeLessThan(60_000)
  })

  test('is passed to the enqueue hook when a worker begins it for the first time, and not again for a retry', async () => {
    const calls: unknown[] = []
    const tries = job('tries', {
      run: async (_: unknown, ctx: Context) => {
        calls.push(`attempt ${ctx.attempt}`)
        if (calls.length < 3) throw new Snooze(1)
        if (ctx.attempt === 1) throw new Error('again')
      },
      retry: { limit: 1, backoff: () => 0 },
    })
    const hooks: Hooks = {
      enqueue: async (call, next) => {
        calls.push(call)
        await next()
      },
    }
    const hooked = await millrace({
      store: postgres(database.url, { schema: SCHEMA }),
      jobs: [tries],
      logger: false,
      poll: '10m',
      hooks,
    })
    try {
      await hooked.start()
      const id = await add(`'tries', '{"a": 1}', queue => 'q', labels => array['x'], title => 't', key => 'k'`)
      await hooked.handle(id).result()
      const options = { queue: 'q', key: 'k', title: 't', labels: ['x'] }
      const call = { verb: 'sql', job: 'tries', queue: 'q', items: [{ payload: { a: 1 }, options }] }
      expect(calls).toEqual([call, 'attempt 1', 'attempt 1', 'attempt 2'])
    } finally {
      await hooked.close({ deadline: 0 })
    }
  })

  test('is enqueued by a trigger, with its row, and not when that is rolled back', async () => {
    await sql.query('create table if not exists orders (id integer primary key, name text)')
    await sql.query(
      `create or replace function told() returns trigger language plpgsql as 'begin perform ${HOME.replaceAll(`'`, `''`)}.add_job(''note'', to_jsonb(new)); return new; end'`,
    )
    await sql.query('create or replace trigger told after insert on orders for each row execute function told()')
    await mill.start()
    await sql.query('begin')
    await sql.query(`insert into orders values (1, 'lost')`)
    await sql.query('rollback')
    const run = nextRun()
    await sql.query('begin')
    await sql.query(`insert into orders values (2, 'kept')`)
    expect(ran).toEqual([])
    await sql.query('commit')
    await run
    expect(ran.map(({ payload }) => payload)).toEqual([{ id: 2, name: 'kept' }])
    expect(await found({})).toHaveLength(1)
    await sql.query('drop table orders')
  })

  test.each([
    [`$1`, '{"a":1}', { a: 1 }],
    [`$1::json`, '{"a":  1}', { a: 1 }],
    [`$1::jsonb`, '"text"', 'text'],
    [`$1`, '{"$":"Date","v":"x","$$":1,"$a":2}', { $: 'Date', v: 'x', $$: 1, $a: 2 }],
    [`$1`, '[{ "\\u0024" : {"$" :1}},{"n":0,"$\\u0024":2}]', [{ $: { $: 1 } }, { n: 0, $$: 2 }]],
    [`$1`, String.raw`{"a\"$":"{\"$\":1}","b":",\"$\":"}`, { 'a"$': '{"$":1}', b: ',"$":' }],
    [`$1`, String.raw`"\u0000\ud800"`, '\0\ud800'],
    [`$1::jsonb`, '{"$":1,"__proto__":{"x":1}}', JSON.parse('{"$":1,"__proto__":{"x":1}}')],
    [`$1`, null, undefined],
  ])('has the payload it was given: %s %s', async (as, json, payload) => {
    const id = await add(`'note', ${as}`, [json])
    await mill.start()
    await mill.handle(id).result()
    expect(ran).toEqual([{ payload, id }])
  })

  test('needs only a name', async () => {
    const id = await add(`'note'`)
    await mill.start()
    await mill.handle(id).result()
    expect(ran).toEqual([{ payload: undefined, id }])
  })

  test('has the queue, priority, times, labels and title it was given', async () => {
    const id = await add(
      `'note', '{}', queue => 'other', priority => 5, run_in => '2 hours', labels => array['a', 'b'], title => 'Hello', expires_in => '1 day'`,
    )
    const [record] = await found({ label: 'b' })
    expect(record).toMatchObject({
      id,
      queue: 'other',
      priority: 5,
      state: 'scheduled',
      title: 'Hello',
      labels: ['a', 'b'],
    })
    expect(Number(record?.dueAt) - Number(record?.createdAt)).toBe(7_200_000)
    expect(Number(record?.expiresAt) - Number(record?.createdAt)).toBe(86_400_000)
    const at = await add(`'note', '{}', due_at => '2099-01-01T00:00:00Z', key => 'k'`)
    expect(await found({ key: 'k' })).toMatchObject([{ id: at, dueAt: new Date('2099-01-01T00:00:00Z') }])
  })

  test('has the meta, retries, timeout and group it was given, and a sealed group refuses it', async () => {
    const add_ = `'note', '{}', run_in => '1 hour', group_id => 'spring'`
    const id = await add(`${add_}, meta => '{"$": 1}', retry_limit => 2, timeout => '90 seconds'`)
    expect(await mill.get(id)).toMatchObject({ group: 'spring', meta: { $: 1 } })
    const { rows } = await sql.query<{ options: string }>(`select options from ${HOME}.jobs`)
    expect(JSON.parse(rows[0]?.options ?? '')).toMatchObject({ retry: { limit: 2 }, timeout: 90_000 })
    expect(await mill.group('spring').progress()).toMatchObject({ unfinished: 1, total: 1 })
    await mill.group('spring').seal()
    const error = await refusal(add_)
    expect([error.code, error.message]).toEqual(['55000', `add_job: the group 'spring' is sealed`])
    await mill.cancel(id)
    expect(await mill.group('spring').progress()).toMatchObject({ unfinished: 0, cancelled: 1 })
  })

  test('runs when it is due and before those of lower priority', async () => {
    const low = await add(`'note', '1', priority => -3`)
    const high = await add(`'note', '2', priority => 3`)
    const plain = await add(`'note', '3'`)
    const past = await add(`'note', '4', due_at => now() - interval '1 hour'`)
    mill = await reopened({ concurrency: 1 })
    await mill.start()
    await Promise.all([low, high, plain, past].map((id) => mill.handle(id).result()))
    expect(ran.map(({ id }) => id)).toEqual([past, high, plain, low])
    const run = nextRun()
    const soon = await add(`'note', '5', run_in => '300 ms'`)
    await run
    expect(ran.at(-1)?.id).toBe(soon)
  })
})

async function reopened(options: object): Promise<Mill> {
  await mill.close()
  return millrace({
    store: postgres(database.url, { schema: SCHEMA }),
    jobs: [note],
    logger: false,
    poll: '10m',
    ...options,
  })
}

describe('a key', () => {
  test('is held by one unfinished job, enqueued from SQL or by a mill', async () => {
    const first = await add(`'note', '1', key => 'k', run_in => '1 hour'`)
    expect(await add(`'note', '2', key => 'k'`)).toBe(first)
    expect((await mill.enqueue(note, 3, { key: 'k' })).id).toBe(first)
    const error = await refusal(`'note', '2', key => 'k', on_duplicate => 'reject'`)
    expect([error.code, error.detail]).toEqual(['23505', first])
    expect(error.message).toBe(`add_job: the key 'k' of job 'note' is held by an unfinished job`)
    await mill.handle(first).cancel()
    expect(await add(`'note', '2', key => 'k'`)).not.toBe(first)
  })

  test('is taken by one of many concurrent calls', async () => {
    const clients = await Promise.all(
      Array.from({ length: 5 }, async () => {
        const client = new Client(database.url)
        await client.connect()
        return client
      }),
    )
    const asked = clients.map((client) =>
      client.query(`select ${HOME}.add_job('note', '1', key => 'one', run_in => '1 hour') as id`),
    )
    const mine = Array.from({ length: 5 }, () => mill.schedule(note, 1, '1h', { key: 'one' }))
    const ids = [
      ...(await Promise.all(asked)).map(({ rows }) => (rows[0] as { id: string }).id),
      ...(await Promise.all(mine)).map(({ id }) => id),
    ]
    expect(new Set(ids).size).toBe(1)
    for (const client of clients) await client.end()
  })
})

describe('a job after others', () => {
  test('waits for all of them, is their child, and runs when they are done', async () => {
    const [first, second] = [await mill.enqueue(note, 'first'), await add(`'note', '"second"'`)]
    const child = await add(`'note', '"child"', after => array[$1, $2, $1]::uuid[]`, [first.id, second])
    expect(await mill.get(child)).toMatchObject({ state: 'blocked', after: [first.id, second] })
    expect((await mill.children(first.id)).rows.map(({ id }) => id)).toEqual([child])
    await mill.start()
    await mill.handle(child).result()
    expect(ran.at(-1)).toEqual({ payload: 'child', id: child })
    expect(ran).toHaveLength(3)
    const late = await add(`'note', '"late"', after => array[$1]::uuid[], run_in => '1 hour'`, [first.id])
    expect((await mill.get(late))?.state).toBe('scheduled')
  })

  test('is cancelled, runs or waits when a parent fails, as it says', async () => {
    const lost = job('lost', { run: async () => Promise.reject(new Error('lost')), retry: { limit: 0 } })
    mill.register(lost)
    const parent = await mill.enqueue(lost)
    const policy = (of: string): Promise<string> =>
      add(`'note', to_json($2::text), after => array[$1]::uuid[], on_parent_failure => $2`, [parent.id, of])
    const before = { wait: await policy('wait'), cancel: await policy('cancel'), run: await policy('run') }
    await mill.start()
    await mill.handle(before.run).result()
    await expect.poll(async () => (await mill.get(before.cancel))?.state).toBe('cancelled')
    expect((await mill.get(before.cancel))?.reason).toContain(`its parent lost ${parent.id} failed`)
    expect((await mill.get(before.wait))?.state).toBe('blocked')
    const after = { wait: await policy('wait'), cancel: await policy('cancel'), run: await policy('run') }
    await mill.handle(after.run).result()
    await expect.poll(async () => (await mill.get(after.cancel))?.state).toBe('cancelled')
    expect((await mill.get(after.wait))?.state).toBe('blocked')
  })

  test('counts as blocked in its group, and a parent that is not there is refused', async () => {
    const parent = await mill.enqueue(note, 1, { in: '1h' })
    await add(`'note', '1', after => array[$1]::uuid[], group_id => 'g'`, [parent.id])
    expect(await mill.group('g').progress()).toMatchObject({ unfinished: 1, blocked: 1 })
    const missing = '01890a5d-ac96-774b-bcce-b302099a8057'
    const error = await refusal(`'note', '1', after => array[$1, $2]::uuid[]`, [parent.id, missing])
    expect([error.code, error.message]).toEqual(['23503', `add_job: there is no job with the id ${missing}`])
    const wrong = await refusal(`'note', '1', after => array[null]::uuid[], on_parent_failure => 'stop'`)
    expect(wrong.message).toContain('each of after must be the id of a job, got null')
    expect(wrong.message).toContain(`on_parent_failure must be 'wait', 'cancel' or 'run', got 'stop'`)
    await mill.cancel(parent.id)
    await add(`'note', '1', key => 'own', run_in => '1 hour'`)
    const own = (await found({ key: 'own' }))[0]?.id as string
    await mill.cancel(own)
    expect((await refusal(`'note', '1', key => 'own', after => array[$1]::uuid[]`, [own])).message).toContain(
      'under the same key',
    )
  })
})

describe('a unique job', () => {
  interface ByUser {
    readonly user: { readonly id: unknown }
    readonly n: unknown
  }
  const byUser = job('byUser', {
    run: async (payload: ByUser) => payload,
    unique: { by: ['user.id', 'n'], for: '1h' },
  })
  const whole = job('whole', { run: async (payload: unknown) => payload, unique: {} })

  test.each([
    ['byUser', `array['n', 'user.id', 'n']`, { user: { id: 'ö"\\\n\u2028' }, n: 1.5, other: 1 }],
    [
      'byUser',
      `array['user.id', 'n']`,
      { n: [true, null, { b: 1, a: 'x', Z: -0.25 }], user: { id: { $: 'Date', v: 1 } } },
    ],
    ['byUser', `array['user.id', 'n']`, { n: 'x'.repeat(300), user: { id: 1 } }],
    ['byUser', `array['user.id', 'n']`, { n: '😀'.repeat(95), user: { id: 100 } }],
    ['whole', `'{}'`, { z: 1, a: { c: [1, 2, { e: '' }], b: {} }, '': null }],
    ['whole', `'{}'`, 'text'],
  ])('takes the slot that an enqueue takes: %s by %s of %j', async (name, by, payload) => {
    mill.register(byUser)
    mill.register(whole)
    const id = await add(`$1, $2::json, unique_by => ${by}, run_in => '1 hour'`, [name, JSON.stringify(payload)])
    const handle = await mill.enqueue(name, payload)
    expect([handle.id, handle.isNew]).toEqual([id, false])
    expect(await add(`$1, $2::json, unique_by => ${by}`, [name, JSON.stringify(payload)])).toBe(id)
    await mill.cancel(id)
    const next = await mill.enqueue(name, payload)
    expect(next.isNew).toBe(true)
    expect(await add(`$1, $2::jsonb, unique_by => ${by}`, [name, JSON.stringify(payload)])).toBe(next.id)
  })

  test('is refused or returned while it is unfinished, waits, or its window lasts', async () => {
    const first = await add(`'note', '{"u":1}', unique_by => array['u']`)
    const error = await refusal(`'note', '{"u":1}', unique_by => array['u'], on_unique => 'reject'`)
    expect([error.code, error.detail]).toEqual(['23505', first])
    expect(await add(`'note', '{"u":2}', unique_by => array['u']`)).not.toBe(first)
    await mill.start()
    await mill.handle(first).result()
    const second = await add(`'note', '{"u":1}', unique_by => array['u'], unique_for => '1 hour'`)
    expect(second).not.toBe(first)
    await mill.handle(second).result()
    expect(await add(`'note', '{"u":1}', unique_by => array['u']`)).toBe(second)
    const third = await add(`'note', '{"u":3}', unique_by => array['u'], unique_while => 'waiting', run_in => '1 hour'`)
    expect(await add(`'note', '{"u":3}', unique_by => array['u'], unique_while => 'waiting'`)).toBe(third)
    await mill.delete(third)
    expect(await add(`'note', '{"u":3}', unique_by => array['u'], unique_while => 'waiting'`)).not.toBe(third)
    const wrong = await refusal(
      `'note', '{"u":1}', unique_by => array['v'], unique_for => '0', unique_while => 'x', on_unique => 'replace'`,
    )
    for (const what of [
      'payload must have each of unique_by (v)',
      'unique_for must be longer than 0',
      `unique_while must be 'unfinished' or 'waiting', got 'x'`,
      `on_unique must be 'ignore' or 'reject', got 'replace'`,
    ])
      expect(wrong.message).toContain(what)
    expect((await refusal(`'note', '1', unique_for => '1 hour'`)).message).toContain('unique_for needs unique_by')
  })

  test('is taken by one of many concurrent calls, from SQL and from mills', async () => {
    mill.register(byUser)
    const payload = { user: { id: 1 }, n: 1 }
    const clients = await Promise.all(
      Array.from({ length: 4 }, async () => {
        const client = new Client(database.url)
        await client.connect()
        return client
      }),
    )
    const asked = clients.map((client) =>
      client.query(`select ${HOME}.add_job('byUser', $1::json, unique_by => array['user.id', 'n']) as id`, [
        JSON.stringify(payload),
      ]),
    )
    const mine = Array.from({ length: 4 }, () => mill.enqueue(byUser, payload))
    const ids = [
      ...(await Promise.all(asked)).map(({ rows }) => (rows[0] as { id: string }).id),
      ...(await Promise.all(mine)).map(({ id }) => id),
    ]
    expect(new Set(ids).size).toBe(1)
    for (const client of clients) await client.end()
  })
})

describe('wrong input', () => {
  test('is reported in one error, and nothing is written', async () => {
    const error = await refusal(
      `$1, '{}', queue => '', priority => 2000000, due_at => now(), run_in => '1 s', key => repeat('k', 501), on_duplicate => 'replace', labels => array['', 'b'], title => repeat('t', 501), group_id => '', retry_limit => -1, timeout => '-1 s'`,
      ['a\nb'],
    )
    expect(error.code).toBe('22023')
    for (const what of [
      'name must not have control',
      'queue must have 1 to 200 characters, got 0',
      'priority must be',
      'due_at and run_in',
      'key must have 1 to 500',
      `on_duplicate must be 'return' or 'reject', got 'replace'`,
      'each of labels must have',
      'title must have at most 500',
      'group_id must have 1 to 200 characters, got 0',
      'retry_limit must be',
      'timeout must be longer than 0',
    ])
      expect(error.message).toContain(what)
    expect(await found({})).toEqual([])
  })

  test.each([
    [
      'a time beyond what a job may wait',
      `'note', '{}', run_in => '1000 years'`,
      '22023',
      /run_in must be at most 100 years, got 1000/,
    ],
    [
      'an instant that far away',
      `'note', '{}', due_at => '2999-01-01'`,
      '22023',
      /due_at must be at most 100 years away, got 2999/,
    ],
    ['an end beyond', `'note', '{}', expires_in => '101 years'`, '22023', /expires_in must be at most 100 years/],
    ['an end that far away', `'note', '{}', expires_at => '2999-01-01'`, '22023', /expires_at must be at most/],
    ['no JSON', `'note', '{'`, '22P02', /json/],
    [
      'too large a payload',
      `'note', to_json(repeat('x', 1048576))`,
      '22023',
      /payload has 1048578 bytes and the limit is 1048576/,
    ],
    ['no name', `null, '{}'`, '22023', /name must be text, got null/],
    ['a time without end', `'note', '{}', due_at => 'infinity'`, '22023', /due_at must be a finite time/],
  ])('%s', async (_, args, code, message) => {
    const error = await refusal(args)
    expect(error.code).toBe(code)
    expect(error.message).toMatch(message)
  })
})

test('hostile names change no SQL', async () => {
  const hostile = `'); drop schema public cascade; -- $$ " \\ %s`
  const id = await add(`$1, '{}', queue => $1, key => $1, labels => array[$1], title => $1`, [hostile])
  expect(await found({ key: hostile })).toMatchObject([
    { id, job: hostile, queue: hostile, key: hostile, labels: [hostile], title: hostile },
  ])
})

test('the session’s search_path changes nothing', async () => {
  const [at] = (await sql.query('show search_path')).rows as { search_path: string }[]
  await sql.query('create schema trap')
  await sql.query(`create function trap.hashtextextended(text, integer) returns bigint language sql as 'select 1 / 0'`)
  await sql.query('create table trap.lanes (lane integer, queue text, name text)')
  await sql.query('set search_path = trap, pg_catalog')
  const id = await add(`'note', '{}', key => 'k'`)
  await sql.query(`set search_path = ${at?.search_path ?? 'public'}`)
  await sql.query('drop schema trap cascade')
  expect(await found({ key: 'k' })).toMatchObject([{ id, queue: 'default' }])
})

test('the caller needs the privileges that the guide names, and no more', async () => {
  const guide = readFileSync(new URL('../docs/guides/postgres-sql.md', import.meta.url), 'utf8')
  const grants = [...guide.matchAll(/^ *(grant .*);$/gm)].map(([, grant]) => grant as string)
  expect(grants).toHaveLength(10)
  const given = async (some: readonly string[]): Promise<void> => {
    for (const grant of some) await sql.query(grant.replaceAll('millrace', HOME.replaceAll('$', '$$$$')))
    await sql.query('set role app')
  }
  await sql.query('create role app')
  await given(grants.slice(0, 6))
  const id = await add(`'fresh', '{}', key => 'k', expires_in => '1 day'`)
  const later = await add(`'fresh', '{}', run_in => '1 day', group_id => 'spring'`)
  await sql.query('reset role')
  await given(grants.slice(6))
  const child = await add(`'fresh', '{"n":1}', after => array[$1]::uuid[], unique_by => array['n']`, [id])
  await sql.query('reset role')
  await sql.query('drop owned by app')
  await sql.query('drop role app')
  expect((await found({ job: 'fresh' })).map((record) => record.id).sort()).toEqual([id, later, child].sort())
})
