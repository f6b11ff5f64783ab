import assert from 'node:assert/strict'
import type { OnDuplicate, PlaceRequest } from '../job/unique.js'
import type { Ask } from '../job/wish.js'
import type { Claimed, ClaimedJob, ClaimRequest, JobRow, NewJob, SettledJob, Store } from '../store/store.js'
import { makeIds } from '../world/ids.js'
import type { Ids } from '../world/ids.js'

/**
 * What every store must do, as cases that need no test framework. A store joins with one line:
 *
 *   for (const { name, run } of storeContract) test(name, async () => run(await open()))
 */
export interface ContractCase {
  readonly name: string
  readonly run: (subject: ContractSubject) => Promise<void>
}

/** An empty store whose clock the case moves by hand. */
export interface ContractSubject {
  readonly store: Store
  readonly clock: { now: number }
}

const cases: ContractCase[] = []

function contract(name: string, run: (bench: Bench) => Promise<void>): void {
  cases.push({
    name,
    run: async (subject) => {
      const bench = new Bench(subject)
      try {
        await run(bench)
      } finally {
        await subject.store.close()
      }
    },
  })
}

/** Short words for the cases: a worker's and a client's view of one store. */
export class Bench {
  readonly store: Store
  readonly clock: { now: number }
  readonly ids: Ids = makeIds(counted())

  constructor(subject: ContractSubject) {
    this.store = subject.store
    this.clock = subject.clock
  }

  job(change: Partial<NewJob> = {}): NewJob {
    const id = this.ids.jobId(this.clock.now)
    return {
      id,
      name: 'mail',
      queue: 'default',
      priority: 0,
      key: null,
      payload: '{"n":1}',
      options: null,
      due: { inMs: 0 },
      expires: null,
      ...change,
    }
  }
  async insert(
    jobs: readonly NewJob[],
    onDuplicate: OnDuplicate = 'return',
  ): Promise<readonly { id: string; isNew: boolean }[]> {
    return this.store.jobs.insertJobs(jobs, { onDuplicate, keepCancelledMs: Infinity })
  }
  async one(change: Partial<NewJob> = {}): Promise<string> {
    const job = this.job(change)
    await this.insert([job])
    return job.id
  }
  async read(id: string): Promise<JobRow> {
    const [row] = await this.store.jobs.readJobs([id])
    assert.ok(row, `job ${id} is there`)
    return row
  }
  async state(id: string): Promise<string> {
    const [row] = await this.store.jobs.readJobs([id])
    return row?.state ?? 'gone'
  }
  async worker(): Promise<string> {
    const id = this.ids.workerId()
    await this.store.leases.addWorker({ id, host: 'here', pid: 1 })
    return id
  }
  async claim(worker: string, change: Partial<ClaimRequest> = {}): Promise<Claimed> {
    const max = change.max ?? 100
    return this.store.leases.claimJobs({
      worker,
      fence: this.ids.fence(),
      names: ['mail'],
      max,
      starting: max,
      rooms: new Map(),
      suspects: 'none',
      ...change,
    })
  }
  settled(job: ClaimedJob, change: Partial<SettledJob> = {}): SettledJob {
    return {
      ref: job.ref,
      fence: job.fence,
      id: job.id,
      name: job.name,
      queue: job.queue,
      key: job.key,
      to: 'done',
      delayMs: null,
      dueAt: job.dueAt,
      attempt: job.attempt + 1,
      retries: job.retries,
      crashes: job.crashes,
      suspect: false,
      startedAt: this.clock.now,
      worker: 'w',
      result: null,
      error: null,
      reason: null,
      log: job.log,
      keepMs: Infinity,
      ...change,
    }
  }
  async settle(job: ClaimedJob, change: Partial<SettledJob> = {}): Promise<readonly number[]> {
    return (await this.store.leases.settleJobs([this.settled(job, change)], [])).refused
  }
  ask(id: string, ask: Ask): Promise<string> {
    return this.store.jobs.askJob({ id, ask, reason: `${ask} it`, keepMs: Infinity })
  }
  wishes(): Promise<readonly object[]> {
    return this.store.leases.readWishes()
  }
  pause(id: string, from: JobRow['state']): Promise<string> {
    return this.store.jobs.changeJob({ id, from, to: 'paused', exit: 'paused', keepMs: Infinity })
  }
  resume(id: string): Promise<string> {
    return this.store.jobs.changeJob({ id, from: 'paused', to: 'ready', exit: 'resumed', keepMs: Infinity })
  }
  async found(query: {
    states?: readonly JobRow['state'][]
    names?: readonly string[]
    queues?: readonly string[]
    label?: string
    limit?: number
    order?: 'newest' | 'oldest'
  }): Promise<JobRow[]> {
    const rows: JobRow[] = []
    let cursor: number | null = null
    do {
      const page: Awaited<ReturnType<Store['jobs']['findJobs']>> = await this.store.jobs.findJobs({
        order: 'newest',
        limit: 10,
        ...query,
        cursor,
      })
      rows.push(...page.rows)
      cursor = page.cursor
    } while (cursor !== null)
    return rows
  }
}

function counted(): () => number {
  let word = 0x9e3779b9
  return () => (word = (Math.imul(word, 1664525) + 1013904223) >>> 0)
}

/** A place as a job asks for it. */
function place(change: Partial<PlaceRequest> = {}): PlaceRequest {
  return { key: 'u', while: 'unfinished', onDuplicate: 'ignore', forMs: null, ...change }
}

/** A job that wants a place; its options say so too, for the day it is retried. */
function placed(change: Partial<PlaceRequest> = {}): Partial<NewJob> {
  const unique = place(change)
  return { unique, options: JSON.stringify({ unique: { key: unique.key, while: unique.while } }) }
}

/** The only job of a claim. */
export function only(claimed: Claimed): ClaimedJob {
  assert.equal(claimed.jobs.length, 1)
  return claimed.jobs[0] as ClaimedJob
}

contract('an inserted job can be read back as it was given', async (b) => {
  const id = await b.one({ priority: 3, queue: 'mailbox', options: '{"labels":["a"]}', payload: '{"to":"a@b.c"}' })
  const row = await b.read(id)
  assert.deepEqual(
    [
      row.name,
      row.queue,
      row.priority,
      row.payload,
      row.options,
      row.state,
      row.createdAt,
      row.dueAt,
      row.attempt,
      row.claimed,
    ],
    ['mail', 'mailbox', 3, '{"to":"a@b.c"}', '{"labels":["a"]}', 'ready', b.clock.now, b.clock.now, 0, false],
  )
})

contract('bytes and hostile text come back as they were', async (b) => {
  const text = JSON.stringify({ nul: '\u0000', lone: '\ud800', quote: `'"); -- x` })
  const id = await b.one({ payload: text, name: 'mail', queue: `o'brien"; --` })
  const bytes = await b.one({ payload: new Uint8Array([0, 255, 1, 254]) })
  assert.equal((await b.read(id)).payload, text)
  assert.equal((await b.read(id)).queue, `o'brien"; --`)
  assert.deepEqual([...((await b.read(bytes)).payload as Uint8Array)], [0, 255, 1, 254])
})

contract('a bulk keeps its order and every job its own time', async (b) => {
  const jobs = Array.from({ length: 250 }, (_, i) =>
    b.job({ due: { inMs: i % 3 === 0 ? 1_000 * i : 0 }, payload: `{"n":${i}}` }),
  )
  await b.insert(jobs)
  const rows = await b.store.jobs.readJobs(jobs.map((job) => job.id))
  for (const [i, row] of rows.entries()) {
    assert.equal(row?.payload, `{"n":${i}}`)
    assert.equal(row?.state, i % 3 === 0 && i > 0 ? 'scheduled' : 'ready')
    assert.equal(row?.dueAt, b.clock.now + (i % 3 === 0 ? 1_000 * i : 0))
  }
})

