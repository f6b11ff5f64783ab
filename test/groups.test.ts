import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, afterEach, describe, expect, test, vi } from 'vitest'
import { GroupSealedError, job, millrace } from '../src/index.js'
import type { EnqueueOptions, GroupHandle, Mill, MillOptions } from '../src/index.js'
import { chooseLibrary } from '../src/store/sqlite/connection/library.js'
import { useProcesses } from './processes/child.js'
import { describeAboveStore } from './support/above-store.js'
import { freshStore, onPostgres } from './support/fresh-store.js'

/** G1 through the public API: progress, the seal, whenDone, and commands on the whole group. */

const folder = mkdtempSync(join(tmpdir(), 'millrace-groups-'))
const processes = useProcesses()
afterAll(() => rmSync(folder, { recursive: true, force: true }))
const mills: Mill[] = []
afterEach(async () => {
  for (const mill of mills.splice(0)) await mill.close({ deadline: 0 })
})

async function open(options: MillOptions = {}): Promise<Mill> {
  const jobs = [send, report, strict, ...((options.jobs as never[] | undefined) ?? [])]
  const mill = await millrace({ store: freshStore(folder), logger: false, poll: '200ms', ...options, jobs })
  mills.push(mill)
  return mill
}

const send = job('send', {
  run: async ({ to }: { to: string }) => {
    if (to === 'nobody') throw new Error('no such address')
    return to
  },
  retry: { limit: 0 },
})
const report = job('report', async (p: { campaign: string }) => p.campaign)

const strict = job('strict', { run: async (p: { campaign: string }) => p.campaign, unique: { onDuplicate: 'reject' } })

const tos = (length: number): { to: string }[] => Array.from({ length }, (_, i) => ({ to: `${i}@example.com` }))

async function reports(mill: Mill): Promise<string[]> {
  const found: string[] = []
  for await (const each of mill.find({ job: report })) found.push((each.payload as { campaign: string }).campaign)
  return found
}
const completes = (group: GroupHandle): Promise<void> =>
  vi.waitFor(async () => expect((await group.progress()).completedAt).toBeInstanceOf(Date), {
    timeout: 30_000,
    interval: 20,
  })
const caught = (call: () => Promise<unknown>): Promise<Error> =>
  Promise.resolve()
    .then(call)
    .then(
      () => Promise.reject(new Error('it resolved')),
      (error: Error) => error,
    )
function gate(): { readonly opened: Promise<void>; open(): void } {
  let open = (): void => undefined
  const opened = new Promise<void>((resolve) => (open = resolve))
  return { opened, open: () => open() }
}

test.each(['pause', 'resume', 'cancel', 'retryFailed'] as const)(
  '%s applies to all members: options, which would be ignored, are refused',
  async (verb) => {
    const mill = await open()
    await mill.enqueueMany(send, tos(3), { group: 'spring' })
    const call = mill.group('spring')[verb] as (options: object) => Promise<number>
    await expect(call({ queue: 'sms' })).rejects.toThrow(/group "spring"\.\w+\(\): options\.queue is not an option/)
    expect(await mill.group('spring').progress()).toMatchObject({ ready: 3 })
  },
)

