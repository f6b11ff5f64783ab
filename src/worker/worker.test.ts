import { afterEach, expect, test, vi } from 'vitest'
import { virtualMill } from '../../test/support/virtual-mill.js'
import type { VirtualMill } from '../../test/support/virtual-mill.js'
import type { MillOptions } from '../index.js'
import { job } from '../job/definition/define.js'
import type { LeasedJob, SettledJob } from '../store/store.js'

/** What a worker does when its lease or its store fails under it. */
let made: VirtualMill
afterEach(async () => {
  vi.restoreAllMocks()
  await made.mill.close({ deadline: 0 })
})

async function begin(options: MillOptions): Promise<VirtualMill> {
  made = await virtualMill({ lease: '30s', ...options })
  return made
}

const pass = (ms: number): Promise<void> => made.time.advanceTo(made.time.now + ms)

interface Attempt {
  readonly n: number
  readonly signal: AbortSignal
  readonly end: () => void
}

/** A job whose handlers wait until the test ends them. */
function waitingJob(): { readonly work: ReturnType<typeof job<number, string>>; readonly attempts: Attempt[] } {
  const attempts: Attempt[] = []
  const work = job<number, string>('work', {
    run: (n, { signal }) => new Promise((resolve) => attempts.push({ n, signal, end: () => resolve(`ran ${n}`) })),
  })
  return { work, attempts }
}

test('a worker that lost its lease aborts its handlers, gives up its claims and works under another id', async () => {
  const { work, attempts } = waitingJob()
  const { mill, store } = await begin({ jobs: [work], concurrency: 1 })
  const [first, second] = await mill.enqueueMany(work, [1, 2])
  await mill.start()
  await pass(10)
  const [worker] = await store.readWorkers()
  const claims = await store.readLeases(worker?.id ?? '')
  expect(await store.rescueJobs(worker?.id ?? '', worker?.beat ?? null, claims.map(crashed))).not.toBeNull()
  expect(attempts.map(({ n, signal }) => [n, signal.aborted])).toEqual([[1, false]])
  await pass(11_000)
  expect(attempts[0]?.signal.reason).toMatchObject({ code: 'E_LEASE_LOST' })
  attempts[0]?.end()
  await pass(1_000)
  const [renewed] = await store.readWorkers()
  expect([typeof renewed?.id, renewed?.id === worker?.id]).toEqual(['string', false])
  expect(attempts.map(({ n }) => n)).toEqual([1, 1])
  attempts[1]?.end()
  await pass(1_000)
  attempts[2]?.end()
  await pass(1_000)
  expect(attempts.map(({ n }) => n)).toEqual([1, 1, 2])
  expect([await first!.result(), await second!.result()]).toEqual(['ran 1', 'ran 2'])
  expect((await mill.get(second!.id))?.attempt).toBe(1)
})

/** What a rescuer writes for a job that it charges with nothing. */
function crashed({ ref, fence, id, name, queue, key, group, dueAt, attempt, retries, log }: LeasedJob): SettledJob {
  const claim = { ref, fence, id, name, queue, key, group, dueAt, attempt, retries, log, isParent: false }
  const end = { to: 'ready', delayMs: null, crashes: 0, streak: 0, startedAt: null, hasBegun: false } as const
  return { ...claim, ...end, worker: 'rescuer', result: null, error: null, reason: null, keepMs: Infinity }
}

test('a worker that cannot register again tries until the store answers', async () => {
  const { work, attempts } = waitingJob()
  const { mill, store } = await begin({ jobs: [work] })
  await mill.start()
  const [worker] = await store.readWorkers()
  const add = vi
    .spyOn(store, 'addWorker')
    .mockRejectedValueOnce(new Error('away'))
    .mockRejectedValueOnce(new Error('away'))
  await store.dropWorker(worker?.id ?? '')
  await mill.enqueue(work, 1)
  await pass(10)
  await pass(12_000)
  expect([add.mock.calls.length, (await store.readWorkers()).length]).toEqual([3, 1])
  attempts.at(-1)?.end()
  await pass(100)
})

test('jobs of a claim whose answer was lost are released and run, charged with nothing', async () => {
  const { work, attempts } = waitingJob()
  const { mill, store } = await begin({ jobs: [work], concurrency: 2 })
  const claim = store.claimJobs.bind(store)
  vi.spyOn(store, 'claimJobs').mockImplementationOnce(async (request) => {
    await claim(request)
    throw new Error('the answer is lost')
  })
  const voided = vi.spyOn(store, 'voidClaims').mockRejectedValueOnce(new Error('still away'))
  const [first] = await mill.enqueueMany(work, [1, 2])
  await mill.start()
  await pass(100)
  expect(attempts).toEqual([])
  await pass(2_000)
  expect(voided.mock.calls.length).toBe(2)
  expect(voided.mock.calls[1]).toEqual(voided.mock.calls[0])
  expect(attempts.map(({ n }) => n).toSorted((a, b) => a - b)).toEqual([1, 2])
  for (const { end } of attempts) end()
  await pass(100)
  expect(await mill.get(first!.id)).toMatchObject({ state: 'done', attempt: 1, crashes: 0 })
})