contract('a key is held by one unfinished job, and a second enqueue gets the first one', async (b) => {
  const first = await b.one({ key: 'k' })
  const [second] = await b.insert([b.job({ key: 'k' })])
  assert.deepEqual(second, { id: first, isNew: false })
  const [other] = await b.insert([b.job({ key: 'k', name: 'bill' })])
  assert.equal(other?.isNew, true, 'a key belongs to its job')
  assert.equal((await b.found({})).length, 2)
})

contract('a key twice in one bulk is one job', async (b) => {
  const inserted = await b.insert([b.job({ key: 'k' }), b.job({ key: 'k' }), b.job()])
  assert.deepEqual(
    inserted.map((i) => i.isNew),
    [true, false, true],
  )
  assert.equal(inserted[0]?.id, inserted[1]?.id)
})

contract('reject refuses the whole bulk and writes nothing', async (b) => {
  const first = await b.one({ key: 'k' })
  await assert.rejects(b.insert([b.job(), b.job({ key: 'k' })], 'reject'), {
    code: 'E_DUPLICATE_KEY',
    existingId: first,
  })
  assert.equal((await b.found({})).length, 1)
})

contract('replace cancels the one that waits and takes its key', async (b) => {
  const first = await b.one({ key: 'k', due: { inMs: 60_000 } })
  const [second] = await b.insert([b.job({ key: 'k', payload: '2' })], 'replace')
  assert.equal(second?.isNew, true)
  assert.equal(await b.state(first), 'cancelled')
  assert.match((await b.read(first)).reason ?? '', /replaced/)
  assert.equal((await b.store.jobs.readKeyed('mail', 'k'))?.id, second?.id)
})

contract('a running job is not replaced', async (b) => {
  const worker = await b.worker()
  await b.one({ key: 'k' })
  await b.claim(worker)
  await assert.rejects(b.insert([b.job({ key: 'k' })], 'replace'), { code: 'E_DUPLICATE_KEY' })
})

contract('move gives the one that waits a new time and payload', async (b) => {
  const first = await b.one({ key: 'k', due: { inMs: 60_000 }, payload: '1' })
  const [moved] = await b.insert([b.job({ key: 'k', due: { inMs: 5_000 }, payload: '2' })], 'move')
  assert.deepEqual(moved, { id: first, isNew: false })
  const row = await b.read(first)
  assert.deepEqual([row.dueAt, row.payload, row.state], [b.clock.now + 5_000, '2', 'scheduled'])
})

contract('an end frees the key', async (b) => {
  const worker = await b.worker()
  const first = await b.one({ key: 'k' })
  await b.settle(only(await b.claim(worker)))
  const second = await b.one({ key: 'k' })
  assert.notEqual(second, first)
  assert.equal((await b.store.jobs.readKeyed('mail', 'k'))?.id, second, 'the newest has the key')
})

contract('a place is taken by one unfinished job, and a second enqueue gets the first one', async (b) => {
  const first = await b.one(placed())
  assert.deepEqual(await b.insert([b.job(placed())]), [{ id: first, isNew: false }])
  assert.equal((await b.insert([b.job({ ...placed(), name: 'bill' })]))[0]?.isNew, true, 'a place belongs to its job')
  assert.equal((await b.insert([b.job(placed({ key: 'v' }))]))[0]?.isNew, true, 'another value is another place')
  assert.equal((await b.found({})).length, 3)
})

contract('an end frees the place, however it ended', async (b) => {
  const worker = await b.worker()
  for (const to of ['done', 'failed', 'cancelled'] as const) {
    await b.one(placed())
    const job = only(await b.claim(worker))
    assert.equal((await b.insert([b.job(placed())]))[0]?.isNew, false, 'it runs')
    await b.settle(job, { to, keepMs: to === 'done' ? 0 : Infinity })
  }
  assert.equal((await b.insert([b.job(placed())]))[0]?.isNew, true)
})

contract('while waiting: one more may wait behind the one that runs', async (b) => {
  const worker = await b.worker()
  await b.one(placed({ while: 'waiting' }))
  const running = only(await b.claim(worker))
  const [second] = await b.insert([b.job(placed({ while: 'waiting' }))])
  assert.equal(second?.isNew, true)
  assert.deepEqual(await b.insert([b.job(placed({ while: 'waiting' }))]), [{ id: second?.id, isNew: false }])
  await b.settle(running)
  assert.deepEqual(await b.insert([b.job(placed())]), [{ id: second?.id, isNew: false }])
})

contract('a window holds after the end, after the pruning, and then is over', async (b) => {
  const worker = await b.worker()
  const window = placed({ forMs: 60_000 })
  const first = await b.one(window)
  await b.settle(only(await b.claim(worker)), { keepMs: 1_000 })
  b.clock.now += 59_999
  assert.ok((await b.store.jobs.pruneJobs(100)) > 0)
  assert.equal(await b.state(first), 'gone')
  assert.deepEqual(await b.insert([b.job(window)]), [{ id: first, isNew: false }])
  await assert.rejects(b.insert([b.job(placed({ onDuplicate: 'reject' }))]), {
    code: 'E_DUPLICATE_JOB',
    existingId: first,
  })
  await assert.rejects(b.insert([b.job(placed({ onDuplicate: 'replace' }))]), { code: 'E_DUPLICATE_JOB' })
  b.clock.now += 1
  assert.equal((await b.insert([b.job(window)]))[0]?.isNew, true)
})

contract('a window is opened by the first, and lasts for ever when it is to', async (b) => {
  const worker = await b.worker()
  const first = await b.one(placed({ forMs: Infinity }))
  await b.settle(only(await b.claim(worker)))
  b.clock.now += 3_000_000_000_000
  await b.store.jobs.pruneJobs(100)
  assert.deepEqual(await b.insert([b.job(placed())]), [{ id: first, isNew: false }])
})

contract('a number given again does not make a stranger the holder of a place', async (b) => {
  const worker = await b.worker()
  const first = await b.one(placed({ forMs: 60_000 }))
  await b.one(placed({ key: 'v' }))
  for (const job of (await b.claim(worker)).jobs) await b.settle(job, { keepMs: 0 })
  const strangers = [await b.one(), await b.one()]
  assert.equal((await b.insert([b.job(placed({ key: 'v' }))]))[0]?.isNew, true, 'its job is over')
  for (const id of strangers) await b.store.jobs.changeJob({ id, from: 'ready', to: 'cancelled', keepMs: Infinity })
  assert.deepEqual(await b.insert([b.job(placed())]), [{ id: first, isNew: false }], 'its window still runs')
})

contract('a cancelled or deleted job gives up its place and its window', async (b) => {
  const window = placed({ forMs: 60_000 })
  for (const to of ['cancelled', 'gone'] as const)
    for (const keepMs of [0, Infinity]) {
      const id = await b.one(window)
      assert.equal(await b.state(id), 'ready')
      assert.equal(await b.store.jobs.changeJob({ id, from: 'ready', to, keepMs }), 'changed')
    }
  const worker = await b.worker()
  const id = await b.one({ ...window, expires: { inMs: 5 } })
  await b.settle(only(await b.claim(worker)), { to: 'cancelled', keepMs: 0 })
  assert.notEqual(await b.one(window), id)
})

