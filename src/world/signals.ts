import { isMainThread } from 'node:worker_threads'
import { systemClock } from './clock.js'
import { systemTimers } from './timers.js'
import type { Cancel } from './timers.js'

/** The signals by which a terminal, a container runtime or a process manager asks a process to end. */
export type StopSignal = 'SIGINT' | 'SIGTERM'

const NUMBERS: { readonly [signal in StopSignal]: number } = { SIGINT: 2, SIGTERM: 15 }
const SIGNALS = Object.keys(NUMBERS) as readonly StopSignal[]

/**
 * A signal so soon after the first is the same one: on Ctrl-C a terminal signals the whole process group, and npm, tsx and
 * others in it pass their own signal on.
 */
const SAME_SIGNAL_MS = 500
/** A process in which something else goes on, such as a server or a handler that was given back, is ended after this long. */
const END_MS = 250

/** What is stopped when a signal comes. A rejection makes the exit code 1. */
export interface SignalStop {
  readonly deadlineMs: number
  /** `isShared`: the app listens for the signal too, and goes on until it has done what it does then. */
  stop(signal: StopSignal, isShared: boolean): Promise<void>
}

/** What the signals of a process are handled with. */
export interface SignalHost {
  /** A worker thread receives none. */
  readonly receivesSignals: boolean
  monotonic(): number
  on(signal: StopSignal, listener: (signal: StopSignal) => void): void
  off(signal: StopSignal, listener: (signal: StopSignal) => void): void
  listenerCount(signal: StopSignal): number
  /** Ends the process with this code when nothing is left to do in it, or after so long. */
  end(code: number, withinMs: number): void
  exit(code: number): void
}

/**
 * Stops everything that was added when the first signal comes, all at once, and then ends the process: with 0, or with 1 when
 * a stop failed. A second signal ends it at once, with the code that a shell gives a process which died of that signal.
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

  /** Each owner has one; a second call replaces it. */
  add(owner: object, stop: SignalStop): Cancel {
    this.#stops.set(owner, stop)
    if (!this.#isListening) for (const signal of SIGNALS) this.#host.on(signal, this.#received)
    this.#isListening = true
    return () => this.remove(owner)
  }

  remove(owner: object): void {
    this.#stops.delete(owner)
    // While it stops, a second signal must still be received.
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
    // Another one may be added while the first ones stop.
    while (this.#stops.size > 0) {
      const stops = [...this.#stops.values()]
      this.#stops.clear()
      const ended = await Promise.allSettled(stops.map((each) => each.stop(signal, isShared)))
      if (ended.some(({ status }) => status === 'rejected')) code = 1
      deadlineMs = Math.max(deadlineMs, ...stops.map((each) => each.deadlineMs))
    }
    // An app that listens too may have more to stop, a server for example: it is left the rest of the time.
    const restMs = isShared ? since + deadlineMs - this.#host.monotonic() : 0
    this.#host.end(code, Math.max(END_MS, restMs))
  }
}

/** Signals are the process's, so all mills of a process share one. */
export const systemSignals = new SignalStops({
  receivesSignals: isMainThread,
  monotonic: () => systemClock.monotonic(),
  // Before the app's own: those that listen once are gone when they were called, and would not be counted.
  on: (signal, listener) => void process.prependListener(signal, listener as NodeJS.SignalsListener),
  off: (signal, listener) => void process.off(signal, listener),
  listenerCount: (signal) => process.listenerCount(signal),
  end: (code, withinMs) => {
    // A code that the app has set is its own.
    if (code !== 0 || process.exitCode === undefined) process.exitCode = code
    systemTimers.after(withinMs, () => process.exit(), { idle: true })
  },
  exit: (code) => process.exit(code),
})