describe('the progress of a group', () => {
  test('is counted by state and by queue, while it runs and after', async () => {
    const held = gate()
    const wait = job('wait', () => held.opened)
    const mill = await open({ jobs: [wait] as never, concurrency: 2 })
    const group = mill.group('spring')
    expect(await group.progress()).toMatchObject({ total: 0, unfinished: 0, sealed: false, queues: {} })
    await mill.enqueueMany(send, [...tos(4), { to: 'nobody' }], { group: 'spring' })
    await mill.enqueue(wait, undefined, { group: 'spring', queue: 'slow' })
    await mill.schedule(send, { to: 'later' }, '1h', { group: 'spring', queue: 'slow' })
    await mill.enqueue(send, { to: 'other' }, { group: 'summer' })
    expect(await group.progress()).toMatchObject({ total: 7, ready: 6, scheduled: 1, unfinished: 7 })
    await mill.start()
    await vi.waitFor(
      async () => expect(await group.progress()).toMatchObject({ done: 4, failed: 1, running: 1, ready: 0 }),
      15_000,
    )
    const { queues } = await group.progress()
    expect(queues['default']).toMatchObject({ total: 5, done: 4, failed: 1, unfinished: 0 })
    expect(queues['slow']).toMatchObject({ total: 2, running: 1, scheduled: 1, unfinished: 2 })
    expect(await group.progress({ queue: 'slow' })).toMatchObject({ total: 2, running: 1, done: 0 })
    held.open()
    await vi.waitFor(
      async () => expect(await group.progress()).toMatchObject({ done: 5, running: 0, scheduled: 1 }),
      15_000,
    )
  })

  test('is exact for twenty thousand members, without counting them', { timeout: 120_000 }, async () => {
    const mill = await open()
    await mill.enqueueMany(send, tos(20_000), { group: 'big' })
    const group = mill.group('big')
    expect(await group.progress()).toMatchObject({ total: 20_000, ready: 20_000, unfinished: 20_000 })
  })

  test('is in records and usable in find()', async () => {
    const mill = await open()
    const [handle] = await mill.enqueueMany(send, tos(3), { group: 'spring', labels: ['x'] })
    await mill.enqueueMany(send, tos(2))
    expect((await handle?.get())?.group).toBe('spring')
    const ids = []
    for await (const found of mill.find({ group: 'spring', label: 'x' })) ids.push(found.id)
    expect([ids.length, ids.at(-1)]).toEqual([3, handle?.id])
  })
})