contract('unique: reject refuses the whole bulk and writes nothing', async (b) => {
  const first = await b.one(placed())
  const bulk = [b.job(), b.job(placed({ key: 'v' })), b.job(placed({ onDuplicate: 'reject' }))]
  await assert.rejects(b.insert(bulk), {
    code: 'E_DUPLICATE_JOB',
    existingId: first,
    message: /is unfinished \(item 2\)/,
  })
  assert.equal((await b.found({})).length, 1)
  assert.equal((await b.insert([b.job(placed({ key: 'v' }))]))[0]?.isNew, true, 'nor was a place taken')
})

contract('unique: replace cancels the one that waits, also of its own bulk, and stays in its window', async (b) => {
  const replacing = placed({ onDuplicate: 'replace', forMs: 60_000 })
  const [first] = await b.insert([b.job({ ...replacing, key: 'k' })])
  b.clock.now += 30_000
  const bulk = await b.insert([b.job(replacing), b.job(replacing)])
  assert.deepEqual([await b.state(first?.id ?? ''), await b.state(bulk[0]?.id ?? '')], ['cancelled', 'cancelled'])
  assert.match((await b.read(first?.id ?? '')).reason ?? '', /replaced by/)
  assert.equal((await b.insert([b.job({ key: 'k' })]))[0]?.isNew, true, 'its key is free')
  const worker = await b.worker()
  for (const job of (await b.claim(worker)).jobs) await b.settle(job)
  b.clock.now += 29_999
  await assert.rejects(b.insert([b.job(replacing)]), { code: 'E_DUPLICATE_JOB', message: /ran within its window/ })
  b.clock.now += 1
  assert.equal((await b.insert([b.job(replacing)]))[0]?.isNew, true)
})

contract('unique: replace refuses what a worker has, unless only waiting ones count', async (b) => {
  const worker = await b.worker()
  const first = await b.one(placed())
  await b.claim(worker)
  await assert.rejects(b.insert([b.job(placed({ onDuplicate: 'replace' }))]), {
    code: 'E_DUPLICATE_JOB',
    message: /a worker has it/,
  })
  await b.one(placed({ onDuplicate: 'replace', while: 'waiting' }))
  assert.equal(await b.state(first), 'running')
})

contract(
  'unique: reschedule gives the one that waits the new payload, options and time, up to its window',
  async (b) => {
    const debounced = (payload: string): NewJob =>
      b.job({
        ...placed({ onDuplicate: 'reschedule', while: 'waiting', forMs: 12_000 }),
        payload,
        due: { inMs: 5_000 },
      })
    const opened = b.clock.now
    const [first] = await b.insert([debounced('1'), debounced('2')])
    for (const [payload, dueIn] of [
      ['3', 8_000],
      ['4', 11_000],
      ['5', 12_000],
      ['6', 12_000],
    ] as const) {
      b.clock.now += 3_000
      assert.deepEqual(await b.insert([debounced(payload)]), [{ id: first?.id, isNew: false }])
      const row = await b.read(first?.id ?? '')
      assert.deepEqual([row.payload, row.dueAt - opened], [payload, dueIn])
    }
    assert.equal(await b.state(first?.id ?? ''), 'ready', 'the window is over and so is the waiting')
    const worker = await b.worker()
    const running = only(await b.claim(worker))
    assert.equal(running.payload, '6')
    const [second] = await b.insert([debounced('7')])
    assert.equal(second?.isNew, true, 'what comes while it runs must run too')
    await b.settle(running)
    assert.equal((await b.read(second?.id ?? '')).dueAt, b.clock.now + 5_000)
  },
)

contract('a key is asked before a place, and nothing changes unless both agree', async (b) => {
  const keyed = await b.one({ key: 'k', ...placed({ key: 'a' }), due: { inMs: 1_000 } })
  const other = await b.one(placed({ key: 'b' }))
  const both = (change: Partial<PlaceRequest>): NewJob => b.job({ key: 'k', ...placed(change) })
  assert.deepEqual(await b.insert([both({ key: 'c' })]), [{ id: keyed, isNew: false }])
  assert.deepEqual(await b.insert([both({ key: 'b' })], 'replace'), [{ id: other, isNew: false }])
  assert.equal(await b.state(keyed), 'scheduled', 'not replaced by a job that did not come')
  await b.insert([{ ...both({ key: 'c' }), payload: '2' }], 'move')
  assert.equal((await b.read(keyed)).payload, '2')
  assert.equal((await b.insert([b.job(placed({ key: 'a' }))]))[0]?.id, keyed, 'a moved job keeps its place')
  const [third] = await b.insert([both({ key: 'a' })], 'replace')
  assert.deepEqual([third?.isNew, await b.state(keyed)], [true, 'cancelled'])
  const [fourth] = await b.insert([b.job(placed({ key: 'a', onDuplicate: 'replace' }))])
  assert.deepEqual([fourth?.isNew, await b.state(third?.id ?? '')], [true, 'cancelled'])
  assert.equal((await b.insert([b.job({ key: 'k' })]))[0]?.isNew, true)
})

contract('a retried job takes its place anew, and is refused when another unfinished one has it', async (b) => {
  const worker = await b.worker()
  const retry = (id: string, from: 'failed' | 'cancelled'): Promise<string> =>
    b.store.jobs.changeJob({ id, from, to: 'ready', due: { inMs: 0 }, keepMs: Infinity })
  const first = await b.one(placed({ forMs: 60_000 }))
  await b.settle(only(await b.claim(worker)), { to: 'failed' })
  assert.equal(await retry(first, 'failed'), 'changed', 'its own window is not in its way')
  await b.settle(only(await b.claim(worker)), { to: 'failed' })
  b.clock.now += 60_000
  const second = await b.one(placed({ forMs: 60_000 }))
  await assert.rejects(retry(first, 'failed'), { code: 'E_DUPLICATE_JOB', existingId: second })
  assert.equal(await b.state(first), 'failed')
  await b.settle(only(await b.claim(worker)))
  assert.equal(await retry(first, 'failed'), 'changed', 'a window holds back enqueues only')
  assert.deepEqual(await b.insert([b.job(placed())]), [{ id: first, isNew: false }])
  await b.store.jobs.changeJob({ id: first, from: 'ready', to: 'cancelled', keepMs: Infinity })
  const third = await b.one(placed())
  await assert.rejects(retry(first, 'cancelled'), { code: 'E_DUPLICATE_JOB', existingId: third })
})

contract('places that no longer count are swept in steps, and no others', async (b) => {
  const worker = await b.worker()
  const keys = Array.from({ length: 30 }, (_, i) => `u${i}`)
  const jobs = keys.map((key, i) => b.job(placed({ key, forMs: i % 3 === 0 ? 60_000 : null })))
  await b.insert(jobs)
  for (const job of (await b.claim(worker, { max: 20 })).jobs) await b.settle(job)
  const swept: number[] = []
  for (let i = 0; i < 6; i += 1) swept.push(await b.store.jobs.pruneJobs(4))
  assert.deepEqual(
    swept.reduce((a, n) => a + n, 0),
    13,
    'of the 20 that ended, 7 have a window',
  )
  assert.ok(swept.every((n) => n <= 4))
  const again = await b.insert(keys.map((key) => b.job(placed({ key }))))
  assert.deepEqual(
    again.map((one) => one.isNew),
    keys.map((_, i) => i < 20 && i % 3 !== 0),
  )
})

