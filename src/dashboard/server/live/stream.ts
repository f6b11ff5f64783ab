import type { Cancel } from '../../../world/timers.js'
import type { World } from '../../../world/world.js'
import type { Bye, Gone } from '../../protocol/frames.js'
import type { Role } from '../../protocol/verbs.js'
import { BEAT, encodeFrame } from './frames.js'
import type { EncodedFrame } from './frames.js'
import type { LiveTopic, Sink } from './live-topic.js'

/** Unread bytes from which on patches are left out, and at which the stream is closed. */
const LAGGING_BYTES = 262_144
const UNREAD_MAX = 1_048_576
/** A reader that takes nothing for so long is gone. */
const STUCK_MS = 15_000
const BEAT_MS = 10_000
/** How often the user of a stream is asked for again. */
const ROLE_MS = 60_000
/** How long a reader waits before it comes back. */
const COME_BACK_MS = 500

/** One stream of events: the frames of its topics, with a bound on what is unread. */
export class EventStream {
  readonly body: ReadableStream<Uint8Array>
  readonly #world: World
  readonly #sink: Sink
  readonly #topics = new Map<string, LiveTopic>()
  readonly #cancels: Cancel[] = []
  readonly #closed: () => void
  readonly #isAllowed: () => Promise<boolean>
  /** Topics of which frames were left out. */
  readonly #behind = new Set<string>()
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined
  #progressAt: number
  #checkedAt: number
  #isClosed = false
  #beatTimer: Cancel | undefined

  constructor(
    world: World,
    role: Role,
    parts: { readonly closed: () => void; readonly isAllowed: () => Promise<boolean> },
  ) {
    this.#world = world
    this.#closed = parts.closed
    this.#isAllowed = parts.isAllowed
    this.#sink = { role, frame: (topic, frame) => this.#send(topic, frame) }
    this.#progressAt = this.#checkedAt = world.clock.monotonic()
    this.body = new ReadableStream<Uint8Array>(
      {
        start: (controller) => void (this.#controller = controller),
        pull: () => this.#drained(),
        cancel: () => this.#end(),
      },
      { highWaterMark: UNREAD_MAX, size: (bytes?: Uint8Array) => bytes?.byteLength ?? 0 },
    )
    this.#write(BEAT)
    this.#beat()
  }

  add(topic: LiveTopic, have: string | undefined): void {
    this.#topics.set(topic.text, topic)
    this.#cancels.push(topic.subscribe(this.#sink, have))
  }

  /** A topic that is refused. */
  gone(data: Gone): void {
    this.#write(encodeFrame('gone', data).bytes)
  }

  /** Says goodbye, and ends. */
  bye(reason: Bye['reason'], inMs: number = COME_BACK_MS): void {
    if (this.#isClosed) return
    this.#write(encodeFrame('bye', { inMs, reason } satisfies Bye).bytes)
    this.#end()
    this.#controller?.close()
  }

  get #unread(): number {
    return UNREAD_MAX - (this.#controller?.desiredSize ?? UNREAD_MAX)
  }

  #send(topic: string, frame: EncodedFrame): void {
    if (this.#isClosed) return
    if (this.#unread > LAGGING_BYTES || this.#behind.size > 0) {
      this.#behind.add(topic)
      return
    }
    this.#write(frame.bytes)
    if (this.#unread > UNREAD_MAX) this.#drop()
  }

  #write(bytes: Uint8Array): void {
    if (this.#unread === 0) this.#progressAt = this.#world.clock.monotonic()
    this.#controller?.enqueue(bytes)
  }

  /** The reader has taken something: when little is left, it gets what it missed as whole states. */
  #drained(): void {
    this.#progressAt = this.#world.clock.monotonic()
    if (this.#unread > LAGGING_BYTES || this.#isClosed) return
    const behind = [...this.#behind]
    this.#behind.clear()
    for (const topic of behind) {
      const frame = this.#topics.get(topic)?.snapshotFor(this.#sink.role)
      if (frame !== undefined) this.#send(topic, frame)
    }
  }

  #beat(): void {
    this.#beatTimer = this.#world.timers.after(
      BEAT_MS,
      () => {
        void this.#check().then((goesOn) => {
          if (goesOn && !this.#isClosed) this.#beat()
        })
      },
      { idle: true },
    )
  }

  /** Sends a beat, unless the reader is gone or may not read any more. */
  async #check(): Promise<boolean> {
    const now = this.#world.clock.monotonic()
    if (this.#unread > 0 && now - this.#progressAt >= STUCK_MS) {
      this.#drop()
      return false
    }
    if (now - this.#checkedAt >= ROLE_MS) {
      this.#checkedAt = now
      const isAllowed = await this.#isAllowed().catch(() => false)
      if (!isAllowed) this.bye('signed-out')
      if (!isAllowed) return false
    }
    this.#write(BEAT)
    return true
  }

  #drop(): void {
    this.#end()
    this.#controller?.error(new Error('the reader is too slow'))
  }

  #end(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#beatTimer?.()
    for (const cancel of this.#cancels) cancel()
    this.#closed()
  }
}
