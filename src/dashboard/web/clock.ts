import { signal } from '@preact/signals'
import type { ReadonlySignal } from '@preact/signals'

/** How often a time on the page moves. */
const TICK_MS = 1_000

/** The server's time, as far as this tab knows it: a wrong clock of the laptop shows no negative ages. */
export interface Clock {
  readonly now: ReadonlySignal<number>
  /** Takes over the server's time from a frame that has just arrived. */
  follow(serverNow: number): void
  stop(): void
}

/** A clock that ticks once a second. `read` is the tab's own clock. */
export function startClock(read: () => number = Date.now): Clock {
  let offset = 0
  const now = signal(read())
  const timer = setInterval(() => (now.value = read() + offset), TICK_MS)
  return {
    now,
    follow: (serverNow) => {
      const next = serverNow - read()
      // A frame waits in the network for a varying time: a smaller difference than a tick is noise.
      if (Math.abs(next - offset) > TICK_MS || offset === 0) offset = next
    },
    stop: () => clearInterval(timer),
  }
}

/** A clock that shows one instant, for templates in tests and for pictures. */
export function stillClock(at: number): Clock {
  return { now: signal(at), follow: () => undefined, stop: () => undefined }
}