contract('a claim takes what is due, oldest first, and higher priority before it', async (b) => {
  const worker = await b.worker()
  const old = await b.one()
  b.clock.now += 1_000
  const high = await b.one({ priority: 1 })
  const young = await b.one()
  const later = await b.one({ due: { inMs: 60_000 } })
  const claimed = await b.claim(worker)
  assert.deepEqual(
    claimed.jobs.map((job) => job.id),
    [high, old, young],
  )
  assert.equal(await b.state(later), 'scheduled')
  assert.equal(await b.state(old), 'running')
  assert.equal(claimed.now, b.clock.now)
})

contract('low priority does not starve: an hour of waiting outweighs five points', async (b) => {
  const worker = await b.worker()
  const low = await b.one()
  b.clock.now += 3_600_000
  const high = await b.one({ priority: 5 })
  const claimed = await b.claim(worker)
  assert.deepEqual(
    claimed.jobs.map((job) => job.id),
    [low, high],
  )
})

contract('a claim takes only names it knows, no more than asked and no more than a queue has room for', async (b) => {
  const worker = await b.worker()
  await b.insert([
    b.job(),
    b.job(),
    b.job(),
    b.job({ queue: 'slow' }),
    b.job({ queue: 'slow' }),
    b.job({ name: 'unknown' }),
  ])
  const rooms = new Map([['slow', 1]])
  const first = await b.claim(worker, { max: 3, rooms })
  assert.equal(first.jobs.length, 3)
  const second = await b.claim(worker, { rooms: new Map([['slow', 0]]) })
  assert.ok(second.jobs.every((job) => job.queue !== 'slow'))
  const all = await b.claim(worker, { names: undefined })
  assert.ok(
    all.jobs.some((job) => job.name === 'unknown'),
    'undefined names take any',
  )
})

contract('no two claims take the same job', async (b) => {
  const [one, two] = [await b.worker(), await b.worker()]
  await b.insert(Array.from({ length: 50 }, () => b.job()))
  const claims = await Promise.all([b.claim(one, { max: 30 }), b.claim(two, { max: 30 }), b.claim(one, { max: 30 })])
  const ids = claims.flatMap((claimed) => claimed.jobs.map((job) => job.id))
  assert.equal(ids.length, 50)
  assert.equal(new Set(ids).size, 50)
})

contract('a worker that is not on the list is told that it is lost', async (b) => {
  const id = await b.one()
  const claimed = await b.claim('nobody')
  assert.deepEqual([claimed.lost, claimed.jobs.length], [true, 0])
  assert.equal(await b.state(id), 'ready')
})

contract('held jobs show as ready, and can be cancelled until they begin', async (b) => {
  const worker = await b.worker()
  const [first, second] = [await b.one(), await b.one()]
  const claimed = await b.claim(worker, { starting: 1 })
  assert.deepEqual([await b.state(first), await b.state(second)], ['running', 'ready'])
  assert.equal((await b.claim(worker)).jobs.length, 0, 'a held job is not claimed again')
  assert.equal(await b.store.jobs.changeJob({ id: second, from: 'ready', to: 'cancelled', keepMs: Infinity }), 'taken')
  const confirmed = await b.store.leases.confirmJobs(claimed.jobs)
  assert.deepEqual([...confirmed.mine], [claimed.jobs[0]?.ref])
  const held = claimed.jobs[1] as ClaimedJob
  assert.deepEqual(await b.store.leases.reportJobs([{ ...held, startedAt: 1, progress: null }]), [held.ref])
  assert.deepEqual(await b.settle(held), [held.ref])
  assert.equal(await b.state(second), 'cancelled')
})

contract('a report makes a held job running and keeps its progress', async (b) => {
  const worker = await b.worker()
  const id = await b.one()
  const job = only(await b.claim(worker, { starting: 0 }))
  assert.deepEqual(await b.store.leases.reportJobs([{ ...job, startedAt: 42, progress: '{"done":1}' }]), [])
  const row = await b.read(id)
  assert.deepEqual([row.state, row.startedAt, row.progress], ['running', 42, '{"done":1}'])
})

contract('an end goes to history with all that was decided', async (b) => {
  const worker = await b.worker()
  const id = await b.one()
  const job = only(await b.claim(worker))
  b.clock.now += 50
  assert.deepEqual(
    await b.settle(job, { to: 'failed', error: '{"name":"E"}', reason: 'why', log: '[1]', worker: 'me' }),
    [],
  )
  const row = await b.read(id)
  assert.deepEqual(
    [row.state, row.settledAt, row.error, row.reason, row.log, row.worker, row.attempt],
    ['failed', b.clock.now, '{"name":"E"}', 'why', '[1]', 'me', 1],
  )
})

contract('a retry waits for its time and then is claimed with its tries', async (b) => {
  const worker = await b.worker()
  const id = await b.one()
  await b.settle(only(await b.claim(worker)), { to: 'retrying', delayMs: 1_000, attempt: 1, retries: 1 })
  assert.equal(await b.state(id), 'retrying')
  assert.equal((await b.store.jobs.promoteJobs(10)).nextInMs, 1_000)
  assert.equal((await b.claim(worker)).jobs.length, 0)
  b.clock.now += 1_000
  assert.equal((await b.store.jobs.promoteJobs(10)).promoted, 1)
  const again = only(await b.claim(worker))
  assert.deepEqual([again.attempt, again.retries], [1, 1])
})

contract('jobs settled side by side are each recorded as themselves', async (b) => {
  const rows = Array.from({ length: 40 }, (_, i) => b.job({ due: { inMs: -i }, key: i === 3 ? 'k' : null }))
  await b.insert(rows)
  const worker = await b.worker()
  const { jobs } = await b.claim(worker, { starting: 10 })
  assert.equal(jobs.length, 40)
  b.clock.now += 5
  const settled = jobs.map((job, i) =>
    b.settled(job, {
      startedAt: b.clock.now - (i > 20 ? 1 : 2),
      worker: 'me',
      ...(i === 7 ? { result: '"seven"' } : {}),
      ...(i === 30 ? { to: 'failed', error: '{"name":"E"}' } : {}),
    }),
  )
  assert.deepEqual((await b.store.leases.settleJobs(settled, [])).refused, [])
  for (const [i, job] of jobs.entries()) {
    const row = await b.read(job.id)
    assert.deepEqual(
      [row.state, row.dueAt, row.startedAt, row.settledAt, row.attempt, row.result, row.worker],
      [
        i === 30 ? 'failed' : 'done',
        job.dueAt,
        b.clock.now - (i > 20 ? 1 : 2),
        b.clock.now,
        1,
        i === 7 ? '"seven"' : null,
        'me',
      ],
    )
  }
  const [again] = await b.insert([b.job({ key: 'k' })])
  assert.equal(again?.isNew, true, 'the key is free')
})

contract('one lost fence among many side by side is refused alone', async (b) => {
  await b.insert(Array.from({ length: 20 }, () => b.job()))
  const { jobs } = await b.claim(await b.worker(), { starting: 0 })
  const settled = jobs.map((job, i) => b.settled(i === 9 ? { ...job, fence: job.fence + 1 } : job))
  assert.deepEqual((await b.store.leases.settleJobs(settled, [])).refused, [jobs[9]?.ref])
  const states = await Promise.all(jobs.map((job) => b.state(job.id)))
  assert.deepEqual(
    states,
    jobs.map((_, i) => (i === 9 ? 'ready' : 'done')),
  )
})

