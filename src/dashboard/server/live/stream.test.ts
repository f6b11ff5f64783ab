import { expect, test } from 'vitest'
import { systemWorld } from '../../../world/world.js'
import type { EncodedFrame } from './frames.js'
import { encodeFrame } from './frames.js'
import type { LiveTopic, Sink } from './live-topic.js'
import { EventStream } from './stream.js'

const PART = 'x'.repeat(100_000)

/** A stream with one topic, whose frames the test sends. */
function opened(): {
  readonly stream: EventStream
  readonly send: (name: string) => void
  readonly state: { closed: boolean }
} {
  const state = { closed: false }
  const stream = new EventStream(systemWorld(), 'viewer', {
    closed: () => (state.closed = true),
    isAllowed: async () => true,
  })
  let sink: Sink | undefined
  let newest: EncodedFrame = encodeFrame('snapshot', { of: 'nothing' }, 'e.0')
  stream.add(
    {
      text: 'queues',
      subscribe: (given: Sink) => {
        sink = given
        return () => undefined
      },
      snapshotFor: () => newest,
    } as unknown as LiveTopic,
    undefined,
  )
  const send = (name: string): void => {
    newest = encodeFrame('snapshot', { of: name }, name)
    sink?.frame('queues', encodeFrame('patch', { name, PART }, name))
  }
  return { stream, send, state }
}

test('a reader that lags gets no more patches, and one snapshot of the newest state when it has read', async () => {
  const { stream, send, state } = opened()
  for (let i = 1; i <= 50; i += 1) send(`e.${i}`)
  const reader = stream.body.getReader()
  const seen: string[] = []
  while (!seen.at(-1)?.startsWith('snapshot')) {
    const { value } = await reader.read()
    const text = new TextDecoder().decode(value)
    const found = /^event: (\w+)\nid: (\S+)/.exec(text)
    if (found !== null) seen.push(`${found[1]} ${found[2]}`)
  }
  expect(seen).toEqual(['patch e.1', 'patch e.2', 'patch e.3', 'snapshot e.50'])
  send('e.51')
  expect(new TextDecoder().decode((await reader.read()).value)).toContain('event: patch\nid: e.51')
  expect(state.closed).toBe(false)
  await reader.cancel()
  expect(state.closed).toBe(true)
})

test('a frame that is larger than what may be unread ends the stream', async () => {
  const { stream, state } = opened()
  stream.add(
    {
      text: 'large',
      subscribe: (sink: Sink) => (
        sink.frame('large', encodeFrame('patch', { text: 'x'.repeat(1_048_577) })),
        () => undefined
      ),
    } as unknown as LiveTopic,
    undefined,
  )
  expect(state.closed).toBe(true)
  await expect(stream.body.getReader().read()).rejects.toThrow(/too slow/)
})
