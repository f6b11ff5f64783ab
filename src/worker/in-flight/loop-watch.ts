import { LOOP_CELLS, NEVER, TICK_MS, WHO_BLOCKS } from '../../store/loop-watch.js'
import type { Blocking, LoopShare } from '../../store/loop-watch.js'
import type { Cancel } from '../../world/timers.js'
import type { InFlightParts } from './in-flight-parts.js'
import { ABORT_GRACE_MS } from './overdue.js'
import type { Members } from './indexed-set.js'
import type { Running } from '../attempt/running.js'

/** Frames of the handler's stack that are reported. */
const FRAMES_MAX = 12

export type LoopWatchParts = Pick<InFlightParts, 'world' | 'executor' | 'blockGraceMs'>

/**
 * The event loop's part of detecting that a handler blocks it (`store/loop-watch.ts`). It ticks only while attempts run, and a
 * beginning attempt costs two comparisons.
 */
export class LoopWatch {
  readonly share: LoopShare = { memory: new SharedArrayBuffer(4 * Int32Array.BYTES_PER_ELEMENT) }
  readonly #cells = new Int32Array(this.share.memory)
  readonly #parts: LoopWatchParts
  readonly #running: Members<Running>
  readonly #graceMs: number
  #worker: string | undefined
  #timer: Cancel | undefined

  constructor(parts: LoopWatchParts, running: Members<Running>) {
    this.#parts = parts
    this.#running = running
    this.#graceMs = parts.blockGraceMs ?? ABORT_GRACE_MS
    this.#write(LOOP_CELLS.shortestMs, NEVER)
    this.#write(LOOP_CELLS.longestMs, NEVER)
  }

  /** A thread watches the loop for this worker. */
  attach(worker: string): void {
    this.detach()
    this.#worker = worker
    answers().set(worker, (stack) => this.#blocking(stack))
    if (this.#running.size > 0) this.#tick()
  }

  detach(): void {
    this.#timer?.()
    this.#timer = undefined
    this.#write(LOOP_CELLS.shortestMs, NEVER)
    if (this.#worker !== undefined) answers().delete(this.#worker)
    this.#worker = undefined
  }

  began(running: Running): void {
    if (this.#worker === undefined) return
    if (this.#timer === undefined) return this.#tick()
    // Times count from the last tick, which may be almost one interval ago.
    const leftMs = cellOf(this.#leftMs(running, running.begunAt) + TICK_MS)
    if (leftMs > this.#read(LOOP_CELLS.longestMs)) this.#write(LOOP_CELLS.longestMs, leftMs)
    if (leftMs < this.#read(LOOP_CELLS.shortestMs)) this.#write(LOOP_CELLS.shortestMs, leftMs)
  }

  #tick(): void {
    const { world } = this.#parts
    this.#timer = undefined
    if (this.#running.size === 0) return this.#write(LOOP_CELLS.shortestMs, NEVER)
    const now = world.clock.monotonic()
    // A block that is shorter than the grace is ignored, however late its handler is.
    const left = [...this.#running].map((each) => cellOf(Math.max(this.#graceMs, this.#leftMs(each, now))))
    this.#write(LOOP_CELLS.isDebugged, world.processes.isDebugged() ? 1 : 0)
    this.#write(LOOP_CELLS.tick, (this.#read(LOOP_CELLS.tick) + 1) % NEVER)
    this.#write(LOOP_CELLS.longestMs, Math.max(...left))
    this.#write(LOOP_CELLS.shortestMs, Math.min(...left))
    this.#timer = world.timers.after(TICK_MS, () => this.#tick(), { idle: true })
  }

  /** Called by the thread, through the inspector, while the loop is paused in the code that blocks it. */
  #blocking(stack: string): Blocking | undefined {
    const running = this.#parts.executor.current?.()
    if (running === undefined) return undefined
    const leftMs = this.#leftMs(running, this.#parts.world.clock.monotonic())
    const frames = stack
      .split('\n')
      .filter((line) => /^\s+at /.test(line) && !/debugger eval|evalmachine|<anonymous>:1:\d+\)?$/.test(line))
    return {
      ref: running.claimed.ref,
      id: running.id,
      name: running.job,
      leftMs: Number.isFinite(leftMs) ? leftMs : null,
      graceMs: this.#graceMs,
      stack: frames.slice(0, FRAMES_MAX).join('\n'),
    }
  }

  /** Until the end of the attempt's timeout and grace. An attempt that was settled without its handler has the grace alone. */
  #leftMs(running: Running, now: number): number {
    if (running.settled) return this.#graceMs
    const untilAlarmMs = running.alarmAt - now
    return running.abortReason === undefined ? untilAlarmMs + this.#graceMs : untilAlarmMs
  }

  #read(cell: number): number {
    return Atomics.load(this.#cells, cell)
  }
  #write(cell: number, value: number): void {
    Atomics.store(this.#cells, cell, value)
  }
}

/** The cell's maximum is 24 days; the thread need not count further. */
function cellOf(ms: number): number {
  return Math.min(NEVER, Math.max(0, Math.ceil(ms)))
}

/** On the global object, because the inspector can reach nothing else from an arbitrary place of the program. */
function answers(): Map<string, (stack: string) => Blocking | undefined> {
  const holder = globalThis as unknown as Record<symbol, Map<string, (stack: string) => Blocking | undefined>>
  return (holder[Symbol.for(WHO_BLOCKS)] ??= new Map())
}