contract('a job settled under its old and its new fence at once is ended by the new one', async (b) => {
  await b.insert(Array.from({ length: 6 }, () => b.job()))
  const worker = await b.worker()
  const { jobs } = await b.claim(worker)
  const [again] = jobs
  assert.ok(again)
  await b.settle(again, { to: 'ready', attempt: 0 })
  const renewed = only(await b.claim(worker))
  const settled = [...jobs.map((job) => b.settled(job, { result: '"old"' })), b.settled(renewed, { result: '"new"' })]
  assert.deepEqual((await b.store.leases.settleJobs(settled, [])).refused, [again.ref])
  assert.equal((await b.read(again.id)).result, '"new"')
  for (const job of jobs) assert.equal(await b.state(job.id), 'done')
})

contract('a settlement under a lost fence writes nothing and is named', async (b) => {
  const worker = await b.worker()
  const [first, second] = [await b.one(), await b.one()]
  const claimed = await b.claim(worker)
  const [a, c] = claimed.jobs as [ClaimedJob, ClaimedJob]
  const stale = { ...a, fence: a.fence + 1 }
  const { refused } = await b.store.leases.settleJobs([b.settled(stale), b.settled(c)], [])
  assert.deepEqual(refused, [a.ref])
  assert.deepEqual([await b.state(first), await b.state(second)], ['running', 'done'])
  assert.deepEqual(await b.settle(stale, { to: 'retrying', delayMs: 5 }), [a.ref])
  assert.equal(await b.state(first), 'running')
})

contract('settling twice does nothing the second time', async (b) => {
  const worker = await b.worker()
  const id = await b.one()
  const job = only(await b.claim(worker))
  await b.settle(job, { result: '1' })
  assert.deepEqual(await b.settle(job, { to: 'failed', result: '2' }), [job.ref])
  const row = await b.read(id)
  assert.deepEqual([row.state, row.result], ['done', '1'])
})

contract('a job given back keeps its place in the line', async (b) => {
  const worker = await b.worker()
  const first = await b.one()
  b.clock.now += 10
  await b.one()
  const claimed = await b.claim(worker, { max: 1 })
  b.clock.now += 10
  await b.settle(claimed.jobs[0] as ClaimedJob, { to: 'ready', attempt: 0 })
  assert.equal((await b.claim(worker)).jobs[0]?.id, first)
})

contract('keep nothing forgets the job with its end', async (b) => {
  const worker = await b.worker()
  const id = await b.one({ key: 'k' })
  await b.settle(only(await b.claim(worker)), { keepMs: 0 })
  assert.equal(await b.state(id), 'gone')
  assert.equal((await b.insert([b.job({ key: 'k' })]))[0]?.isNew, true)
})

contract('pruning forgets what is kept no longer, a bounded number at a time', async (b) => {
  const worker = await b.worker()
  await b.insert(Array.from({ length: 5 }, () => b.job()))
  const claimed = await b.claim(worker)
  for (const [i, job] of claimed.jobs.entries()) await b.settle(job, { keepMs: i === 4 ? Infinity : 1_000 })
  assert.equal(await b.store.jobs.pruneJobs(10), 0)
  b.clock.now += 1_000
  assert.equal(await b.store.jobs.pruneJobs(3), 3)
  assert.equal(await b.store.jobs.pruneJobs(3), 1)
  assert.equal((await b.found({})).length, 1)
})

contract('promotion is bounded, in order of time, and says when to come again', async (b) => {
  await b.insert([30, 10, 20, 99_000].map((inMs) => b.job({ due: { inMs } })))
  b.clock.now += 50
  assert.equal((await b.store.jobs.promoteJobs(2)).promoted, 2)
  const last = await b.store.jobs.promoteJobs(2)
  assert.deepEqual([last.promoted, last.nextInMs], [1, 99_000 - 50])
})

contract('a delay beyond 2^31 ms is kept to the millisecond', async (b) => {
  const inMs = 2 ** 31 + 12_345
  const id = await b.one({ due: { inMs } })
  assert.equal((await b.read(id)).dueAt, b.clock.now + inMs)
  b.clock.now += inMs - 1
  assert.equal((await b.store.jobs.promoteJobs(10)).promoted, 0)
  b.clock.now += 1
  assert.equal((await b.store.jobs.promoteJobs(10)).promoted, 1)
})

contract('expired jobs are named while they wait, and not once they are held', async (b) => {
  const worker = await b.worker()
  const waiting = await b.one({ due: { inMs: 60_000 }, expires: { inMs: 1_000 } })
  await b.one({ expires: { inMs: 1_000 } })
  await b.claim(worker)
  b.clock.now += 1_000
  const { expired } = await b.store.jobs.promoteJobs(10)
  assert.deepEqual(expired, [{ id: waiting, name: 'mail', queue: 'default', state: 'scheduled' }])
})

contract('a command is done only in the state it was decided for', async (b) => {
  const worker = await b.worker()
  const id = await b.one()
  assert.equal(await b.store.jobs.changeJob({ id, from: 'scheduled', to: 'cancelled', keepMs: Infinity }), 'stale')
  await b.claim(worker)
  assert.equal(await b.store.jobs.changeJob({ id, from: 'running', to: 'cancelled', keepMs: Infinity }), 'stale')
  assert.equal(await b.store.jobs.changeJob({ id, from: 'ready', to: 'gone', keepMs: 0 }), 'stale')
  assert.equal(await b.state(id), 'running')
})

contract('a failed job is retried by a command, keeps its history and takes its key anew', async (b) => {
  const worker = await b.worker()
  const id = await b.one({ key: 'k' })
  await b.settle(only(await b.claim(worker)), {
    to: 'failed',
    attempt: 1,
    retries: 25,
    log: '[{"startedAt":1,"endedAt":2,"worker":"w"}]',
  })
  const retry = { id, from: 'failed', to: 'ready', exit: 'retried', freshRetries: true, keepMs: Infinity } as const
  assert.equal(await b.store.jobs.changeJob(retry), 'changed')
  const row = await b.read(id)
  assert.deepEqual([row.state, row.attempt, row.retries, row.settledAt], ['ready', 1, 0, null])
  assert.equal((JSON.parse(row.log ?? '[]') as unknown[]).length, 2)
  await b.settle(only(await b.claim(worker)), { to: 'failed' })
  const other = await b.one({ key: 'k' })
  await assert.rejects(b.store.jobs.changeJob(retry), { code: 'E_DUPLICATE_KEY', existingId: other })
  assert.equal(await b.state(id), 'failed', 'the refused retry wrote nothing')
})

contract('an edit changes what it names and nothing else', async (b) => {
  const id = await b.one({ payload: '1', options: '{"labels":["x"]}', due: { inMs: 60_000 } })
  const change = {
    id,
    from: 'scheduled',
    to: 'scheduled',
    due: { inMs: 5_000 },
    keepMs: Infinity,
    edit: { payload: '2', priority: 7, queue: 'other' },
  } as const
  assert.equal(await b.store.jobs.changeJob(change), 'changed')
  const row = await b.read(id)
  assert.deepEqual(
    [row.payload, row.priority, row.queue, row.dueAt, row.options],
    ['2', 7, 'other', b.clock.now + 5_000, '{"labels":["x"]}'],
  )
})

contract('a deleted job is gone with its key', async (b) => {
  const id = await b.one({ key: 'k' })
  assert.equal(await b.store.jobs.changeJob({ id, from: 'ready', to: 'gone', keepMs: 0 }), 'changed')
  assert.equal(await b.state(id), 'gone')
  assert.equal(await b.store.jobs.readKeyed('mail', 'k'), undefined)
})