describe('the whenDone job of a group', () => {
  test('is enqueued once, after the seal and the last member, though one of them failed', async () => {
    const mill = await open()
    await mill.start()
    const group = mill.group('spring', { whenDone: [report, { campaign: 'spring' }, { labels: ['end'] }] })
    await mill.enqueueMany(send, [...tos(5), { to: 'nobody' }], { group: 'spring' })
    await vi.waitFor(async () => expect((await group.progress()).unfinished).toBe(0), 15_000)
    expect(await reports(mill)).toEqual([])
    expect([await group.seal(), await group.seal()]).toEqual([true, false])
    await completes(group)
    expect(await reports(mill)).toEqual(['spring'])
    expect(await group.retryFailed()).toBe(1)
    await vi.waitFor(async () => expect(await group.progress()).toMatchObject({ failed: 1, unfinished: 0 }), 15_000)
    expect(await reports(mill)).toEqual(['spring'])
  })

  test('is enqueued at once where there are no members, by any started process', async () => {
    const store = freshStore(folder)
    const idle = await open({ store })
    const group = idle.group('empty', { whenDone: [report, { campaign: 'empty' }] })
    expect(await group.seal()).toBe(true)
    expect((await group.progress()).completedAt).toBeUndefined()
    const other = await open({ store })
    await other.start()
    await completes(group)
    expect(await reports(idle)).toEqual(['empty'])
  })

  test('waits for what a running member adds; other calls are refused, and nothing of them is written', async () => {
    const sealed = gate()
    const family = job('family', async (children: number, ctx) => {
      await sealed.opened
      for (let i = 0; i < children; i += 1) await ctx.enqueue(family, children - 1, { group: 'tree' })
    })
    const stranger = job('stranger', {
      retry: { limit: 0 },
      run: async (_: undefined, ctx) => {
        await sealed.opened
        await ctx.enqueue(send, { to: 'x' }, { group: 'tree' })
      },
    })
    const mill = await open({ jobs: [family, stranger] as never })
    const group = mill.group('tree', { whenDone: [report, { campaign: 'tree' }] })
    await mill.start()
    await mill.enqueue(family, 3, { group: 'tree' })
    const outside = await mill.enqueue(stranger)
    await vi.waitFor(async () => expect((await group.progress()).running).toBe(1), 15_000)
    await group.seal()
    const refused = await caught(() => mill.enqueueMany(send, tos(2), (_, i) => (i === 1 ? { group: 'tree' } : {})))
    expect(refused).toBeInstanceOf(GroupSealedError)
    expect(refused).toMatchObject({ code: 'E_GROUP_SEALED', group: 'tree' })
    sealed.open()
    await completes(group)
    expect(await group.progress()).toMatchObject({ total: 16, done: 16, sealed: true })
    expect(await reports(mill)).toEqual(['tree'])
    await expect(outside.result()).rejects.toThrow(/sealed/)
    expect(await caught(() => mill.enqueue(send, { to: 'late' }, { group: 'tree' }))).toMatchObject({
      code: 'E_GROUP_SEALED',
    })
    const sent = []
    for await (const found of mill.find({ job: send })) sent.push(found)
    expect(sent).toEqual([])
  })

  test('is enqueued once for each of many groups whose members end in several mills at the same time', async () => {
    const store = freshStore(folder)
    const crew = await Promise.all(Array.from({ length: 3 }, () => open({ store, concurrency: 4 })))
    const [mill] = crew as [Mill]
    const names = Array.from({ length: 20 }, (_, i) => `g${i}`)
    for (const name of names) {
      await mill.enqueueMany(send, tos(6), { group: name })
      await mill.group(name, { whenDone: [report, { campaign: name }] }).seal()
    }
    await Promise.all(crew.map((each) => each.start()))
    for (const name of names) await completes(mill.group(name))
    expect((await reports(mill)).sort()).toEqual(names.toSorted())
  })

  test('is enqueued once by a fleet of processes, one of which is killed', { timeout: 120_000 }, async () => {
    const store = freshStore(folder)
    const worker = `
      const send = job('send', () => new Promise((next) => setTimeout(next, Math.random() * 4)))
      const report = job('report', () => 1)
      const mill = await millrace({ store: file, jobs: { send, report }, logger: false, lease: '1s', poll: '100ms' })
      await mill.start()
      say('up')`
    const mill = await open({ store })
    const group = mill.group('fleet', { whenDone: [report, { campaign: 'fleet' }] })
    await mill.enqueueMany(send, tos(600), { group: 'fleet' })
    await group.seal()
    const fleet = [processes().run(worker, store), processes().run(worker, store), processes().run(worker, store)]
    await Promise.all(fleet.map((child) => child.receives('up')))
    await fleet[0]?.kill()
    await completes(group)
    expect(await group.progress()).toMatchObject({ total: 600, unfinished: 0 })
    expect(await reports(mill)).toEqual(['fleet'])
    for (const child of fleet) await child.kill()
  })

  test('is enqueued though every process died after the last member ended', { timeout: 120_000 }, async () => {
    const store = freshStore(folder)
    const mill = await open({ store })
    const group = mill.group('last', { whenDone: [report, { campaign: 'last' }] })
    await mill.enqueue('send', { to: 'one' }, { group: 'last' })
    await group.seal()
    // Code after a commit in the same turn runs before any timer, and so before any promotion.
    const child = processes().run(
      `const send = job('send', async (p, ctx) => {
         await ctx.transaction(() => 1)
         process.kill(process.pid, 'SIGKILL')
       })
       const mill = await millrace({ store: file, jobs: [send, job('report', () => 1)], logger: false })
       await mill.start()`,
      store,
    )
    expect(await child.exited).toBe('SIGKILL')
    expect(await group.progress()).toMatchObject({ done: 1, unfinished: 0, sealed: true, completedAt: undefined })
    expect(await reports(mill)).toEqual([])
    await mill.start()
    await completes(group)
    expect(await reports(mill)).toEqual(['last'])
  })
})

