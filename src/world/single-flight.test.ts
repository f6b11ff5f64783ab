import { expect, test } from 'vitest'
import { SingleFlight } from './single-flight.js'

/** A task whose runs end when the test says so. */
function stepped(): { flight: SingleFlight; starts: () => number; end: (error?: Error) => Promise<void> } {
  let starts = 0
  let settle: ((error?: Error) => void) | undefined
  const flight = new SingleFlight(() => {
    starts += 1
    return new Promise((resolve, reject) => {
      settle = (error) => (error === undefined ? resolve() : reject(error))
    })
  })
  const end = async (error?: Error): Promise<void> => {
    settle?.(error)
    await new Promise((turn) => setImmediate(turn))
  }
  return { flight, starts: () => starts, end }
}

test('a request starts the task before it returns', () => {
  const { flight, starts } = stepped()
  void flight.request()
  expect([starts(), flight.isRunning]).toEqual([1, true])
})

test('requests made while it runs share one further run', async () => {
  const { flight, starts, end } = stepped()
  const first = flight.request()
  void flight.request()
  const last = flight.request()
  expect([starts(), first === last]).toEqual([1, true])
  await end()
  expect([starts(), flight.isRunning]).toEqual([2, true])
  await end()
  await last
  expect([starts(), flight.isRunning]).toEqual([2, false])
})

test('a task that requests itself while it starts runs once more, and never beside itself', async () => {
  const log: string[] = []
  const flight: SingleFlight = new SingleFlight(async () => {
    log.push('start')
    if (log.length === 1) void flight.request()
    await Promise.resolve()
    log.push('end')
  })
  await flight.request()
  expect(log).toEqual(['start', 'end', 'start', 'end'])
})

test('a caller that joins waits for the run under way and asks for no further one', async () => {
  const { flight, starts, end } = stepped()
  void flight.join()
  const joined = flight.join()
  await end()
  await joined
  expect([starts(), flight.isRunning]).toEqual([1, false])
})

test('a task that rejects ends the loop, drops what was requested meanwhile, and can be requested again', async () => {
  const { flight, starts, end } = stepped()
  const first = flight.request()
  first.catch(() => undefined)
  void flight.request().catch(() => undefined)
  await end(new Error('store is down'))
  await expect(first).rejects.toThrow('store is down')
  expect([starts(), flight.isRunning]).toEqual([1, false])
  const next = flight.request()
  expect(starts()).toBe(2)
  await end()
  await next
})

test('it is idle at once where nothing runs, and when the last run has ended otherwise', async () => {
  const { flight, end } = stepped()
  await flight.idle()
  void flight.request()
  let isIdle = false
  const idle = flight.idle().then(() => (isIdle = true))
  await Promise.resolve()
  expect(isIdle).toBe(false)
  await end()
  await idle
})
