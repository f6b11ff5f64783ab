import { isMainThread } from 'node:worker_threads'
import { systemClock } from './clock.js'
import { systemTimers } from './timers.js'
import type { Cancel } from './timers.js'

/** The signals with which a terminal, a container runtime or a process manager ends a process. */
export type StopSignal = 'SIGINT' | 'SIGTERM'

const NUMBERS: { readonly [signal in StopSignal]: number } = { SIGINT: 2, SIGTERM: 15 }
const SIGNALS = Object.keys(NUMBERS) as readonly StopSignal[]

/**
 * A signal this soon after the first counts as the same one: on Ctrl-C a terminal signals the whole process group, and npm, tsx
 * and other parents forward it.
 */
const SAME_SIGNAL_MS = 500
/** After the stop, a process with other activity, such as a server or a handler that ignores its signal, is ended after this. */
const END_MS = 250

/** Called when a signal arrives. A rejection makes the exit code 1. */
export interface SignalStop {
  readonly deadlineMs: number
  /** `isShared`: the app has its own listener for the signal, and continues until that has finished. */
  stop(signal: StopSignal, isShared: boolean): Promise<void>
}

/** The signals and the exit of a process. */
export interface SignalHost {
  /** False in a worker thread, which receives no signals. */
  readonly receivesSignals: boolean
  monotonic(): number
  on(signal: StopSignal, listener: (signal: StopSignal) => void): void
  off(signal: StopSignal, listener: (signal: StopSignal) => void): void
  listenerCount(signal: StopSignal): number
  /** Ends the process with this code when its event loop is empty, or after `withinMs`. */
  end(code: number, withinMs: number): void
  exit(code: number): void
}

/**
 * On the first signal, runs all added stops concurrently and then ends the process: with code 0, or 1 when a stop failed. A
 * second signal ends it at once, with the code that a shell reports for a process killed by that signal.
 */
export class SignalStops {
  readonly #host: SignalHost
  readonly #stops = new Map<object, SignalStop>()
  #stoppingSince: number | undefined
  #isListening = false

  constructor(host: SignalHost) {
    this.#host = host
  }

  get receivesSignals(): boolean {
    return this.#host.receivesSignals
  }

  /** Each owner has one stop; a second call replaces it. */
  add(owner: object, stop: SignalStop): Cancel {
    this.#stops.set(owner, stop)
    if (!this.#isListening) for (const signal of SIGNALS) this.#host.on(signal, this.#received)
    this.#isListening = true
    return () => this.remove(owner)
  }

  remove(owner: object): void {
    this.#stops.delete(owner)
    // While the stops run, a second signal must still be received.
    if (this.#stops.size > 0 || this.#stoppingSince !== undefined || !this.#isListening) return
    for (const signal of SIGNALS) this.#host.off(signal, this.#received)
    this.#isListening = false
  }

  readonly #received = (signal: StopSignal): void => {
    const now = this.#host.monotonic()
    if (this.#stoppingSince === undefined) {
      this.#stoppingSince = now
      void this.#stopAll(signal, now)
    } else if (now - this.#stoppingSince >= SAME_SIGNAL_MS) this.#host.exit(128 + NUMBERS[signal])
  }

  async #stopAll(signal: StopSignal, since: number): Promise<void> {
    let code = 0
    let deadlineMs = 0
    const isShared = this.#host.listenerCount(signal) > 1
    // Another stop may be added while the first ones run.
    while (this.#stops.size > 0) {
      const stops = [...this.#stops.values()]
      this.#stops.clear()
      const ended = await Promise.allSettled(stops.map((each) => each.stop(signal, isShared)))
      if (ended.some(({ status }) => status === 'rejected')) code = 1
      deadlineMs = Math.max(deadlineMs, ...stops.map((each) => each.deadlineMs))
    }
    // An app with its own listener may have more to stop, for example a server: it gets the rest of the deadline.
    const restMs = isShared ? since + deadlineMs - this.#host.monotonic() : 0
    this.#host.end(code, Math.max(END_MS, restMs))
  }
}

/** Signals belong to the process, so all mills of a process share this. */
export const systemSignals = new SignalStops({
  receivesSignals: isMainThread,
  monotonic: () => systemClock.monotonic(),
  // Before the listeners of the app: those added by once() are removed when they are called, and would not be counted.
  on: (signal, listener) => void process.prependListener(signal, listener as NodeJS.SignalsListener),
  off: (signal, listener) => void process.off(signal, listener),
  listenerCount: (signal) => process.listenerCount(signal),
  end: (code, withinMs) => {
    // An exit code that the app has set is kept.
    if (code !== 0 || process.exitCode === undefined) process.exitCode = code
    systemTimers.after(withinMs, () => process.exit(), { idle: true })
  },
  exit: (code) => process.exit(code),
})