contract('beats count up; a worker off the list is told so', async (b) => {
  const worker = await b.worker()
  assert.equal(await b.store.leases.beat(worker), true)
  assert.deepEqual(await b.store.leases.readWorkers(), [{ id: worker, beat: 1 }])
  await b.store.leases.dropWorker(worker)
  assert.equal(await b.store.leases.beat(worker), false)
})

contract('a rescue frees what the dead held, as suspects, and only if its beat stood still', async (b) => {
  const worker = await b.worker()
  const id = await b.one()
  const job = only(await b.claim(worker))
  const leased = await b.store.leases.readLeases(worker)
  assert.deepEqual(
    leased.map((l) => [l.id, l.alone, l.fence]),
    [[id, false, job.fence]],
  )
  const crashed = leased.map((l) => b.settled(l, { to: 'ready', attempt: 0, suspect: true }))
  await b.store.leases.beat(worker)
  assert.equal(await b.store.leases.rescueJobs(worker, 0, crashed), null, 'its beat moved')
  assert.equal(await b.state(id), 'running')
  assert.deepEqual(await b.store.leases.rescueJobs(worker, 1, crashed), { refused: [], turned: [] })
  assert.equal(await b.state(id), 'ready')
  assert.deepEqual(await b.store.leases.readWorkers(), [])
  assert.deepEqual(await b.settle(job), [job.ref], 'the zombie is refused')
})

contract('a rescue never overwrites a job that ended meanwhile', async (b) => {
  const worker = await b.worker()
  const id = await b.one()
  const job = only(await b.claim(worker))
  const crashed = (await b.store.leases.readLeases(worker)).map((l) =>
    b.settled(l, { to: 'ready', attempt: 0, suspect: true }),
  )
  await b.settle(job, { result: '"mine"' })
  assert.deepEqual((await b.store.leases.rescueJobs(worker, 0, crashed))?.refused, [job.ref])
  const row = await b.read(id)
  assert.deepEqual([row.state, row.result], ['done', '"mine"'])
})

contract('suspects are claimed one at a time and only when asked for', async (b) => {
  const dead = await b.worker()
  await b.insert([b.job(), b.job()])
  await b.claim(dead)
  const crashed = (await b.store.leases.readLeases(dead)).map((l) =>
    b.settled(l, { to: 'ready', attempt: 0, suspect: true }),
  )
  await b.store.leases.rescueJobs(dead, 0, crashed)
  const worker = await b.worker()
  const normal = await b.one()
  const plain = await b.claim(worker)
  assert.deepEqual([plain.jobs.map((job) => job.id), plain.suspectsWait], [[normal], true])
  const alone = await b.claim(worker, { suspects: 'alone' })
  assert.deepEqual([alone.jobs.length, alone.jobs[0]?.suspect], [1, true])
  const leased = await b.store.leases.readLeases(worker)
  assert.deepEqual(new Set(leased.map((l) => l.alone)), new Set([false, true]))
  const beside = await b.claim(worker, { suspects: 'beside' })
  assert.equal(beside.jobs.length, 1)
  assert.equal((await b.claim(worker, { suspects: 'alone' })).suspectsWait, false)
})

contract('leases left behind by a worker off the list are named, and free at once', async (b) => {
  const worker = await b.worker()
  const id = await b.one()
  await b.claim(worker)
  await b.store.leases.dropWorker(worker)
  assert.deepEqual(await b.store.leases.readWorkers(), [{ id: worker, beat: null }])
  const crashed = (await b.store.leases.readLeases(worker)).map((l) =>
    b.settled(l, { to: 'ready', attempt: 0, suspect: true }),
  )
  assert.deepEqual((await b.store.leases.rescueJobs(worker, null, crashed))?.refused, [])
  assert.equal(await b.state(id), 'ready')
  assert.deepEqual(await b.store.leases.readWorkers(), [])
})

contract('a rescue leaves what was claimed after it looked, and the next one frees it', async (b) => {
  const worker = await b.worker()
  await b.one()
  await b.claim(worker)
  const seen = (await b.store.leases.readLeases(worker)).map((l) =>
    b.settled(l, { to: 'ready', attempt: 0, suspect: true }),
  )
  const late = await b.one()
  await b.claim(worker)
  assert.deepEqual((await b.store.leases.rescueJobs(worker, 0, seen))?.refused, [])
  assert.deepEqual(await b.store.leases.readWorkers(), [{ id: worker, beat: null }])
  const rest = (await b.store.leases.readLeases(worker)).map((l) =>
    b.settled(l, { to: 'ready', attempt: 0, suspect: true }),
  )
  assert.deepEqual((await b.store.leases.rescueJobs(worker, null, rest))?.refused, [])
  assert.equal(await b.state(late), 'ready')
  assert.deepEqual(await b.store.leases.readWorkers(), [])
})

contract('closed leases hold nothing more', async (b) => {
  const worker = await b.worker()
  await b.one()
  const job = only(await b.claim(worker))
  await b.store.leases.settleJobs([b.settled(job)], [job.fence])
  await b.store.leases.dropWorker(worker)
  assert.deepEqual(await b.store.leases.readWorkers(), [])
})

contract('a child of a lost run is not written', async (b) => {
  const worker = await b.worker()
  await b.one()
  const job = only(await b.claim(worker))
  const under = { onDuplicate: 'return', keepCancelledMs: 0, under: job } as const
  await b.store.jobs.insertJobs([b.job({ name: 'child' })], under)
  await b.settle(job)
  await assert.rejects(b.store.jobs.insertJobs([b.job({ name: 'child' })], under), { code: 'E_LEASE_LOST' })
  assert.equal((await b.found({ names: ['child'] })).length, 1)
})

contract('find filters, pages and orders', async (b) => {
  const worker = await b.worker()
  const ids: string[] = []
  for (let i = 0; i < 35; i += 1)
    ids.push(
      await b.one({ queue: i % 2 === 0 ? 'even' : 'odd', options: i % 5 === 0 ? '{"labels":["five","x"]}' : null }),
    )
  const claimed = await b.claim(worker, { max: 3 })
  await b.settle(claimed.jobs[0] as ClaimedJob)
  assert.deepEqual(
    (await b.found({})).map((row) => row.id),
    [...ids].reverse(),
  )
  assert.deepEqual(
    (await b.found({ order: 'oldest', limit: 4 })).map((row) => row.id),
    ids,
  )
  assert.equal((await b.found({ queues: ['odd'] })).length, 17)
  assert.equal((await b.found({ label: 'five' })).length, 7)
  assert.equal((await b.found({ states: ['running'] })).length, 2)
  assert.equal((await b.found({ states: ['done'] })).length, 1)
  assert.equal((await b.found({ states: ['done', 'running'] })).length, 3)
  assert.equal((await b.found({ names: ['nobody'] })).length, 0)
})

contract('hints tell what a commit did', async (b) => {
  const hints: unknown[] = []
  const stop = b.store.changes.onHint((hint) => hints.push(hint))
  await b.one()
  await b.one({ due: { inMs: 700 } })
  assert.deepEqual(hints, [
    { ready: true, dueInMs: null, settled: false, asked: false },
    { ready: false, dueInMs: 700, settled: false, asked: false },
  ])
  stop()
  await b.one()
  assert.equal(hints.length, 2)
})

