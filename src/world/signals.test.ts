import { expect, test } from 'vitest'
import { SignalStops } from './signals.js'
import type { SignalHost, StopSignal } from './signals.js'

type SignalListener = (signal: StopSignal) => void

/** A process that records what happens to it. */
function createStops(others = 0): {
  stops: SignalStops
  seen: unknown[]
  clock: { now: number }
  send: SignalListener
} {
  const listeners = new Map<StopSignal, SignalListener>()
  const seen: unknown[] = []
  const clock = { now: 0 }
  const host: SignalHost = {
    receivesSignals: true,
    monotonic: () => clock.now,
    on: (signal, listener) => void listeners.set(signal, listener),
    off: (signal) => void listeners.delete(signal),
    listenerCount: () => listeners.size / 2 + others,
    end: (code, withinMs) => void seen.push(['end', code, withinMs]),
    exit: (code) => void seen.push(['exit', code]),
  }
  const send = (signal: StopSignal): void => {
    const listener = listeners.get(signal)
    if (listener === undefined) seen.push(['died of', signal])
    else listener(signal)
  }
  return { stops: new SignalStops(host), seen, clock, send }
}

const turn = (): Promise<void> => new Promise((next) => setImmediate(next))
const stop = (ended: () => Promise<void> = () => Promise.resolve()) => ({ deadlineMs: 25_000, stop: ended })

test('when one stop fails the exit code is 1, and the process waits for the others', async () => {
  const { stops, seen, send } = createStops()
  let open = (): void => undefined
  const slow = new Promise<void>((resolve) => (open = resolve))
  stops.add(
    {},
    stop(() => Promise.reject(new Error('no'))),
  )
  stops.add(
    {},
    stop(() => slow),
  )
  send('SIGTERM')
  await turn()
  expect(seen).toEqual([])
  open()
  await turn()
  expect(seen).toEqual([['end', 1, 250]])
})

test('a stop that is added while others run is run too', async () => {
  const { stops, seen, send } = createStops()
  const late: string[] = []
  stops.add(
    {},
    stop(async () => {
      stops.add(
        {},
        stop(async () => void late.push('stopped')),
      )
    }),
  )
  send('SIGINT')
  await turn()
  expect([late, seen]).toEqual([['stopped'], [['end', 0, 250]]])
})

test('a second signal ends the process at once, unless it comes within 500 ms of the first', async () => {
  const { stops, seen, clock, send } = createStops()
  stops.add(
    {},
    stop(() => new Promise(() => undefined)),
  )
  send('SIGINT')
  clock.now = 499
  send('SIGINT')
  expect(seen).toEqual([])
  clock.now = 500
  send('SIGTERM')
  expect(seen).toEqual([['exit', 143]])
})

test('an app with its own listener gets the rest of the deadline', async () => {
  const { stops, seen, clock, send } = createStops(1)
  stops.add(
    {},
    stop(async () => {
      clock.now = 5_000
    }),
  )
  send('SIGTERM')
  await turn()
  expect(seen).toEqual([['end', 0, 20_000]])
})

test('when the last stop is removed, signals have their default effect again', () => {
  const { stops, seen, send } = createStops()
  const owner = {}
  const undo = stops.add(owner, stop())
  stops.add(owner, stop())
  undo()
  undo()
  send('SIGTERM')
  expect(seen).toEqual([['died of', 'SIGTERM']])
})
