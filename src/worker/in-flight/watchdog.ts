import { Alarms } from './alarms.js'
import { LoopWatch } from './loop-watch.js'
import type { LoopWatchParts } from './loop-watch.js'
import type { Members } from './indexed-set.js'
import type { Running } from '../attempt/running.js'

/** Finds running attempts that are slow, time out or end their grace, and those that block the event loop. */
export class Watchdog {
  /** Finds handlers that block the event loop, and with it the timer of the alarms. */
  readonly loop: LoopWatch
  readonly #alarms: Alarms<Running>

  /** `onDue` acts on an overdue attempt and may move its times. */
  constructor(parts: LoopWatchParts, running: Members<Running>, onDue: (running: Running, now: number) => void) {
    this.loop = new LoopWatch(parts, running)
    this.#alarms = new Alarms(parts.world, running, onDue)
  }

  /** A job began. */
  watch(running: Running): void {
    this.loop.began(running)
    this.#alarms.watch(running)
  }

  stop(): void {
    this.#alarms.stop()
    this.loop.detach()
  }
}