contract('what is asked of a running job stands until it ends, and is told with its claim', async (b) => {
  const worker = await b.worker()
  const id = await b.one()
  assert.equal(await b.ask(id, 'cancel'), 'stale', 'it waits, and is cancelled at once instead')
  const job = only(await b.claim(worker))
  assert.equal(await b.ask(id, 'resume'), 'refused')
  assert.equal(await b.ask(id, 'pause'), 'noted')
  assert.equal(await b.ask(id, 'cancel'), 'noted')
  assert.equal(await b.ask(id, 'cancel'), 'noted', 'twice is the same as once')
  assert.deepEqual([await b.ask(id, 'pause'), await b.ask(id, 'resume')], ['refused', 'refused'])
  assert.deepEqual(await b.wishes(), [{ ref: job.ref, fence: job.fence, kind: 'cancel', reason: 'cancel it' }])
  assert.equal(await b.state(id), 'running')
  await b.settle(job, { result: '"done all the same"' })
  assert.equal(await b.state(id), 'done')
  assert.deepEqual([await b.wishes(), await b.ask(id, 'cancel')], [[], 'stale'])
})

contract('a cancelled job does not go on, however its claim ends', async (b) => {
  const worker = await b.worker()
  const ends = [
    { to: 'retrying', delayMs: 1_000, error: '{"name":"E"}' },
    { to: 'scheduled', delayMs: 1_000 },
    { to: 'ready', attempt: 0 },
    { to: 'ready', attempt: 0, suspect: true },
    { to: 'failed', error: '{"name":"E"}' },
    { to: 'parked', reason: 'unreadable' },
  ] as const
  for (const end of ends) {
    const id = await b.one({ key: 'k' })
    const job = only(await b.claim(worker))
    await b.ask(id, 'cancel')
    const { refused, turned } = await b.store.leases.settleJobs([b.settled(job, end)], [job.fence])
    assert.deepEqual([refused, turned.map((each) => each.to)], [[], ['cancelled']])
    const row = await b.read(id)
    const error = 'error' in end ? end.error : null
    assert.deepEqual([row.state, row.reason, row.error, row.claimed], ['cancelled', 'cancel it', error, false])
    assert.deepEqual(await b.wishes(), [])
  }
  assert.equal((await b.found({ states: ['ready', 'scheduled', 'retrying', 'parked'] })).length, 0)
})

contract('a job that is cancelled while it runs is kept for as long as the command said', async (b) => {
  const worker = await b.worker()
  const [short, none] = [await b.one(), await b.one()]
  const { jobs } = await b.claim(worker)
  await b.store.jobs.askJob({ id: short, ask: 'cancel', reason: 'r', keepMs: 1_000 })
  await b.store.jobs.askJob({ id: none, ask: 'cancel', reason: 'r', keepMs: 0 })
  const ends = jobs.map((job) => b.settled(job, { to: 'failed', keepMs: 99_000 }))
  await b.store.leases.settleJobs(ends, [])
  assert.deepEqual([await b.state(short), await b.state(none)], ['cancelled', 'gone'])
  b.clock.now += 1_000
  assert.equal(await b.store.jobs.pruneJobs(10), 1)
  assert.equal(await b.state(short), 'gone')
})

contract('a rescue honours what was asked of the jobs of the dead', async (b) => {
  const worker = await b.worker()
  const [cancelled, paused, plain] = [await b.one(), await b.one(), await b.one()]
  await b.claim(worker)
  await b.ask(cancelled, 'cancel')
  await b.ask(paused, 'pause')
  const crashed = (await b.store.leases.readLeases(worker)).map((l) =>
    b.settled(l, { to: 'ready', attempt: 0, suspect: true }),
  )
  const written = await b.store.leases.rescueJobs(worker, 0, crashed)
  assert.deepEqual(
    written?.turned.map((job) => [job.id, job.to]),
    [
      [cancelled, 'cancelled'],
      [paused, 'paused'],
    ],
  )
  assert.deepEqual(
    [await b.state(cancelled), await b.state(paused), await b.state(plain)],
    ['cancelled', 'paused', 'ready'],
  )
  assert.deepEqual(await b.wishes(), [])
  await b.resume(paused)
  assert.equal((await b.read(paused)).suspect, true, 'a pause does not clear it')
})

contract('a settlement under a lost fence takes no wish with it', async (b) => {
  const worker = await b.worker()
  const id = await b.one()
  const job = only(await b.claim(worker))
  await b.ask(id, 'cancel')
  const stale = await b.store.leases.settleJobs([b.settled({ ...job, fence: job.fence + 1 }, { to: 'ready' })], [])
  assert.deepEqual([stale.refused, stale.turned], [[job.ref], []])
  assert.equal((await b.wishes()).length, 1)
  await b.settle(job, { to: 'retrying', delayMs: 5 })
  assert.deepEqual([await b.state(id), await b.wishes()], ['cancelled', []])
})

contract('a running job that was asked to pause does so only if it would be tried again', async (b) => {
  const worker = await b.worker()
  const [again, done, failed] = [await b.one({ key: 'k' }), await b.one(), await b.one()]
  const { jobs } = await b.claim(worker)
  for (const id of [again, done, failed]) assert.equal(await b.ask(id, 'pause'), 'noted')
  await b.settle(jobs[0] as ClaimedJob, { to: 'retrying', delayMs: 5_000, attempt: 1, retries: 1, error: '{}' })
  await b.settle(jobs[1] as ClaimedJob)
  await b.settle(jobs[2] as ClaimedJob, { to: 'failed' })
  assert.deepEqual([await b.state(again), await b.state(done), await b.state(failed)], ['paused', 'done', 'failed'])
  assert.deepEqual(await b.wishes(), [])
  b.clock.now += 1_000
  await b.resume(again)
  const row = await b.read(again)
  assert.deepEqual([row.state, row.dueAt, row.attempt, row.retries], ['retrying', b.clock.now + 4_000, 1, 1])
})

contract('a wish to pause can be withdrawn', async (b) => {
  const worker = await b.worker()
  const id = await b.one()
  const job = only(await b.claim(worker))
  await b.ask(id, 'pause')
  assert.equal(await b.ask(id, 'resume'), 'noted')
  assert.deepEqual(await b.wishes(), [])
  await b.settle(job, { to: 'retrying', delayMs: 5 })
  assert.equal(await b.state(id), 'retrying')
})

contract('a paused job keeps time, tries, place and key, and nothing begins it', async (b) => {
  const worker = await b.worker()
  const first = await b.one({ key: 'k' })
  b.clock.now += 10
  const second = await b.one()
  const later = await b.one({ due: { inMs: 60_000 } })
  for (const [id, from] of [
    [first, 'ready'],
    [later, 'scheduled'],
  ] as const)
    assert.equal(await b.pause(id, from), 'changed')
  b.clock.now += 30_000
  await b.store.jobs.promoteJobs(10)
  assert.deepEqual([await b.state(first), await b.state(later)], ['paused', 'paused'])
  assert.equal((await b.insert([b.job({ key: 'k' })]))[0]?.id, first, 'it holds its key')
  await b.resume(first)
  assert.deepEqual(
    (await b.claim(worker)).jobs.map((job) => job.id),
    [first, second],
  )
  await b.resume(later)
  assert.deepEqual([await b.state(later), (await b.store.jobs.promoteJobs(10)).nextInMs], ['scheduled', 30_000])
  const exits = (JSON.parse((await b.read(first)).log ?? '[]') as { exit?: string }[]).map((line) => line.exit)
  assert.deepEqual(exits, ['paused', 'resumed'])
})

