import { expect, test } from 'vitest'
import { Abort, job } from '../src/index.js'
import type { Mill } from '../src/index.js'
import { openedMills } from './support/opened-mills.js'

/** S8 through the public API. */

const { open } = openedMills('why')
const ends: (() => void)[] = []
const slow = job('slow', () => new Promise<void>((resolve) => void ends.push(resolve)))
const send = job('send', async (n: number) => n)
const elsewhere = job('elsewhere', async () => undefined)
const broken = job('broken', async () => {
  throw new Abort('card declined')
})
const reasonOf = async (mill: Mill, id: string): Promise<string | undefined> => (await mill.why(id))?.reason

test('waiting jobs name their time, pause, parents, queue, or that no worker runs', async () => {
  const mill = await open({ jobs: [send, slow] })
  const plain = await mill.enqueue(send, 1)
  const later = await mill.enqueue(send, 1, { in: '1h' })
  const paused = await mill.enqueue(send, 1)
  await mill.pause(paused.id, { reason: 'asked by phone' })
  const child = await mill.enqueue(send, 1, { after: [later] })
  const held = await mill.enqueue(send, 1, { queue: 'mail' })
  await mill.queue('mail').pause()
  const cancelled = await mill.enqueue(send, 1)
  await cancelled.cancel({ reason: 'ordered twice' })
  const unstarted = await mill.sequence(send, [1], { start: false })
  const answers = await mill.why([plain, later, paused, child, held, cancelled, unstarted].map(({ id }) => id))
  expect(answers.map((answer) => answer?.reason)).toEqual([
    'no-worker',
    'time',
    'paused',
    'parents',
    'queue-paused',
    'ended',
    'paused',
  ])
  expect(answers[1]?.text).toMatch(/^It is due in (1 h|59 m \d+ s) \(\d{4}-.*Z\)\.$/)
  expect(answers[2]?.text).toBe('It is paused: asked by phone.')
  expect(answers[3]).toEqual({
    reason: 'parents',
    text: `It waits for send ${later.id}, which is scheduled.`,
    blockers: [{ kind: 'job', id: later.id }],
  })
  expect(answers[4]).toMatchObject({ text: 'Queue mail is paused.', blockers: [{ kind: 'queue', id: 'mail' }] })
  expect(answers[5]?.text).toBe('It was cancelled: ordered twice.')
  expect(answers[6]?.text).toBe('It waits for start().')
})

test('with a worker: running, no free slot and who has it, a name that none knows, the end', async () => {
  const mill = await open({ jobs: [slow, broken], concurrency: 1 })
  await mill.start()
  const [worker] = (await mill.workers()).rows
  const first = await mill.enqueue(slow)
  await expect.poll(() => reasonOf(mill, first.id)).toBe('running')
  expect((await mill.why(first.id))?.blockers).toEqual([{ kind: 'worker', id: worker?.id }])
  const second = await mill.enqueue(slow)
  expect(await mill.why(second.id)).toMatchObject({
    reason: 'slot',
    text: expect.stringMatching(
      /^Every slot of the worker that can run it is taken by slow ×1, the oldest for \d+ (ms|s)\.$/,
    ),
    blockers: [{ kind: 'worker', id: worker?.id }],
  })
  const unknown = await mill.enqueue(elsewhere)
  expect((await mill.why(unknown.id))?.text).toBe(
    'The worker that is running does not know the job "elsewhere": register it in jobs.',
  )
  ends.shift()?.()
  await first.result()
  expect((await mill.why(first.id))?.text).toBe('It is done.')
  await expect.poll(() => reasonOf(mill, second.id)).toBe('running')
  const failing = await mill.enqueue(broken)
  ends.shift()?.()
  await expect.poll(() => reasonOf(mill, failing.id)).toBe('ended')
  expect((await mill.why(failing.id))?.text).toBe('It failed: Abort: card declined.')
})

test('an id that no job has gives undefined, and more than 50 are refused', async () => {
  const mill = await open({ jobs: [send] })
  expect(await mill.why('not-an-id')).toBeUndefined()
  expect(await mill.why(['01990000-0000-7000-8000-000000000000'])).toEqual([undefined])
  expect(await mill.why([])).toEqual([])
  await expect(mill.why(Array<string>(51).fill('x'))).rejects.toThrow(/ids must be at most 50, got 51/)
})

test('a job under a limit names the jobs that have its slots, and one under a rate when its turn is at the latest', async () => {
  const limited = job<string, void>('limited', {
    run: () => new Promise<void>((resolve) => void ends.push(resolve)),
    limit: { max: 2, key: (tenant) => tenant },
  })
  const rated = job('rated', { run: async (n: number) => n, rate: { max: 2, per: '1h' } })
  const mill = await open({ jobs: [limited, rated], concurrency: 10, poll: '50ms' })
  await mill.start()
  const holders = [await mill.enqueue(limited, 'a'), await mill.enqueue(limited, 'a')]
  for (const { id } of holders) await expect.poll(() => reasonOf(mill, id), { timeout: 10_000 }).toBe('running')
  const [third, other] = [await mill.enqueue(limited, 'a'), await mill.enqueue(limited, 'b')]
  const ids = holders.map(({ id }) => id)
  expect(await mill.why(third.id)).toEqual({
    reason: 'limit',
    text: `The limit of job limited for its key is reached, 2 of 2 are in flight: ${ids[0]} and ${ids[1]}.`,
    blockers: ids.map((id) => ({ kind: 'job', id })),
  })
  await expect.poll(() => reasonOf(mill, other.id), { timeout: 10_000 }).toBe('running')
  for (const end of ends.splice(0)) end()
  await expect.poll(() => reasonOf(mill, third.id), { timeout: 10_000 }).toBe('running')
  for (const end of ends.splice(0)) end()

  const first = await mill.enqueueMany(rated, [1, 2])
  await Promise.all(first.map((handle) => handle.result({ timeout: '20s' })))
  const [next, second, last] = await mill.enqueueMany(rated, [3, 4, 5])
  const answers = await mill.why([next, second, last].map((handle) => handle?.id as string))
  expect(answers.map((answer) => answer?.reason)).toEqual(['rate', 'rate', 'rate'])
  expect(answers[0]?.text).toMatch(
    /^Under the rate of job rated, 2 in 1 h, 2 have started; no job comes before it, and its turn is in (1 h|59 m \d+ s) \(.*\) at the latest/,
  )
  expect(answers[1]?.text).toMatch(/1 job comes before it, and its turn is in (1 h|59 m)/)
  expect(answers[2]?.text).toMatch(/2 jobs come before it, and its turn is in (2 h|1 h 59 m)/)
})
