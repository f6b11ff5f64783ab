import type { World } from '../../../world/world.js'
import type { Cancel } from '../../../world/timers.js'
import type { Snapshot } from '../../protocol/frames.js'
import type { Role } from '../../protocol/verbs.js'
import { encodeFrame, Frames } from './frames.js'
import { inTime } from './in-time.js'
import type { EncodedFrame } from './frames.js'
import { ViewGone } from '../parts.js'
import type { MakeView } from '../parts.js'
import type { Show } from '../show/redact.js'

/** A reader of a topic. */
export interface Sink {
  readonly role: Role
  readonly frame: (topic: string, frame: EncodedFrame) => void
}

export interface TopicSource {
  readonly text: string
  /** At most so often. */
  readonly paceMs: number
  /** Also without a sign of change. */
  readonly pollMs: number
  readonly read: () => Promise<MakeView>
  /** Calls back when the subject may have changed, until it is stopped. */
  readonly watch: (changed: () => void) => Cancel
}

export interface TopicParts {
  readonly world: World
  readonly showFor: (role: Role) => Show
  readonly nextId: () => string
  readonly failed: (topic: string, error: unknown) => string
  /** No reader is left, and the time that frames are kept for readers that reconnect is over. */
  readonly ended: (topic: LiveTopic) => void
}

/** Frames of a topic without readers are kept for those that reconnect. */
const LINGER_MS = 10_000
const RETRY_MIN_MS = 1_000
const RETRY_MAX_MS = 15_000

/** One topic: read while it has readers, once for all of them, and encoded once for each role. */
export class LiveTopic {
  readonly text: string
  readonly #source: TopicSource
  readonly #parts: TopicParts
  readonly #sinks = new Set<Sink>()
  readonly #frames = new Map<Role, Frames>()
  #made: MakeView | undefined
  #madeAt = -Infinity
  #now = 0
  #reading: Promise<void> | undefined
  #timer: Cancel | undefined
  #stopWatching: Cancel | undefined
  #isDirty = true
  #failures = 0
  #failingSince: number | undefined

  constructor(source: TopicSource, parts: TopicParts) {
    this.text = source.text
    this.#source = source
    this.#parts = parts
    this.#linger()
  }

  get readers(): number {
    return this.#sinks.size
  }

  /** Adds a reader: the frames after `have` if they are kept, else a snapshot as soon as there is one. */
  subscribe(sink: Sink, have: string | undefined): Cancel {
    const isFirst = this.#sinks.size === 0
    this.#sinks.add(sink)
    const frames = this.#framesOf(sink.role)
    const missed = have === undefined ? undefined : frames.since(have)
    const first = missed ?? [frames.snapshot()].filter((frame) => frame !== undefined)
    for (const frame of first) sink.frame(this.text, frame)
    if (isFirst) this.#start()
    return () => {
      if (this.#sinks.delete(sink) && this.#sinks.size === 0) this.#stop()
    }
  }

  /** The state for one role, read now unless it is as new as a reader of the stream would have it. */
  async current(role: Role): Promise<Snapshot> {
    const age = this.#parts.world.clock.monotonic() - this.#madeAt
    if (this.#made === undefined || age > this.#source.pollMs || (this.#isDirty && age > this.#source.paceMs))
      await this.#readOnce()
    if (this.#sinks.size === 0) this.#linger()
    return this.#framesOf(role).state as Snapshot
  }

  /** The whole state, for a reader that missed frames. */
  snapshotFor(role: Role): EncodedFrame | undefined {
    return this.#framesOf(role).snapshot()
  }

  end(): void {
    this.#stopWatching?.()
    this.#timer?.()
    this.#sinks.clear()
  }

  #framesOf(role: Role): Frames {
    const found = this.#frames.get(role)
    if (found !== undefined) return found
    const made = new Frames(this.text, this.#parts.nextId)
    this.#frames.set(role, made)
    if (this.#made !== undefined) made.next(this.#made(this.#parts.showFor(role)), this.#now)
    return made
  }

  #start(): void {
    this.#timer?.()
    this.#isDirty = true
    this.#stopWatching = this.#source.watch(() => (this.#isDirty = true))
    this.#readIn(0)
  }

  #stop(): void {
    this.#stopWatching?.()
    this.#stopWatching = undefined
    // Without readers nothing tells of changes: the next reader reads first.
    this.#isDirty = true
    this.#linger()
  }

  #linger(): void {
    this.#timer?.()
    this.#timer = this.#parts.world.timers.after(LINGER_MS, () => this.#parts.ended(this), { idle: true })
  }

  #readIn(ms: number): void {
    this.#timer?.()
    this.#timer = this.#parts.world.timers.after(ms, () => void this.#turn(), { idle: true })
  }

  /** Reads when something may have changed, or when it is time; then waits for the next turn. */
  async #turn(): Promise<void> {
    const age = this.#parts.world.clock.monotonic() - this.#madeAt
    if (!this.#isDirty && age < this.#source.pollMs) return this.#readIn(this.#source.paceMs)
    try {
      await this.#readOnce()
      this.#failures = 0
      this.#failingSince = undefined
      if (this.#sinks.size > 0) this.#readIn(this.#source.paceMs)
    } catch (error) {
      if (this.#sinks.size > 0) this.#readFailed(error)
    }
  }

  #readFailed(error: unknown): void {
    if (error instanceof ViewGone) {
      const gone = encodeFrame('gone', { topic: this.text, reason: error.reason, text: error.message })
      for (const sink of this.#sinks) sink.frame(this.text, gone)
      this.#sinks.clear()
      return this.#stop()
    }
    const now = this.#parts.world.clock.now()
    const waitMs = Math.min(RETRY_MAX_MS, RETRY_MIN_MS * 2 ** this.#failures)
    this.#failures += 1
    this.#failingSince ??= now
    const text = this.#parts.failed(this.text, error)
    const stale = encodeFrame('stale', { topic: this.text, since: this.#failingSince, againAt: now + waitMs, text })
    for (const sink of this.#sinks) sink.frame(this.text, stale)
    this.#readIn(waitMs)
  }

  /** Readers at the same time share one read; one that is slow stays the only one. */
  async #readOnce(): Promise<void> {
    this.#reading ??= this.#read().finally(() => (this.#reading = undefined))
    // A late answer is still taken when it comes.
    await inTime(this.#reading, this.#parts.world)
  }

  async #read(): Promise<void> {
    this.#isDirty = false
    try {
      this.#made = await this.#source.read()
    } catch (error) {
      this.#isDirty = true
      throw error
    }
    const { clock } = this.#parts.world
    this.#madeAt = clock.monotonic()
    this.#now = clock.now()
    for (const [role, frames] of this.#frames) {
      const frame = frames.next(this.#made(this.#parts.showFor(role)), this.#now)
      if (frame !== undefined) for (const sink of this.#sinks) if (sink.role === role) sink.frame(this.text, frame)
    }
  }
}