test('a group without a whenDone job is sealed in a transaction, if and only if that commits', async () => {
  const store = freshStore(folder)
  const mill = await open({ store })
  const group = mill.group('plain')
  await inTransaction(store, 'rollback', async (tx) => expect(await group.seal({ tx })).toBe(true))
  expect(await group.progress()).toMatchObject({ sealed: false })
  await inTransaction(store, 'commit', async (tx) => expect(await group.seal({ tx })).toBe(true))
  expect(await group.progress()).toMatchObject({ sealed: true })
  expect(await group.seal()).toBe(false)
})

describe('the whenDone job of a group with parents', () => {
  const afterwards = (mill: Mill, name: string, options: EnqueueOptions): GroupHandle =>
    mill.group(name, { whenDone: [report, { campaign: name }, options] })

  test('is refused by the seal when a parent is missing, also in a transaction', async () => {
    const store = freshStore(folder)
    const mill = await open({ store })
    const group = afterwards(mill, 'spring', { after: [[send, 'typo']] })
    expect(await caught(() => group.seal())).toMatchObject({
      code: 'E_PARENT_MISSING',
      missing: [{ name: 'send', key: 'typo' }],
    })
    await inTransaction(store, 'commit', async (tx) => {
      expect(await caught(() => group.seal({ tx }))).toMatchObject({ code: 'E_PARENT_MISSING' })
    })
    expect((await group.progress()).sealed).toBe(false)
    await mill.schedule(send, { to: 'x' }, '1h', { key: 'typo' })
    expect(await group.seal()).toBe(true)
  })

  test('is cancelled or runs without it when a parent is deleted before the end, and no other group is blocked', async () => {
    const mill = await open()
    const [first, other] = [await mill.enqueue(send, { to: 'x' }, { in: '1h' }), mill.group('other')]
    const [waits, runs] = [
      afterwards(mill, 'waits', { after: [first] }),
      afterwards(mill, 'runs', { after: [first], onParentFailure: 'run' }),
    ]
    for (const group of [waits, runs, other]) {
      await mill.enqueueMany(send, tos(2), { group: group.id })
      await group.seal()
    }
    expect(await mill.delete(first.id)).toBe(true)
    await mill.start()
    for (const group of [waits, runs, other]) await completes(group)
    await (await mill.schedule(send, { to: 'soon' }, '50ms')).result({ timeout: '15s' })
    const ends = new Map<string, [string, string | undefined]>()
    await vi.waitFor(async () => {
      for await (const { payload, state, reason } of mill.find({ job: report }))
        ends.set((payload as { campaign: string }).campaign, [state, reason])
      expect(Object.fromEntries(ends)).toEqual({
        waits: ['cancelled', `its parent ${first.id} is gone: it was deleted or pruned`],
        runs: ['done', undefined],
      })
    }, 15_000)
  })
})

test('a group whose whenDone job cannot be read blocks no other group, and the log names it', async () => {
  const store = freshStore(folder)
  const told: string[] = []
  const quiet = (): void => undefined
  const logger = { debug: quiet, info: quiet, warn: quiet, error: (_: object, text: string) => void told.push(text) }
  const mill = await open({ store, logger })
  const [broken, sound] = ['broken', 'sound'].map((id) => mill.group(id, { whenDone: [report, { campaign: id }] }))
  for (const group of [broken, sound]) expect(await group?.seal()).toBe(true)
  await damage(store, 'broken')
  await mill.start()
  await completes(sound as GroupHandle)
  await (await mill.schedule(send, { to: 'soon' }, '50ms')).result({ timeout: '15s' })
  await vi.waitFor(() => expect(told.join()).toContain('cannot enqueue what follows group "broken" for now'), 15_000)
  expect([await reports(mill), (await broken?.progress())?.completedAt]).toEqual([['sound'], undefined])
})

