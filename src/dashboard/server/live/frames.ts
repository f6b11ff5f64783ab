import { diffView } from '../../protocol/frames.js'
import type { Patch, Snapshot } from '../../protocol/frames.js'
import type { View } from '../parts.js'

/** Patches that are kept for readers that reconnect. */
const RING_FRAMES = 40
const RING_BYTES = 262_144

/** An event of a stream, encoded once for all of its readers. */
export interface EncodedFrame {
  readonly id: string
  readonly bytes: Uint8Array
}

/** The newest state of a topic for one role, and the patches that led to it. */
export class Frames {
  readonly #topic: string
  readonly #nextId: () => string
  #state: Snapshot | undefined
  #encoded: EncodedFrame | undefined
  /** The id of the state before the first patch of the ring. */
  #base: string | undefined
  #ring: EncodedFrame[] = []
  #ringBytes = 0

  constructor(topic: string, nextId: () => string) {
    this.#topic = topic
    this.#nextId = nextId
  }

  get state(): Snapshot | undefined {
    return this.#state
  }

  /** Takes the next state; gives the frame that leads to it, or undefined when nothing has changed. */
  next(view: View, now: number): EncodedFrame | undefined {
    const after = snapshotOf(this.#topic, view, now)
    const before = this.#state
    const patch = before === undefined ? undefined : diffView(before, after)
    if (before !== undefined && patch === undefined) {
      // The clock of the page goes on; nothing is sent for it.
      this.#state = { ...before, now }
      return undefined
    }
    const id = this.#nextId()
    this.#state = { ...after, id }
    this.#encoded = undefined
    if (patch === undefined) {
      this.#base = id
      return this.snapshot()
    }
    return this.#keep(encodeFrame('patch', { ...patch, id } satisfies Patch, id))
  }

  /** The whole state as a frame. */
  snapshot(): EncodedFrame | undefined {
    if (this.#state === undefined) return undefined
    return (this.#encoded ??= encodeFrame('snapshot', this.#state, this.#state.id as string))
  }

  /** The frames after an id; undefined when they are not all kept. */
  since(id: string): readonly EncodedFrame[] | undefined {
    if (this.#state?.id === id) return []
    if (this.#base === id) return this.#ring
    const at = this.#ring.findIndex((frame) => frame.id === id)
    return at < 0 ? undefined : this.#ring.slice(at + 1)
  }

  #keep(frame: EncodedFrame): EncodedFrame {
    this.#ring.push(frame)
    this.#ringBytes += frame.bytes.byteLength
    while (this.#ring.length > RING_FRAMES || this.#ringBytes > RING_BYTES) {
      const dropped = this.#ring.shift() as EncodedFrame
      this.#ringBytes -= dropped.bytes.byteLength
      this.#base = dropped.id
    }
    return frame
  }
}

export function snapshotOf(topic: string, { fields, rows, cursor, absent }: View, now: number): Snapshot {
  return {
    topic,
    now,
    fields,
    rows: Object.assign(Object.create(null) as object, Object.fromEntries(rows)) as Snapshot['rows'],
    order: rows.map(([id]) => id),
    cursor: cursor ?? null,
    ...(absent === undefined ? {} : { absent }),
  }
}

const encoder = new TextEncoder()

/** An event as text: JSON has no line break outside of its texts, and escapes those inside. */
export function encodeFrame(event: string, data: unknown, id = ''): EncodedFrame {
  const head = id === '' ? '' : `id: ${id}\n`
  return { id, bytes: encoder.encode(`event: ${event}\n${head}data: ${JSON.stringify(data)}\n\n`) }
}

export const BEAT = encoder.encode(': beat\n\n')
