import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { job, millrace } from 'millrace'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'

const greet = job('greet', async ({ name }) => `hello ${name}`)
let folder

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'first-hour-'))
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
  rmSync(folder, { recursive: true, force: true })
})

test('a job runs to its result while the timers of the test are fake', async () => {
  const mill = await millrace({ store: join(folder, 'jobs.db'), jobs: [greet], logger: false })
  const handle = await mill.enqueue(greet, { name: 'ada' })
  await mill.start()
  expect(await handle.result({ timeout: '20s' })).toBe('hello ada')
  await mill.close()
})

test('a failed job is retried while the timers of the test are fake', async () => {
  const flaky = job('flaky', {
    run: async (_, ctx) => {
      if (ctx.attempt === 1) throw new Error('once')
      return ctx.attempt
    },
    retry: { limit: 3, backoff: { start: '50ms' } },
  })
  const mill = await millrace({ store: join(folder, 'jobs.db'), jobs: [flaky], logger: false })
  const handle = await mill.enqueue(flaky, null)
  await mill.start()
  expect(await handle.result({ timeout: '20s' })).toBe(2)
  await mill.close()
})