test('a closed mill leaves no timer behind, whatever its handlers were doing', async () => {
  const { work, attempts } = waitingJob()
  const limited = job('limited', { run: () => new Promise<void>(() => undefined), timeout: '1h' })
  const { mill, time } = await begin({ jobs: [work, limited], concurrency: 2 })
  await mill.enqueueMany(work, [1, 2, 3])
  await mill.enqueue(limited)
  await mill.enqueue(work, 4, { in: '1h' })
  await mill.start()
  await pass(1_000)
  expect(attempts.length).toBeGreaterThan(0)
  await mill.close({ deadline: '1s' })
  expect(time.next).toBeUndefined()
})

test('a stopped worker reads no requests, and a started one reads them in time without a hint', async () => {
  const { work } = waitingJob()
  const { mill, store } = await begin({ jobs: [work] })
  await mill.enqueue(work, 1)
  await mill.start()
  await pass(10)
  const read = vi.spyOn(store, 'readRequests')
  await pass(3_500)
  expect(read.mock.calls.length).toBe(3)
  const stopping = mill.stop({ deadline: 0 })
  await pass(3_000)
  await stopping
  read.mockClear()
  await pass(10_000)
  expect(read.mock.calls.length).toBe(0)
})

test('a worker with jobs under a rate claims no others until there may be some', async () => {
  const ran: string[] = []
  const rated = job<number>('rated', { run: () => void ran.push('rated'), rate: { max: 1, per: '100ms' } })
  const plain = job('plain', { run: () => void ran.push('plain') })
  const { mill, store } = await begin({ jobs: [rated, plain], poll: '1h' })
  await mill.enqueueMany(
    rated,
    Array.from({ length: 100 }, (_, n) => n),
  )
  await mill.start()
  await pass(50)
  const claims = vi.spyOn(store, 'claimJobs')
  for (let n = 0; n < 50; n += 1) await pass(100)
  expect(ran.length).toBeGreaterThan(20)
  expect(claims.mock.calls.length).toBe(0)
  await mill.enqueue(plain)
  await pass(50)
  expect(ran).toContain('plain')
})

/** Another worker takes this one for dead, and gives its jobs back. */
async function takenForDead({ store }: VirtualMill): Promise<void> {
  const [worker] = await store.readWorkers()
  const claims = await store.readLeases(worker?.id ?? '')
  expect(await store.rescueJobs(worker?.id ?? '', worker?.beat ?? null, claims.map(crashed))).not.toBeNull()
  // Until the worker has read that its lease is lost, has registered again and claims.
  await pass(15_000)
}

test('an item whose handler goes on after its lease was lost begins again only when that handler has ended', async () => {
  const { work, attempts } = waitingJob()
  const lost = await begin({ jobs: [work], concurrency: 2 })
  const sequence = await lost.mill.sequence(work, [1, 2])
  await lost.mill.start()
  await pass(10)
  await takenForDead(lost)
  await pass(5_000)
  expect(attempts.map(({ n, signal }) => [n, signal.aborted])).toEqual([[1, true]])
  attempts[0]?.end()
  await pass(2_000)
  expect(attempts.map(({ n, signal }) => [n, signal.aborted])).toEqual([
    [1, true],
    [1, false],
  ])
  attempts[1]?.end()
  await pass(2_000)
  attempts[2]?.end()
  await pass(2_000)
  expect([attempts.length, (await lost.mill.get(sequence.id))?.state]).toEqual([3, 'done'])
})

test('an item that waits for a handler whose lease was lost is given back when its worker stops', async () => {
  const { work, attempts } = waitingJob()
  const lost = await begin({ jobs: [work], concurrency: 2 })
  const { mill, store } = lost
  const sequence = await mill.sequence(work, [1, 2])
  await mill.start()
  await pass(10)
  await takenForDead(lost)
  const [worker] = await store.readWorkers()
  expect(await store.readLeases(worker?.id ?? '')).toHaveLength(1)
  const stopping = mill.stop({ deadline: '10s' })
  await pass(1_000)
  expect(await store.readLeases(worker?.id ?? '')).toEqual([])
  expect((await mill.get(sequence.id))?.state).toBe('ready')
  attempts[0]?.end()
  await pass(20_000)
  await stopping
  expect(attempts).toHaveLength(1)
})

test('held jobs begin when the store answers again after it could not confirm them', async () => {
  const begun: number[] = []
  const ends: (() => void)[] = []
  // Quick ones first: a worker holds jobs in advance when its slots become free soon.
  const work = job('work', (n: number) => {
    begun.push(n)
    return n < 50 ? undefined : new Promise<void>((end) => ends.push(end))
  })
  const { mill, store } = await begin({ jobs: [work], concurrency: 1 })
  await mill.enqueueMany(
    work,
    Array.from({ length: 50 }, (_, n) => n),
  )
  await mill.start()
  await pass(1_000)
  const confirm = vi.spyOn(store, 'confirmJobs')
  await mill.enqueueMany(work, [50, 51])
  await pass(150)
  expect(begun.at(-1)).toBe(50)
  confirm.mockClear()
  confirm.mockRejectedValueOnce(new Error('away'))
  ends[0]?.()
  await pass(50)
  expect([confirm.mock.calls.length, begun.at(-1)]).toEqual([1, 50])
  await pass(400)
  expect([confirm.mock.calls.length, begun.at(-1)]).toEqual([1, 50])
  await pass(110)
  expect(begun.at(-1)).toBe(51)
  ends[1]?.()
  await pass(100)
})
