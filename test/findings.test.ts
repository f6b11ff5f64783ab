import { copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { job, millrace } from '../src/index.js'
import { simulate } from '../src/testing/index.js'

/** What people who set out to break it found; each stays mended. */
const folder = mkdtempSync(join(tmpdir(), 'millrace-findings-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
const plain = job('plain', async () => 1)

test('a result asked of a closed mill is refused and does not wait for ever', async () => {
  const mill = await millrace({ store: ':memory:', jobs: [plain], logger: false })
  const handle = await mill.enqueue(plain, undefined, { in: '1h' })
  await mill.close()
  await expect(handle.result()).rejects.toMatchObject({ code: 'E_CLOSED' })
  await expect(mill.start()).rejects.toMatchObject({ code: 'E_CLOSED' })
})

test('a start that comes while the mill closes is refused', async () => {
  const mill = await millrace({ store: ':memory:', jobs: [plain], logger: false })
  await mill.start()
  const [closed, started] = await Promise.allSettled([mill.close(), mill.start()])
  expect([closed.status, started.status]).toEqual(['fulfilled', 'rejected'])
})

test('a copy of a closed file has every job', async () => {
  const file = join(folder, 'original.db')
  const mill = await millrace({ store: file, jobs: [plain], logger: false })
  const handle = await mill.enqueue(plain, undefined, { in: '1h' })
  await mill.close()
  copyFileSync(file, join(folder, 'copy.db'))
  const copy = await millrace({ store: join(folder, 'copy.db'), logger: false })
  expect(await copy.get(handle.id)).toMatchObject({ state: 'scheduled' })
  await copy.close()
})

test('accepts may be asynchronous, and its no is a no', async () => {
  const picky = job('picky', { run: async () => 1, accepts: (async () => false) as unknown as () => boolean })
  const mill = await millrace({ store: ':memory:', jobs: [picky], logger: false })
  await expect(mill.enqueue(picky)).rejects.toMatchObject({ code: 'E_INVALID_PAYLOAD' })
  await mill.close()
})

test.each([Promise.resolve({ key: 'k' }), new Date(), new Map()])(
  'options that are no options are refused: %#',
  async (options) => {
    const mill = await millrace({ store: ':memory:', jobs: [plain], logger: false })
    await expect(mill.enqueue(plain, undefined, options as object)).rejects.toMatchObject({ code: 'E_INVALID_OPTIONS' })
    await mill.close()
  },
)

test('a scenario that is rejected without a reason, or never ends, is no green run', async () => {
  await expect(simulate({ jobs: [plain], faults: 'none', scenario: () => Promise.reject() })).rejects.toMatchObject({
    code: 'E_SIMULATION',
  })
  await expect(
    simulate({ jobs: [plain], faults: 'none', scenario: () => new Promise(() => undefined) }),
  ).rejects.toThrow('did not end')
})
