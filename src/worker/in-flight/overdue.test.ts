import { afterEach, expect, test } from 'vitest'
import { virtualMill } from '../../../test/support/virtual-mill.js'
import { job } from '../../job/definition/define.js'
import type { Mill } from '../../mill/mill-type.js'
import type { VirtualTime } from '../../testing/simulation/virtual-time.js'
import { ABORT_GRACE_MS } from './overdue.js'

let mill: Mill
afterEach(async () => {
  await mill.close({ deadline: 0 })
})

async function begin(options: object): Promise<VirtualTime> {
  const made = await virtualMill(options)
  mill = made.mill
  return made.time
}

const state = async (id: string): Promise<string | undefined> => (await mill.get(id))?.state

test.each([
  ['timed out', { timeout: '10s' }, 10_000, 'retrying'],
  ['was cancelled', {}, 0, 'cancelled'],
] as const)(
  'a handler that %s and does not come back is settled after its grace, and keeps its slot until it ends',
  async (why, options, toldAfterMs, settled) => {
    const began: number[] = []
    const end: (() => void)[] = []
    const work = job('work', {
      run: async (n: number) => {
        began.push(n)
        if (n === 1) await new Promise<void>((resolve) => end.push(resolve))
      },
      retry: { backoff: { start: '1h' } },
      ...options,
    })
    const time = await begin({ jobs: [work], concurrency: 1 })
    const [first, second] = await mill.enqueueMany(work, [1, 2])
    await mill.start()
    await time.advanceTo(time.now + 10)
    expect(began).toEqual([1])
    if (why === 'was cancelled') expect(await mill.cancel(first!.id)).toBe(true)
    await time.advanceTo(time.now + toldAfterMs + ABORT_GRACE_MS - 100)
    expect([await state(first!.id), began]).toEqual(['running', [1]])
    await time.advanceTo(time.now + 200)
    expect([await state(first!.id), began]).toEqual([settled, [1]])
    for (const resolve of end) resolve()
    await time.advanceTo(time.now + 100)
    expect([await state(first!.id), began]).toEqual([settled, [1, 2]])
    await second!.result()
  },
)

test('a cancel after the signal was aborted by the timeout cancels the job instead of retrying it', async () => {
  const late: (() => void)[] = []
  const work = job('work', {
    run: (_: undefined, ctx) =>
      new Promise<never>((_resolve, reject) => late.push(() => reject(ctx.signal.reason as Error))),
    timeout: '10s',
  })
  const time = await begin({ jobs: [work] })
  const { id } = await mill.enqueue(work)
  await mill.start()
  await time.advanceTo(time.now + 11_000)
  expect(await mill.cancel(id)).toBe(true)
  for (const reject of late) reject()
  await time.advanceTo(time.now + 100)
  expect(await mill.get(id)).toMatchObject({ state: 'cancelled', error: { name: 'TimeoutError' } })
})
