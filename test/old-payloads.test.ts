import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, describe, expect, test, vi } from 'vitest'
import { job, millrace } from '../src/index.js'
import type { CheckFinding, JobFilter, JobRecord, Mill, MillOptions } from '../src/index.js'
import { freshStore } from './support/fresh-store.js'
import { rawTables } from './support/raw-tables.js'
import { testing } from './support/testing.js'

/** S10: payloads that were stored by older code, and jobs that today's code cannot run, on either store. */

const folder = mkdtempSync(join(tmpdir(), 'millrace-old-payloads-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
const mills: Mill[] = []
afterEach(async () => {
  for (const mill of mills.splice(0)) await mill.close({ deadline: 0 })
})

async function open(store: string, options: MillOptions): Promise<Mill> {
  const mill = await millrace({ store, logger: false, poll: '50ms', ...options })
  mills.push(mill)
  return mill
}

const limit = { timeout: '20s' } as const
const byText = (a: string, b: string): number => (a < b ? -1 : 1)
const becomes = (mill: Mill, id: string, wanted: object): Promise<JobRecord> =>
  vi.waitFor(
    async () => {
      const record = await mill.get(id)
      expect(record).toMatchObject(wanted)
      return record as JobRecord
    },
    { timeout: 20_000, interval: 10 },
  )

interface V0 {
  readonly name: string
}
interface V1 {
  readonly first: string
}
interface V2 extends V1 {
  readonly locale: string
}

const toV1 = ({ name }: V0): V1 => ({ first: name })
const toV2 = (payload: V1): V2 => ({ ...payload, locale: 'en' })
const greets = (run: (p: never) => unknown, upcast?: readonly ((p: never) => unknown)[]) =>
  job('greet', { run: run as (p: unknown) => unknown, upcast })
const v0 = greets((p: V0) => p)
const v1 = greets((p: V1) => p, [toV1])
const v2 = greets((p: V2) => p, [toV1, toV2])

describe('upcast', () => {
  test('turns a payload of any older version into the current one, when it runs and when it is read', async () => {
    const store = freshStore(folder)
    const oldest = await open(store, { jobs: [v0] })
    const zero = await oldest.enqueue(v0, { name: 'Ada' })
    const edited = await oldest.enqueue(v0, { name: 'Ida' }, { in: '1h', title: 'Hello {name}' })
    await oldest.recurring('daily', v0, { name: 'Eve' }, '0 9 * * *')
    const sequence = await oldest.sequence(v0, [{ name: 'a' }, { name: 'b' }])
    const older = await open(store, { jobs: [v1] })
    const one = await older.enqueue(v1, { first: 'Bob' })
    await older.schedule(v1, { first: 'Kim' }, '1h', { key: 'kim' })
    const now = await open(store, { jobs: [v2] })
    const two = await now.enqueue(v2, { first: 'Cyd', locale: 'no' })
    const ada = { first: 'Ada', locale: 'en' }
    expect((await now.get(zero.id))?.payload).toEqual(ada)
    expect((await now.schedules.get('daily'))?.payload).toEqual({ first: 'Eve', locale: 'en' })
    // An edit is of the current version; one that leaves the payload alone keeps that of the payload.
    await now.edit(edited.id, { priority: 1 })
    expect((await now.get(edited.id))?.payload).toEqual({ first: 'Ida', locale: 'en' })
    await now.edit(edited.id, { payload: { first: 'Ulf', locale: 'sv' }, in: 0 })
    const moved = await now.schedule(v2, { first: 'Kim', locale: 'de' }, 0, { key: 'kim' })
    await now.start()
    const results = [zero, one, two, edited, moved].map(({ id }) => now.handle(id).result(limit))
    expect(await Promise.all(results)).toEqual([
      ada,
      { first: 'Bob', locale: 'en' },
      { first: 'Cyd', locale: 'no' },
      { first: 'Ulf', locale: 'sv' },
      { first: 'Kim', locale: 'de' },
    ])
    await now.sequence(sequence.id).result(limit)
    expect((await now.sequence(sequence.id).output()).map(({ result }) => result)).toEqual([
      { first: 'a', locale: 'en' },
      { first: 'b', locale: 'en' },
    ])
    const tick = await now.schedules.runNow('daily')
    expect(await now.handle(tick?.id ?? '').result(limit)).toEqual({ first: 'Eve', locale: 'en' })
  })

  test('that throws, returns a promise or meets a newer version parks the job with the reason, and uses no attempt', async () => {
    const store = freshStore(folder)
    const newest = await open(store, { jobs: [v2] })
    const young = await newest.enqueue(v2, { first: 'Cyd', locale: 'no' })
    await newest.close()
    const older = await open(store, { jobs: [v1] })
    await older.start()
    const parked = await becomes(older, young.id, { state: 'parked', attempt: 0, payload: undefined })
    expect(parked.reason).toMatch('is of version 2, and this code reads up to version 1')
    const old = await older.enqueue(v1, { first: 'Bob' }, { in: '1h' })
    await older.close()
    for (const [broken, why] of [
      [() => JSON.parse('{'), 'of version 1 could not be turned into version 2: upcast[1] threw'],
      [async () => ({}), 'upcast[1] returned a promise, and must be synchronous'],
    ] as const) {
      const mill = await open(store, { jobs: [greets(() => 1, [toV1, broken])] })
      await mill.start()
      await mill.edit(old.id, { in: 0 })
      expect((await becomes(mill, old.id, { state: 'parked', attempt: 0 })).reason).toMatch(why)
      await mill.close()
    }
    const fixed = await open(store, { jobs: [v2] })
    await fixed.start()
    for (const id of [young.id, old.id]) expect(await fixed.retry(id)).toBe(true)
    expect(await fixed.handle(young.id).result(limit)).toEqual({ first: 'Cyd', locale: 'no' })
    expect(await fixed.handle(old.id).result(limit)).toEqual({ first: 'Bob', locale: 'en' })
  })

  test('comes before the schema, holds in the test kit, and is checked', async () => {
    const fits = job('fits', {
      upcast: [toV1],
      accepts: (p: V1) => typeof p.first === 'string',
      run: (p: V1) => p.first,
    })
    const kit = await testing({ jobs: [fits] })
    try {
      await expect(kit.mill.enqueue(fits, { name: 'old' } as never)).rejects.toThrow('was not accepted')
      await kit.mill.enqueue(fits, { first: 'Ada' })
      expect(await kit.consume()).toBe('Ada')
      expect(await kit.forceRetry()).toBe('Ada')
    } finally {
      await kit.close()
    }
    expect(() => job('x', { run: () => 1, upcast: (() => 1) as never })).toThrow('upcast must be a list of functions')
    expect(() => job('x', { run: () => 1, upcast: [1 as never] })).toThrow('upcast[0] must be a function, got 1')
  })
})

describe('mill.check()', () => {
  async function all(mill: Mill, filter?: JobFilter): Promise<CheckFinding[]> {
    const found: CheckFinding[] = []
    for await (const finding of mill.check(filter)) found.push(finding)
    return found
  }
  const key = (fill: number): Uint8Array => new Uint8Array(32).fill(fill)
  const k1 = { keys: { k1: key(1) }, current: 'k1' }

  test('finds unfinished jobs and schedules without a handler, or that do not decrypt, decode, upcast or fit', async () => {
    const store = freshStore(folder)
    const plain = (name: string) => job(name, (p: { n: number }) => p.n)
    const secret = job('secret', { encrypt: true, run: (p: { n: number }) => p })
    const gone = plain('gone')
    const before = await open(store, {
      jobs: [gone, plain('picky'), plain('old'), plain('torn'), secret],
      encryption: k1,
    })
    const ids: Record<string, string> = {}
    const add = async (name: string, n = 1): Promise<void> => {
      ids[name] = (await before.enqueue(name, { n }, { in: '1h' })).id
    }
    for (const name of ['gone', 'picky', 'old', 'torn', 'secret']) await add(name)
    await before.enqueue('picky', { n: 5 }, { in: '1h' })
    const copied = await before.enqueue(secret, { n: 7 }, { in: '1h', key: 'copied' })
    await before.sequence(secret, [{ n: 1 }], { start: false })
    await before.recurring('daily', gone, { n: 1 }, '0 9 * * *')
    await before.recurring('hourly', 'picky', { n: 5 }, '0 * * * *')
    await rawTables(store).run((t) => `update ${t('jobs')} set payload = '{"n":' where id = '${ids['torn']}'`)
    await rawTables(store).run(
      (t) =>
        `update ${t('jobs')} set payload = (select payload from ${t('jobs')} where id = '${ids['secret']}') where key = 'copied'`,
    )
    await before.close()
    const picky = job('picky', { accepts: (p: { n: number }) => p.n > 3, run: () => 1 })
    const torn = plain('torn')
    const old = job('old', { upcast: [() => JSON.parse('{')], run: () => 1 })
    const now = await open(store, { jobs: [picky, torn, old, secret], encryption: k1 })
    const found = await all(now)
    expect(found.map(({ job: name, problem, part }) => `${name} ${problem} ${part}`).toSorted(byText)).toEqual([
      'gone no-handler payload',
      'gone no-handler payload',
      'old not-upcast payload',
      'picky not-accepted payload',
      'secret not-decrypted payload',
      'torn not-decoded payload',
    ])
    expect(found.find(({ job: name }) => name === 'picky')).toEqual({
      problem: 'not-accepted',
      message: 'payload was not accepted: the job’s accepts() returned false for it',
      job: 'picky',
      queue: 'default',
      id: ids['picky'],
      schedule: undefined,
      state: 'scheduled',
      part: 'payload',
    })
    expect(found.find(({ schedule }) => schedule !== undefined)).toMatchObject({ schedule: 'daily', id: undefined })
    expect(await all(now, { job: picky })).toHaveLength(1)
    const [moved] = await all(now, { job: secret })
    expect(moved).toMatchObject({ id: copied.id })
    expect(moved?.message).toMatch('it does not decrypt with key "k1"')
    const rotated = await open(store, {
      jobs: [picky, torn, old, secret],
      encryption: { keys: { k2: key(2) }, current: 'k2' },
    })
    // Two jobs, and the first item of a sequence.
    expect((await all(rotated, { job: secret })).map(({ problem }) => problem)).toEqual(['no-key', 'no-key', 'no-key'])
  })

  test('reads finished jobs where it is asked to, their results too, in pages', async () => {
    const store = freshStore(folder)
    const secret = job('secret', { encrypt: true, run: (p: { n: number }) => p })
    const mill = await open(store, { jobs: [secret], encryption: k1, concurrency: 50 })
    await mill.start()
    const handles = await mill.enqueueMany(
      secret,
      Array.from({ length: 250 }, (_, n) => ({ n })),
    )
    await Promise.all(handles.map((handle) => handle.result(limit)))
    expect(await all(mill)).toEqual([])
    expect(await all(mill, { state: 'done' })).toEqual([])
    const other = await open(store, { jobs: [secret], encryption: { keys: { k2: key(2) }, current: 'k2' } })
    expect(await all(other)).toEqual([])
    const found = await all(other, { state: 'done' })
    expect(new Set(found.map(({ id, part }) => `${id} ${part}`)).size).toBe(500)
    expect(await all(other, { state: 'done', limit: 3 })).toHaveLength(6)
  })
})