describe('commands on a whole group', () => {
  test('pause, resume and cancel every member and no other job, and return how many', { timeout: 60_000 }, async () => {
    const mill = await open()
    const group = mill.group('spring')
    await mill.enqueueMany(send, tos(450), { group: 'spring' })
    await mill.schedule(send, { to: 'later' }, '1h', { group: 'spring' })
    const [other] = await mill.enqueueMany(send, tos(1))
    expect([await group.pause(), await group.pause()]).toEqual([451, 0])
    expect(await group.progress()).toMatchObject({ paused: 451, ready: 0 })
    expect((await other?.get())?.state).toBe('ready')
    expect([await group.resume(), await group.resume()]).toEqual([451, 0])
    expect(await group.progress()).toMatchObject({ ready: 450, scheduled: 1 })
    expect([await group.cancel(), await group.cancel()]).toEqual([451, 0])
    expect(await group.progress()).toMatchObject({ cancelled: 451, unfinished: 0 })
    expect((await other?.get())?.state).toBe('ready')
  })

  test('retryFailed runs failed members again, and leaves out one whose key is held', async () => {
    const mill = await open()
    await mill.start()
    const group = mill.group('spring')
    await mill.enqueueMany(send, [{ to: 'nobody' }, { to: 'nobody' }, { to: 'a' }], (_, i) => ({
      group: 'spring',
      ...(i === 0 ? { key: 'k' } : {}),
    }))
    await vi.waitFor(async () => expect(await group.progress()).toMatchObject({ failed: 2, done: 1 }), 15_000)
    await mill.schedule(send, { to: 'b' }, '1h', { key: 'k' })
    expect(await group.retryFailed()).toBe(1)
  })

  test('cancel requests the cancel of running members, and their end is counted', async () => {
    const begun = gate()
    const wait = job('wait', async (_: undefined, ctx) => {
      begun.open()
      await new Promise((_, no) => ctx.signal.addEventListener('abort', () => no(new Error('told'))))
    })
    const mill = await open({ jobs: [wait] as never })
    const group = mill.group('spring', { whenDone: [report, { campaign: 'spring' }] })
    await mill.start()
    await mill.enqueue(wait, undefined, { group: 'spring' })
    await group.seal()
    await begun.opened
    expect(await group.cancel()).toBe(1)
    await completes(group)
    expect(await group.progress()).toMatchObject({ cancelled: 1, total: 1 })
  })
})

describe('a group in a caller’s transaction', () => {
  test('has the members and the seal if and only if it commits', async () => {
    const store = freshStore(folder)
    const mill = await open({ store })
    const group = mill.group('spring', { whenDone: [report, { campaign: 'spring' }] })
    await inTransaction(store, 'rollback', async (tx) => {
      await mill.enqueueMany(send, tos(3), { group: 'spring', tx })
      expect(await group.seal({ tx })).toBe(true)
    })
    expect(await group.progress()).toMatchObject({ total: 0, sealed: false })
    await inTransaction(store, 'commit', async (tx) => {
      await mill.enqueueMany(send, tos(3), { group: 'spring', tx })
      expect([await group.seal({ tx }), await group.seal({ tx })]).toEqual([true, false])
      expect(await caught(() => mill.enqueue(send, { to: 'x' }, { group: 'spring', tx }))).toMatchObject({
        code: 'E_GROUP_SEALED',
      })
    })
    expect(await group.progress()).toMatchObject({ total: 3, ready: 3, sealed: true })
    await mill.start()
    await completes(group)
    expect(await reports(mill)).toEqual(['spring'])
  })

  test('counts a member that its handler settled in a transaction of its own', async () => {
    const careful = job('careful', async (_: undefined, ctx) => ctx.transaction(() => 1))
    const mill = await open({ jobs: [careful] as never })
    await mill.start()
    const group = mill.group('spring', { whenDone: [report, { campaign: 'spring' }] })
    await mill.enqueue(careful, undefined, { group: 'spring' })
    await group.seal()
    await completes(group)
    expect(await group.progress()).toMatchObject({ done: 1, total: 1 })
  })
})

