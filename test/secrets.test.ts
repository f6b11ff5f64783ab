import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, describe, expect, test, vi } from 'vitest'
import { Abort, category, event, job, millrace, workflow } from '../src/index.js'
import type { Context, JobRecord, Mill, MillOptions } from '../src/index.js'
import { internalsOf } from '../src/mill/internals.js'
import type { MillInternals } from '../src/mill/internals.js'
import { describeAboveStore } from './support/above-store.js'
import { freshStore, onPostgres } from './support/fresh-store.js'
import { rawTables } from './support/raw-tables.js'
import { testing } from './support/testing.js'

/** K5 through the public API, on either store: what the tables hold, what a mill with keys reads, and what it refuses. */

const folder = mkdtempSync(join(tmpdir(), 'millrace-secrets-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
const mills: Mill[] = []
afterEach(async () => {
  for (const mill of mills.splice(0)) await mill.close({ deadline: 0 })
})

const [k1, k2] = [randomBytes(32), randomBytes(32)]
const first = { keys: { k1 }, current: 'k1' }
const rotated = { keys: { k1, k2 }, current: 'k2' }

async function open(store: string, options: MillOptions): Promise<Mill> {
  const mill = await millrace({ store, logger: false, poll: '50ms', encryption: first, ...options })
  mills.push(mill)
  return mill
}

async function close(mill: Mill): Promise<void> {
  await mill.close({ deadline: 0 })
}

const MARKER = 'tiger-stripes-4711'
/** The marker, and the number of a progress report. */
const PROGRESS = /done[\\]*":4711/
const PLAIN = new RegExp(`${MARKER}|${PROGRESS.source}`)
const secret = (of: string): { card: string; of: string } => ({ card: `${MARKER} ${of}`, of })
type Secret = ReturnType<typeof secret>

function gate(): { readonly opened: Promise<void>; open(): void } {
  let open = (): void => undefined
  const opened = new Promise<void>((resolve) => (open = resolve))
  return { opened, open: () => open() }
}

const becomes = (mill: Mill, id: string, wanted: object): Promise<JobRecord> =>
  vi.waitFor(
    async () => {
      const record = await mill.get(id)
      expect(record).toMatchObject(wanted)
      return record as JobRecord
    },
    { timeout: 20_000, interval: 10 },
  )

describe('An encrypted job', () => {
  test('leaves no readable text of its own in any table, in any state', async () => {
    const store = freshStore(folder)
    const end = gate()
    const run = async ({ card, of }: Secret, ctx: Context): Promise<unknown> => {
      ctx.log('charging', { card })
      ctx.progress(4711, 9000)
      if (of === 'running') await end.opened
      if (of === 'retrying' || of === 'failed')
        throw Object.assign(new TypeError(card), { card, cause: new Error(card) })
      if (of === 'aborted') throw new Abort(card)
      if (of === 'treated') throw new Error(`done: ${card}`)
      return { charged: card }
    }
    const charge = job('charge', {
      run,
      encrypt: true,
      accepts: ({ of }: Secret) => of !== 'unfit',
      treatAsDone: (error) => String(error).includes('done:'),
      retry: { limit: 3, backoff: { start: '1h' } },
      unique: { by: 'card', for: '1h' },
    })
    const mill = await open(store, { jobs: [charge] })
    const ids: Record<string, string> = {}
    const add = async (of: string, options: object = {}): Promise<void> => {
      ids[of] = (await mill.enqueue(charge, secret(of), { meta: { note: MARKER }, ...options })).id
    }
    for (const of of ['done', 'running', 'retrying', 'aborted', 'treated']) await add(of)
    await add('failed', { retry: { limit: 0 } })
    await add('scheduled', { in: '1h' })
    await add('keyed', { key: 'a', in: '1h' })
    await mill.schedule(charge, secret('moved'), '2h', { key: 'a', meta: { note: MARKER } })
    await add('edited', { in: '1h' })
    await mill.edit(ids['edited'] as string, { payload: secret('edited again'), meta: { other: MARKER } })
    await add('rescheduled', { in: '1h', unique: { by: 'of', onDuplicate: 'reschedule' } })
    await mill.enqueue(
      charge,
      { ...secret('rescheduled'), card: `${MARKER} moved` },
      {
        in: '2h',
        unique: { by: 'of', onDuplicate: 'reschedule' },
      },
    )
    const bulk = await mill.enqueueMany(charge, [secret('b1'), secret('b2')], { in: '1h' })
    await mill.recurring('every-hour', charge, secret('recurring'), '0 * * * *', { meta: { note: MARKER } })
    const tick = await mill.schedules.runNow('every-hour')
    await mill.group('cards', { whenDone: [charge, secret('whenDone'), { meta: { note: MARKER } }] }).seal()
    await mill.start()
    await becomes(mill, ids['done'] as string, { state: 'done', result: { charged: `${MARKER} done` } })
    await becomes(mill, ids['retrying'] as string, { state: 'retrying', error: { message: `${MARKER} retrying` } })
    await becomes(mill, ids['failed'] as string, { state: 'failed', error: { props: { card: `${MARKER} failed` } } })
    await becomes(mill, ids['aborted'] as string, { state: 'failed', error: { message: `${MARKER} aborted` } })
    await becomes(mill, ids['treated'] as string, { state: 'done', reason: `treated as done: done: ${MARKER} treated` })
    await becomes(mill, ids['running'] as string, { state: 'running', progress: { done: 4711, total: 9000 } })
    await becomes(mill, tick?.id ?? '', { state: 'done', payload: secret('recurring'), meta: { note: MARKER } })
    const raw = await rawTables(store).text()
    expect(raw).toContain(ids['running'])
    expect(raw).toContain('hmac k1 ')
    expect(raw).not.toContain(MARKER)
    expect(raw).not.toContain('TypeError')
    expect(raw).not.toMatch(PROGRESS)
    end.open()
    const shown = async (of: string): Promise<unknown> => {
      const { payload, meta, attempts } = (await mill.get(ids[of] as string)) as JobRecord
      return { payload, meta, log: attempts.flatMap(({ log }) => log ?? []) }
    }
    const log = (of: string): string[] => [`charging {"card":"${MARKER} ${of}"}`]
    expect(await shown('failed')).toEqual({ payload: secret('failed'), meta: { note: MARKER }, log: log('failed') })
    expect(await shown('keyed')).toEqual({ payload: secret('moved'), meta: { note: MARKER }, log: [] })
    expect(await shown('edited')).toEqual({ payload: secret('edited again'), meta: { other: MARKER }, log: [] })
    expect(await shown('rescheduled')).toMatchObject({ payload: { card: `${MARKER} moved` } })
    expect((await bulk[1]?.get())?.payload).toEqual(secret('b2'))
    expect((await mill.schedules.get('every-hour'))?.payload).toEqual(secret('recurring'))
    for await (const { payload } of mill.find({ job: charge, limit: 1 })) expect(payload).toEqual(secret('whenDone'))
  })

  test('that is a sequence has sealed items, output, errors and progress', async () => {
    const store = freshStore(folder)
    const end = gate()
    const previous: unknown[] = []
    const archive = job('archive', {
      encrypt: true,
      retry: { limit: 0 },
      run: async ({ card, of }: Secret, ctx: Context) => {
        previous.push(ctx.sequence?.previous)
        ctx.log(card)
        ctx.progress(4711, 9000)
        if (of === '2') await end.opened
        if (of === '3') throw new Error(card)
        return card
      },
    })
    const mill = await open(store, { jobs: [archive] })
    const items = ['0', '1', '2', '3', '4'].map(secret)
    const sequence = await mill.sequence(archive, items, { key: 'cards' })
    await mill.sequence(archive, [], { key: 'none' })
    await mill.start()
    await vi.waitFor(async () => expect(await sequence.progress()).toMatchObject({ done: 2, item: { done: 4711 } }))
    const raw = rawTables(store)
    expect(await raw.text()).not.toMatch(PLAIN)
    end.open()
    await vi.waitFor(async () => expect((await sequence.progress()).state).toBe('failed'))
    expect((await sequence.progress()).error).toMatchObject({ message: `${MARKER} 3`, index: 3 })
    expect(JSON.stringify((await mill.sequences()).rows)).toContain(`${MARKER} 3`)
    expect((await sequence.output()).map(({ result, log }) => [result, ...log])).toEqual(
      [0, 1, 2].map((n) => [`${MARKER} ${n}`, `${MARKER} ${n}`]),
    )
    expect(previous).toEqual([undefined, `${MARKER} 0`, `${MARKER} 1`, `${MARKER} 2`])
    expect(await raw.text()).not.toMatch(PLAIN)
  })
})

describe('An encrypted workflow', () => {
  const answered = event<Secret>('answered')
  const child = job('child', { encrypt: true, run: (p: Secret) => p, retry: { limit: 0 } })
  const flow = workflow('flow', {
    encrypt: true,
    run: async (input: Secret, w): Promise<unknown> => {
      const step = await w.step('charge', (ctx) => {
        ctx.log(input.card)
        return { charged: input.card }
      })
      const failed = await w
        .step('refuse', { retry: { limit: 0 } }, () => {
          throw new Error(input.card)
        })
        .catch((error: Error) => (error.cause as Error).message)
      const called = await w.call(child, secret('called'))
      const { card } = await w.waitFor(answered)
      if (input.of === 'first') return w.restart(secret('second'))
      return [step, failed, called, card]
    },
  })
  const send = async (mill: Mill, id: string): Promise<void> => {
    const { store, registry } = internalsOf(mill) as MillInternals
    const payload = registry.codecOf('flow').encode(secret('event'))
    const sent = await store.workflows.sendEvent({ to: { id }, name: 'answered', eventId: null, payload })
    expect(sent.did).toBe('sent')
  }

  test('seals its steps, calls, events and inputs, and goes on in another process', async () => {
    const store = freshStore(folder)
    const raw = rawTables(store)
    const before = await open(store, { jobs: [flow, child] })
    const { id } = await before.enqueue(flow, secret('first'))
    await before.start()
    await becomes(before, id, { state: 'blocked' })
    expect(await raw.text()).not.toContain(MARKER)
    await close(before)
    const after = await open(store, { jobs: [flow, child], encryption: rotated })
    await send(after, id)
    expect(await raw.text()).not.toContain(MARKER)
    await after.start()
    await becomes(after, id, { state: 'blocked', payload: secret('second') })
    await send(after, id)
    const card = secret('second').card
    expect(await after.handle(id).result({ timeout: '20s' })).toEqual([
      { charged: card },
      card,
      secret('called'),
      secret('event').card,
    ])
    expect(await raw.text()).not.toContain(MARKER)
  })

  test('is parked when a key of its log is gone, and goes on from there when it is back', async () => {
    const store = freshStore(folder)
    const before = await open(store, { jobs: [flow, child] })
    const { id } = await before.enqueue(flow, secret('kept'))
    await before.start()
    await becomes(before, id, { state: 'blocked' })
    await close(before)
    const without = await open(store, { jobs: [flow, child], encryption: { keys: { k2 }, current: 'k2' } })
    await send(without, id)
    await without.start()
    expect((await becomes(without, id, { state: 'parked' })).reason).toMatch('encrypted with key "k1"')
    await close(without)
    const back = await open(store, { jobs: [flow, child], encryption: rotated })
    await back.start()
    const { store: verbs } = internalsOf(back) as MillInternals
    await verbs.workflows.changeWorkflow({ id, verb: 'retry', reason: 'retry', keepMs: Infinity })
    expect(await back.handle(id).result({ timeout: '20s' })).toHaveLength(4)
  })
})

/** A job that returns its payload, and one mill after the other on the same store. */
const echo = job('echo', { encrypt: true, run: (p: Secret) => p })

describeAboveStore('Keys', () => {
  test('rotate: new values use the current key, and older ones are read as long as theirs is listed', async () => {
    const store = freshStore(folder)
    const before = await open(store, { jobs: [echo] })
    const old = await before.enqueue(echo, secret('old'))
    await close(before)
    const during = await open(store, { jobs: [echo], encryption: rotated })
    const young = await during.enqueue(echo, secret('young'))
    await during.start()
    expect(await Promise.all([old.id, young.id].map((id) => during.handle(id).result({ timeout: '20s' })))).toEqual([
      secret('old'),
      secret('young'),
    ])
    await close(during)
    const after = await open(store, { jobs: [echo], encryption: { keys: { k2 }, current: 'k2' } })
    // The job of the old key was run with the current one: its payload names the old key, and its result the new one.
    const raw: unknown = expect.stringMatching('"key":"k1"')
    expect(await after.get(old.id)).toMatchObject({ payload: undefined, result: secret('old'), raw })
    expect((await after.get(old.id))?.reason).toMatch('encrypted with key "k1", which is not among')
    expect(await after.get(young.id)).toMatchObject({ payload: secret('young'), result: secret('young') })
  })

  test('that are gone park their jobs by name, and a retry runs them once the key is back', async () => {
    const store = freshStore(folder)
    const items = job('items', { encrypt: true, run: (p: Secret) => p.of })
    const before = await open(store, { jobs: [echo, items] })
    const { id } = await before.enqueue(echo, secret('kept'))
    const sequence = await before.sequence(items, [secret('a'), secret('b')])
    await close(before)
    const without = await open(store, { jobs: [echo, items], encryption: { keys: { k2 }, current: 'k2' } })
    await without.start()
    const parked = { state: 'parked', attempt: 0, error: { name: 'EncryptionError', code: 'E_ENCRYPTION_KEY' } }
    expect((await becomes(without, id, parked)).reason).toBe(
      'it is encrypted with key "k1", which is not among the encryption keys of this mill (k2)',
    )
    await becomes(without, sequence.id, parked)
    expect(await rawTables(store).text()).toContain('is not among the encryption keys')
    await close(without)
    const back = await open(store, { jobs: [echo, items], encryption: rotated })
    await back.start()
    expect(await back.retry(id)).toBe(true)
    expect(await back.handle(id).result({ timeout: '20s' })).toEqual(secret('kept'))
    expect(await back.sequence(sequence.id).resume()).toBe(true)
    expect(await back.sequence(sequence.id).result({ timeout: '20s' })).toEqual({ done: 2, total: 2 })
  })

  test('a mill without any reads that the job is encrypted, and with which key', async () => {
    const store = freshStore(folder)
    const fails = job('fails', {
      encrypt: true,
      retry: { limit: 0 },
      run: ({ card }: Secret, ctx: Context): void => {
        ctx.log(card)
        ctx.progress(1, 2)
        throw new Error(card)
      },
    })
    const mill = await open(store, { jobs: [fails] })
    const { id } = await mill.enqueue(fails, secret('seen'))
    await mill.start()
    await becomes(mill, id, { state: 'failed' })
    await close(mill)
    for (const encryption of [undefined, { keys: { k2 }, current: 'k2' }]) {
      const reader = await open(store, { encryption })
      const record = (await reader.get(id)) as JobRecord
      expect(JSON.stringify(record)).not.toContain(MARKER)
      expect(record).toMatchObject({
        payload: undefined,
        progress: undefined,
        error: { name: 'EncryptedError', message: 'encrypted with key "k1"' },
        attempts: [{ error: { name: 'EncryptedError' } }],
      })
      expect(record.reason).toMatch('encrypted with key "k1"')
      await close(reader)
    }
  })

  test('keep unique values apart and comparable, also while they rotate', async () => {
    const store = freshStore(folder)
    const once = job('once', { encrypt: true, run: (p: Secret) => p, unique: { by: 'card', for: '1h' } })
    const [a, b] = [await open(store, { jobs: [once] }), await open(store, { jobs: [once], encryption: rotated })]
    const one = await a.enqueue(once, secret('x'))
    expect(await b.enqueue(once, { ...secret('y'), card: secret('x').card })).toMatchObject({
      id: one.id,
      isNew: false,
    })
    expect((await b.enqueue(once, secret('z'))).isNew).toBe(true)
  })
})

describeAboveStore('A sealed text', () => {
  test('that is changed, or copied from another job or column, does not decrypt: its job is parked', async () => {
    const store = freshStore(folder)
    const mill = await open(store, { jobs: [echo] })
    const add = async (of: string, options: object = {}): Promise<string> =>
      (await mill.enqueue(echo, secret(of), { in: '1h', ...options })).id
    const [source, copied, changed, cut] = [
      await add('source'),
      await add('copied'),
      await add('changed'),
      await add('cut'),
    ]
    await mill.schedule(echo, secret('key a'), '1h', { key: 'a' })
    const keyed = await mill.schedule(echo, secret('key b'), '1h', { key: 'b' })
    const raw = rawTables(store)
    const copy = (from: string, to: string) => (table: (name: string) => string) =>
      `update ${table('jobs')} set payload = (select payload from ${table('jobs')} where ${from}) where ${to}`
    await raw.run(copy(`id = '${source}'`, `id = '${copied}'`))
    await raw.run(copy("key = 'a'", "key = 'b'"))
    await raw.run(
      (t) => `update ${t('jobs')} set payload = replace(payload, '"v":"', '"v":"A') where id = '${changed}'`,
    )
    await raw.run((t) => `update ${t('jobs')} set payload = substr(payload, 1, 60) where id = '${cut}'`)
    await mill.start()
    for (const id of [copied, changed, cut, keyed.id]) {
      await mill.edit(id, { in: 0 })
      await becomes(mill, id, { state: 'parked', attempt: 0, error: { code: 'E_DECRYPTION' }, payload: undefined })
    }
    expect((await mill.get(source))?.payload).toEqual(secret('source'))
    // An edit leads out.
    await mill.edit(copied, { payload: secret('new') })
    expect(await mill.handle(copied).result({ timeout: '20s' })).toEqual(secret('new'))
  })
})

describeAboveStore('encrypt', () => {
  test('may be switched on and off while jobs wait', async () => {
    const store = freshStore(folder)
    const plain = job('echo', (p: Secret) => p)
    const before = await open(store, { jobs: [plain] })
    const old = await before.enqueue(plain, secret('old'))
    await close(before)
    const on = await open(store, { jobs: [echo] })
    const sealed = await on.enqueue(echo, secret('sealed'))
    expect((await on.get(old.id))?.payload).toEqual(secret('old'))
    await close(on)
    const off = await open(store, { jobs: [plain] })
    await off.start()
    expect(await off.handle(old.id).result({ timeout: '20s' })).toEqual(secret('old'))
    expect(await off.handle(sealed.id).result({ timeout: '20s' })).toEqual(secret('sealed'))
  })

  test('of a category holds for its jobs, and a job may say otherwise', async () => {
    const store = freshStore(folder)
    const cards = category('cards', { encrypt: true })
    const inherits = job('inherits', { is: [cards], run: (p: Secret) => p })
    const plain = job('plain', { is: [cards], encrypt: false, run: (p: { open: string }) => p })
    const mill = await open(store, { jobs: [inherits, plain] })
    await mill.enqueue(inherits, secret('category'))
    await mill.enqueue(plain, { open: 'to all' })
    const raw = await rawTables(store).text()
    expect(raw).not.toContain(MARKER)
    expect(raw).toContain('to all')
  })

  test('holds for a job that only the unknown handler runs, and in a transaction of the handler', async () => {
    const store = freshStore(folder)
    const producer = await open(store, {})
    const { id } = await producer.enqueue(echo, secret('unknown'))
    const own = job('own', { encrypt: true, run: (p: Secret, ctx: Context) => ctx.transaction(() => p) })
    const unknown = (p: Secret): Secret => p
    const worker = await open(store, { jobs: [own], unknown: unknown as never })
    await worker.start()
    expect(await worker.handle(id).result({ timeout: '20s' })).toEqual(secret('unknown'))
    const settled = await worker.enqueue(own, secret('own'))
    expect(await settled.result({ timeout: '20s' })).toEqual(secret('own'))
    expect(await rawTables(store).text()).not.toContain(MARKER)
  })

  /** What is above the store is the same on PostgreSQL. */
  const aboveTheStore = test.skipIf(onPostgres)

  aboveTheStore.each(['thread', 'process'] as const)('holds for the executor %s', async (executor) => {
    const store = freshStore(folder)
    const module = new URL('./isolation/handlers.mjs', import.meta.url)
    const apart = job<{ act: string; card: string }, { payload: unknown }>('apart', { encrypt: true, executor, module })
    const mill = await open(store, { jobs: [apart] })
    await mill.start()
    const payload = { act: 'echo', card: MARKER }
    expect((await (await mill.enqueue(apart, payload)).result({ timeout: '30s' })).payload).toEqual(payload)
    expect(await rawTables(store).text()).not.toContain(MARKER)
  })

  test('holds in the test kit', async () => {
    const kit = await testing({ jobs: [echo], encryption: first })
    try {
      const { id } = await kit.mill.enqueue(echo, secret('kit'))
      await kit.expectEnqueued(echo, secret('kit'))
      expect(await kit.consume()).toEqual(secret('kit'))
      expect((await kit.mill.get(id))?.result).toEqual(secret('kit'))
    } finally {
      await kit.close()
    }
  })
})

test('encryption that cannot work is refused by name, and no message repeats a key', async () => {
  const key = randomBytes(32)
  const refusal = async (encryption: unknown): Promise<string> => {
    const refused = await millrace({ store: ':memory:', logger: false, encryption: encryption as never }).catch(
      (e) => e,
    )
    expect(refused).toMatchObject({ code: 'E_INVALID_OPTIONS' })
    return (refused as Error).message
  }
  expect(await refusal({ keys: { k1: key }, current: 'k2' })).toMatch(
    'encryption.current must name one of the keys (k1), got "k2"; did you mean "k1"?',
  )
  expect(await refusal({ keys: { k1: randomBytes(16) }, current: 'k1' })).toMatch(
    'encryption.keys.k1 must be 32 bytes, as a Uint8Array, 64 hex digits or base64, got 16 bytes',
  )
  const short = randomBytes(20).toString('hex')
  expect(await refusal({ keys: { k1: short }, current: 'k1' })).not.toContain(short)
  expect(await refusal({ keys: { k1: undefined }, current: 'k1' })).toMatch(
    'got undefined (is its environment variable',
  )
  expect(await refusal({ keys: {}, current: 'k1' })).toMatch('encryption.keys must have a key')
  expect(await refusal({ current: 'k1' })).toMatch('encryption.keys is missing')
  expect(await refusal({ keys: { k1: key } })).toMatch('encryption.current is missing')
  expect(await refusal('secret')).toMatch('encryption must be an object')
  await expect(millrace({ store: ':memory:', logger: false, jobs: [echo] })).rejects.toThrow(
    'job "echo" has encrypt: true, and this mill has no keys; give millrace() encryption: { keys, current }',
  )
  const producer = await open(freshStore(folder), { encryption: undefined })
  await expect(producer.enqueue(echo, secret('x'))).rejects.toThrow('this mill has no keys')
  expect(() => job('x', { run: () => 1, encrypt: 'yes' as never })).toThrow('encrypt must be true or false, got "yes"')
})

test.skipIf(onPostgres).each([
  ['hex', (key: Buffer) => key.toString('hex')],
  ['base64', (key: Buffer) => key.toString('base64')],
  ['base64url', (key: Buffer) => key.toString('base64url')],
])('a key may be given as %s', async (_, write) => {
  const store = freshStore(folder)
  const bytes = await open(store, { jobs: [echo] })
  const { id } = await bytes.enqueue(echo, secret('bytes'))
  const text = await open(store, { jobs: [echo], encryption: { keys: { k1: write(k1) }, current: 'k1' } })
  expect((await text.get(id))?.payload).toEqual(secret('bytes'))
})

/** A logger that keeps everything it gets as one text. */
function listener(): { readonly logger: NonNullable<MillOptions['logger']>; readonly text: () => string } {
  const lines: string[] = []
  const keep = (fields: { readonly err?: unknown }, line: string): void => {
    const { err } = fields
    const error =
      err instanceof Error ? [err.name, err.message, err.stack, String(err.cause), Object.entries(err)] : err
    lines.push(JSON.stringify([line, { ...fields, err: error }]))
  }
  return { logger: { debug: keep, info: keep, warn: keep, error: keep }, text: () => lines.join('\n') }
}

describe.skipIf(onPostgres)('A log line', () => {
  const fails = (encrypt: boolean) =>
    job('fails', {
      encrypt,
      retry: { limit: 0 },
      run: ({ card }: Secret, ctx: Context): void => {
        ctx.log('charging', { card })
        ctx.log({ card }, `card=${card}`)
        throw Object.assign(new RangeError(`card: ${card}`, { cause: new Error(`card="${card}"`) }), { card })
      },
    })

  test('of an encrypted job has the class of its error and no text of it; hooks get all of it', async () => {
    const { logger, text } = listener()
    const ends: unknown[] = []
    const settle = (_: unknown, end: { readonly error?: { readonly message: string } | undefined }): void =>
      void ends.push(end.error?.message)
    const secretJob = fails(true)
    const mill = await open(freshStore(folder), { jobs: [secretJob], logger, hooks: { settle } })
    const { id } = await mill.enqueue(secretJob, secret('logged'))
    await mill.start()
    await becomes(mill, id, { state: 'failed' })
    await vi.waitFor(() => expect(text()).toContain('failed fails'))
    expect(text()).toContain('RangeError')
    expect(text()).not.toContain(MARKER)
    expect(ends).toEqual([`card: ${MARKER} logged`])
  })

  test('does not show what redact hides, and the record stays whole', async () => {
    const { logger, text } = listener()
    const open1 = fails(false)
    const mill = await open(freshStore(folder), { jobs: [open1], logger, redact: ['card'], encryption: undefined })
    const { id } = await mill.enqueue(open1, secret('logged'))
    await mill.start()
    const record = await becomes(mill, id, { state: 'failed', payload: secret('logged') })
    expect(record.error?.props).toEqual({ card: `${MARKER} logged` })
    await vi.waitFor(() => expect(text()).toContain('failed fails'))
    expect(text()).toContain('‹redacted›')
    expect(text()).not.toContain(MARKER)
  })
})
