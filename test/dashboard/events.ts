import type { Frame, Patch, Snapshot } from '../../src/dashboard/protocol.js'
import { applyPatch } from '../../src/dashboard/protocol.js'

/** Reads the events of a stream, one at a time. */
export class Events {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>
  #text = ''
  readonly #states = new Map<string, Snapshot>()
  beats = 0

  constructor(response: Response) {
    this.#reader = (response.body as ReadableStream<Uint8Array>).getReader()
  }

  /** The next event; undefined when the stream has ended. */
  async next(): Promise<Frame | undefined> {
    for (;;) {
      const end = this.#text.indexOf('\n\n')
      if (end >= 0) {
        const block = this.#text.slice(0, end)
        this.#text = this.#text.slice(end + 2)
        if (!block.startsWith(':')) return parse(block)
        this.beats += 1
        continue
      }
      const { done, value } = await this.#reader.read()
      if (done) return undefined
      this.#text += new TextDecoder().decode(value)
    }
  }

  /** The state of a topic after each of its events, until one is as expected. */
  async until(topic: string, isExpected: (state: Snapshot) => boolean): Promise<Snapshot> {
    for (;;) {
      const frame = await this.next()
      if (frame === undefined) throw new Error(`the stream ended before ${topic} was as expected`)
      if (frame.event === 'snapshot') this.#states.set(frame.data.topic, frame.data)
      const before = frame.event === 'patch' ? this.#states.get(frame.data.topic) : undefined
      if (before !== undefined) this.#states.set(before.topic, applyPatch(before, frame.data as Patch))
      const state = this.#states.get(topic)
      if (state !== undefined && isExpected(state)) return state
    }
  }

  async cancel(): Promise<void> {
    await this.#reader.cancel()
  }
}

function parse(block: string): Frame {
  const fields = Object.fromEntries(
    block.split('\n').map((line) => [line.slice(0, line.indexOf(': ')), line.slice(line.indexOf(': ') + 2)]),
  )
  return { event: fields['event'], id: fields['id'], data: JSON.parse(fields['data'] as string) as never } as Frame
}