contract('a paused job can be edited, moved by its key, expire, be cancelled and be deleted', async (b) => {
  const ids: string[] = []
  for (const key of ['edit', 'move', 'expire', 'cancel', 'delete']) {
    ids.push(await b.one({ key, due: { inMs: 60_000 }, expires: key === 'expire' ? { inMs: 500 } : null }))
    await b.pause(ids.at(-1) as string, 'scheduled')
  }
  const [edited, moved, expired, cancelled, deleted] = ids as [string, string, string, string, string]
  const edit = { id: edited, from: 'paused', to: 'paused', due: { inMs: 0 }, edit: { payload: '2' } } as const
  assert.equal(await b.store.jobs.changeJob({ ...edit, keepMs: Infinity }), 'changed')
  assert.deepEqual([await b.state(edited), (await b.read(edited)).payload], ['paused', '2'])
  await b.insert([b.job({ key: 'move', due: { inMs: 0 }, payload: '3' })], 'move')
  assert.deepEqual([await b.state(moved), (await b.read(moved)).payload], ['paused', '3'])
  b.clock.now += 500
  assert.deepEqual(
    (await b.store.jobs.promoteJobs(10)).expired.map((job) => [job.id, job.state]),
    [[expired, 'paused']],
  )
  for (const [id, to] of [
    [cancelled, 'cancelled'],
    [deleted, 'gone'],
  ] as const)
    assert.equal(await b.store.jobs.changeJob({ id, from: 'paused', to, keepMs: Infinity }), 'changed')
  assert.deepEqual([await b.state(cancelled), await b.state(deleted)], ['cancelled', 'gone'])
})

contract('a held job can be paused, and its holder finds out before it begins', async (b) => {
  const worker = await b.worker()
  const id = await b.one()
  const held = only(await b.claim(worker, { starting: 0 }))
  assert.equal(await b.pause(id, 'ready'), 'taken')
  const { mine, paused } = await b.store.leases.confirmJobs([held])
  assert.deepEqual([mine.size, paused.size], [0, 0])
  assert.deepEqual(await b.settle(held, { to: 'ready' }), [held.ref], 'the holder has nothing to give back')
  assert.equal(await b.state(id), 'paused')
})

contract('nothing of a paused queue is claimed, anything else is, and a resume tells', async (b) => {
  const worker = await b.worker()
  const ids = [await b.one({ queue: 'slow' }), await b.one()]
  const { pause, held } = await b.store.queues.pauseQueue({ queue: 'slow', until: null })
  assert.deepEqual([pause, held], [{ pausedAt: b.clock.now, until: null }, false])
  await b.one({ queue: 'slow' })
  const claimed = await b.claim(worker)
  assert.deepEqual([claimed.jobs.map((job) => job.id), claimed.resumesInMs], [[ids[1]], null])
  assert.deepEqual(await b.store.queues.readPause('slow'), pause)
  const hints: boolean[] = []
  b.store.changes.onHint((hint) => hints.push(hint.ready))
  assert.deepEqual([await b.store.queues.resumeQueue('slow'), await b.store.queues.resumeQueue('slow')], [true, false])
  assert.deepEqual(hints, [true])
  assert.deepEqual([await b.store.queues.readPause('slow'), (await b.claim(worker)).jobs.length], [undefined, 2])
})

contract('a queue paused until a time goes on by itself, and a claim says when', async (b) => {
  const worker = await b.worker()
  await b.one()
  await b.store.queues.pauseQueue({ queue: 'default', until: { inMs: 1_000 } })
  b.clock.now += 400
  assert.deepEqual([(await b.claim(worker)).resumesInMs, (await b.claim(worker)).jobs.length], [600, 0])
  b.clock.now += 599
  assert.equal((await b.claim(worker)).jobs.length, 0)
  b.clock.now += 1
  assert.equal(await b.store.queues.readPause('default'), undefined)
  const claimed = await b.claim(worker)
  assert.deepEqual([claimed.jobs.length, claimed.resumesInMs], [1, null])
  const { pause } = await b.store.queues.pauseQueue({ queue: 'default', until: { at: b.clock.now + 5 } })
  assert.deepEqual(pause, { pausedAt: b.clock.now, until: b.clock.now + 5 }, 'an old pause is not remembered')
  const past = await b.store.queues.pauseQueue({ queue: 'default', until: { at: b.clock.now } })
  assert.equal(past.pause, undefined, 'a time that has come resumes')
  assert.equal(await b.store.queues.readPause('default'), undefined)
})

contract('suspects of a paused queue wait too, and keep nobody else waiting', async (b) => {
  const dead = await b.worker()
  await b.one({ queue: 'slow' })
  await b.claim(dead)
  const crashed = (await b.store.leases.readLeases(dead)).map((l) =>
    b.settled(l, { to: 'ready', attempt: 0, suspect: true }),
  )
  await b.store.leases.rescueJobs(dead, 0, crashed)
  await b.store.queues.pauseQueue({ queue: 'slow', until: null })
  const worker = await b.worker()
  const claimed = await b.claim(worker, { suspects: 'alone' })
  assert.deepEqual([claimed.jobs.length, claimed.suspectsWait], [0, false])
})

contract('held jobs of a queue that was paused are named, to go back', async (b) => {
  const worker = await b.worker()
  await b.insert([b.job({ queue: 'slow' }), b.job()])
  const { jobs } = await b.claim(worker, { starting: 0 })
  const [slow, other] = jobs as [ClaimedJob, ClaimedJob]
  assert.equal((await b.store.queues.pauseQueue({ queue: 'slow', until: { inMs: 100 } })).held, true)
  const { mine, paused } = await b.store.leases.confirmJobs(jobs)
  assert.deepEqual([[...mine], [...paused]], [[other.ref], [slow.ref]])
  await b.settle(slow, { to: 'ready', attempt: 0 })
  assert.equal((await b.claim(worker)).jobs.length, 0)
  b.clock.now += 100
  assert.deepEqual(
    (await b.claim(worker)).jobs.map((job) => [job.id, job.attempt]),
    [[slow.id, 0]],
  )
})

contract('a handler can lengthen a pause and not shorten it, and only while it has its claim', async (b) => {
  const worker = await b.worker()
  await b.one()
  const under = only(await b.claim(worker))
  const ask = async (inMs: number): Promise<number | null | undefined> =>
    (await b.store.queues.pauseQueue({ queue: 'default', until: { inMs }, under })).pause?.until
  assert.equal(await ask(500), b.clock.now + 500)
  assert.equal(await ask(100), b.clock.now + 500)
  assert.equal(await ask(900), b.clock.now + 900)
  await b.store.queues.pauseQueue({ queue: 'default', until: null })
  assert.equal(await ask(900), null)
  await b.settle(under)
  await assert.rejects(ask(900), { code: 'E_LEASE_LOST' })
})

contract('hints tell those with jobs in hand that something was asked', async (b) => {
  const worker = await b.worker()
  const [running, held, waiting] = [await b.one(), await b.one(), await b.one()]
  await b.claim(worker, { max: 2, starting: 1 })
  const asked: boolean[] = []
  b.store.changes.onHint((hint) => asked.push(hint.asked))
  await b.ask(running, 'cancel')
  await b.store.jobs.changeJob({ id: held, from: 'ready', to: 'cancelled', keepMs: Infinity })
  await b.store.queues.pauseQueue({ queue: 'default', until: null })
  await b.store.jobs.changeJob({ id: waiting, from: 'ready', to: 'cancelled', keepMs: Infinity })
  assert.deepEqual(asked, [true, true, true, false])
})

export const storeContract: readonly ContractCase[] = cases
