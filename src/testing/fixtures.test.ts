import { existsSync } from 'node:fs'
import { expect, test } from 'vitest'
import { job } from '../job/definition/define.js'
import { restart, startMill, waitFor } from './fixtures.js'

const greet = job('greet', async () => 'hello')
const stuck = job('stuck', {
  run: async () => Promise.reject(new Error('no such host')),
  retry: { backoff: { start: '1h' } },
})

test('a mill runs on a fresh file that is gone when it is closed', async () => {
  const lines: string[] = []
  const note = (_: object, message: string): void => void lines.push(message)
  const mill = await startMill({ jobs: [greet], logger: { debug: note, info: note, warn: note, error: note } })
  expect(await waitFor(await mill.enqueue(greet))).toBe('hello')
  const file = lines.find((line) => line.startsWith('store '))?.slice('store '.length) ?? ''
  expect(existsSync(file)).toBe(true)
  await mill.close()
  expect(existsSync(file)).toBe(false)
})

test('a restart keeps what was enqueued', async () => {
  const first = await startMill({ jobs: [greet] })
  const handle = await first.schedule(greet, undefined, '200ms')
  const second = await restart(first)
  expect(await waitFor(second.handle(handle.id))).toBe('hello')
  await second.close()
})

test('waiting too long names the state and the last error', async () => {
  const mill = await startMill({ jobs: [stuck] })
  const handle = await mill.enqueue(stuck)
  await expect(waitFor(handle, '500ms')).rejects.toThrow(/it is retrying after 1 attempts, the last with: no such host/)
  await mill.close()
})

test('only a mill of startMill can be restarted', async () => {
  await expect(restart({} as never)).rejects.toThrow('startMill')
})