describeAboveStore('wrong input for a group', () => {
  test.each([
    [(mill: Mill) => mill.group(''), /id must have 1 to 200 characters/],
    [(mill: Mill) => mill.group(5 as never), /id must be text, got 5/],
    [(mill: Mill) => mill.group('g', { whendone: [] } as never), /did you mean "whenDone"/],
    [(mill: Mill) => mill.group('g', { whenDone: report } as never), /whenDone must be \[job, payload, options\]/],
    [(mill: Mill) => mill.group('g', { whenDone: [] } as never), /whenDone must be .*, got an array of 0/],
  ])('throws at once: %#', async (call, message) => {
    const mill = await open()
    expect(() => call(mill)).toThrow(message)
  })

  test.each([
    [(mill: Mill) => mill.group('g').progress({ queu: 'x' } as never), /did you mean "queue"/],
    [(mill: Mill) => mill.group('g').seal({ tx: 5 }), /tx must be the handle/],
    [(mill: Mill) => mill.group('g', { whenDone: ['nobody', 1] }).seal(), /no job named "nobody"/],
    [(mill: Mill) => mill.group('g', { whenDone: [report, (() => 1) as never] }).seal(), /payload/],
    [(mill: Mill) => mill.group('g', { whenDone: [report, { campaign: 'x' }, { tx: {} }] }).seal(), /belongs to seal/],
    [
      (mill: Mill) => mill.group('g', { whenDone: [report, { campaign: 'x' }, { group: 'h' }] }).seal(),
      /options\.group/,
    ],
    [
      (mill: Mill) =>
        mill.group('g', { whenDone: [report, { campaign: 'x' }, { key: 'k', onDuplicate: 'reject' }] }).seal(),
      /must be "return" or "replace"/,
    ],
    [
      (mill: Mill) =>
        mill
          .group('g', { whenDone: [report, { campaign: 'x' }, { unique: { onDuplicate: 'reject' }, tx: {} }] })
          .seal(),
      /belongs to seal[^]*options\.unique\.onDuplicate must be "ignore", "replace" or "reschedule": the store enqueues this job later/,
    ],
    [
      (mill: Mill) => mill.group('g', { whenDone: [strict, { campaign: 'x' }, { unique: { for: '1h' } }] }).seal(),
      /onDuplicate must be .*, and its job says "reject"/,
    ],
    [(mill: Mill) => mill.enqueue(send, { to: 'x' }, { group: 'a\nb' }), /group must not have control characters/],
    [
      (mill: Mill) => mill.edit('0198a1b2-0000-7000-8000-000000000000', { group: 'h' } as never),
      /group cannot be edited/,
    ],
  ])('rejects, and nothing is written: %#', async (call, message) => {
    const mill = await open()
    await expect(call(mill)).rejects.toThrow(message)
    expect((await mill.group('g').progress()).sealed).toBe(false)
  })

  test('is not a job with "reject", where whenDone overrides it', async () => {
    const mill = await open()
    for (const [id, unique] of [
      ['g', false],
      ['h', { onDuplicate: 'ignore' }],
    ] as const)
      expect(await mill.group(id, { whenDone: [strict, { campaign: id }, { unique }] }).seal()).toBe(true)
  })
})

/** Damages a row, as a fault of the disk or a manual change might. */
async function damage(store: string, group: string): Promise<void> {
  const schema = /schema=(.*)/.exec(store)?.[1]
  const table = onPostgres ? `${schema}.groups` : 'millrace_groups'
  const sql = `update ${table} set when_done = '{' where grp = '${group}'`
  await inTransaction(store, 'commit', async (tx) => {
    if (onPostgres) await (tx as pg.Client).query(sql)
    else (tx as { exec(sql: string): void }).exec(sql)
  })
}

/** A transaction of an app, on a connection of its own. */
async function inTransaction(
  store: string,
  end: 'commit' | 'rollback',
  work: (tx: unknown) => Promise<void>,
): Promise<void> {
  if (onPostgres) {
    const client = new pg.Client(store.replace(/\?.*/, ''))
    await client.connect()
    await client.query('begin')
    await work(client)
    await client.query(end)
    await client.end()
    return
  }
  const handle = new (chooseLibrary().open)(store)
  handle.exec('begin immediate')
  await work(handle)
  handle.exec(end)
  handle.close()
}
