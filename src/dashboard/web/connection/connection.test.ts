import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { Snapshot } from '../../protocol.js'
import { ApiError } from './api.js'
import type { Api } from './api.js'
import { waitBefore } from './backoff.js'
import { Connection } from './connection.js'
import { eventReader } from './events.js'
import { NOTHING_HELD, afterFrame } from './held.js'
import { aloneTab } from './leader.js'
import type { TabMessage, Tabs } from './leader.js'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const snapshot = (topic: string, n: number): Snapshot => ({
  topic,
  id: `e.${n}`,
  now: 1_000 + n,
  fields: { n },
  rows: {},
  order: [],
  cursor: null,
})
const event = (topic: string, n: number): string =>
  `event: snapshot\nid: e.${n}\ndata: ${JSON.stringify(snapshot(topic, n))}\n\n`

test('events are read from pieces that are cut anywhere, and beats give none', () => {
  const read = eventReader()
  const text = `: beat\n\n${event('queues', 1)}: beat\r\n\r\n${event('queues', 2)}`
  const frames = text.split('').flatMap((char) => read(char))
  expect(frames.map(({ event: kind, data }) => [kind, 'topic' in data && data.topic])).toEqual([
    ['snapshot', 'queues'],
    ['snapshot', 'queues'],
  ])
})

test('a patch without the snapshot before it changes nothing, and a snapshot ends staleness', () => {
  const patch = { event: 'patch', id: 'e.2', data: { topic: 't', now: 5, fields: { n: 2 }, rows: {} } } as const
  expect(afterFrame(NOTHING_HELD, patch)).toEqual(NOTHING_HELD)
  const held = afterFrame(NOTHING_HELD, { event: 'snapshot', id: 'e.1', data: snapshot('t', 1) })
  expect(afterFrame(held, patch).snapshot).toMatchObject({ id: 'e.2', fields: { n: 2 }, now: 5 })
  const stale = afterFrame(held, {
    event: 'stale',
    data: { topic: 't', since: 1, againAt: 2, text: 'The store did not answer.' },
  })
  expect(stale).toMatchObject({ snapshot: held.snapshot, stale: { text: 'The store did not answer.' } })
  expect(afterFrame(stale, { event: 'snapshot', id: 'e.3', data: snapshot('t', 3) }).stale).toBeUndefined()
})

test('waits grow to 15 s and vary by 30 per cent', () => {
  expect([0, 1, 2, 3, 10].map((tries) => waitBefore(tries, 0.5))).toEqual([500, 1_000, 2_000, 4_000, 15_000])
  expect([waitBefore(10, 0), waitBefore(10, 1)]).toEqual([10_500, 19_500])
})

test('the first wish opens one stream, and a frame reaches its topic', async () => {
  const server = fakeServer()
  const live = connect(server)
  live.want(['health', 'queues'])
  await settle()
  expect(server.asked.map(({ topics }) => topics)).toEqual([['health', 'queues']])
  server.send(event('queues', 1))
  await settle()
  expect(live.held('queues').value.snapshot?.fields).toEqual({ n: 1 })
  expect(live.status.value.kind).toBe('live')
})

test('another page reopens the stream with the newest ids', async () => {
  const server = fakeServer()
  const live = connect(server)
  live.want(['health'])
  await settle()
  server.send(event('health', 7))
  await settle()
  live.want(['health', 'workers'])
  await settle()
  expect(server.asked.at(-1)).toEqual({ topics: ['health', 'workers'], have: { health: 'e.7' } })
  expect(server.open()).toBe(1)
})

test('a frozen page keeps what it shows, and shows the newest when it is unfrozen', async () => {
  const server = fakeServer()
  const live = connect(server)
  live.want(['queues'])
  await settle()
  server.send(event('queues', 1))
  await settle()
  expect(live.held('queues').value.snapshot?.fields).toEqual({ n: 1 })
  live.frozen.value = true
  server.send(event('queues', 2))
  await settle()
  expect(live.held('queues').value.snapshot?.fields).toEqual({ n: 1 })
  live.frozen.value = false
  expect(live.held('queues').value.snapshot?.fields).toEqual({ n: 2 })
})

test('a stream without a beat for 25 s is dead, and is opened again after the wait', async () => {
  const server = fakeServer()
  const live = connect(server)
  live.want(['health'])
  await settle()
  await vi.advanceTimersByTimeAsync(24_000)
  expect(live.status.value.kind).toBe('live')
  await vi.advanceTimersByTimeAsync(1_001)
  expect(live.status.value.kind).toBe('lost')
  await vi.advanceTimersByTimeAsync(500)
  expect(live.status.value.kind).toBe('live')
  expect(server.asked).toHaveLength(2)
})

test('when the server has no stream left, the topics are read every 5 s', async () => {
  const server = fakeServer()
  server.refusal = new ApiError(503, undefined)
  const live = connect(server)
  live.want(['health'])
  await settle()
  expect(live.status.value.kind).toBe('polling')
  expect(live.held('health').value.snapshot?.fields).toEqual({ n: 1 })
  await vi.advanceTimersByTimeAsync(5_000)
  expect(live.held('health').value.snapshot?.fields).toEqual({ n: 2 })
})

test('a refused session ends the tries and says so', async () => {
  const server = fakeServer()
  server.refusal = new ApiError(401, undefined)
  const live = connect(server)
  live.want(['health'])
  await vi.advanceTimersByTimeAsync(60_000)
  expect(live.status.value.kind).toBe('signed-out')
  expect(server.asked).toHaveLength(1)
})

test('two tabs share the stream of the first, and the second gets what the first already has', async () => {
  const server = fakeServer()
  const [one, two] = twoTabs()
  const first = connect(server, one)
  first.want(['health'])
  await settle()
  server.send(event('health', 1))
  await settle()
  const second = connect(server, two)
  second.want(['health', 'queues'])
  await settle()
  expect(second.held('health').value.snapshot?.fields).toEqual({ n: 1 })
  expect(server.open()).toBe(1)
  server.send(event('queues', 4))
  await settle()
  expect(second.held('queues').value.snapshot?.fields).toEqual({ n: 4 })
})

const settle = (): Promise<unknown> => vi.advanceTimersByTimeAsync(0)

function connect(server: FakeServer, tabs: Tabs = aloneTab()): Connection {
  const document = new EventTarget() as unknown as Document
  return new Connection({ api: server.api, tabs, follow: () => undefined, document, chance: () => 0.5 })
}

interface FakeServer {
  readonly api: Api
  readonly asked: { topics: readonly string[]; have: Readonly<Record<string, string>> }[]
  refusal: Error | undefined
  send(text: string): void
  open(): number
}

/** A server whose streams are written by hand; a view has a number that grows. */
function fakeServer(): FakeServer {
  const writers = new Set<ReadableStreamDefaultController<Uint8Array>>()
  let views = 0
  const server: FakeServer = {
    asked: [],
    refusal: undefined,
    send: (text) => writers.forEach((writer) => writer.enqueue(new TextEncoder().encode(text))),
    open: () => writers.size,
    api: {
      session: () => Promise.reject(new Error('not asked here')),
      get: () => Promise.reject(new Error('not asked here')),
      post: async <Answer>(_path: string, body: object) =>
        snapshot((body as { topic: string }).topic, ++views) as Answer,
      stream: async (body, signal) => {
        server.asked.push(body as FakeServer['asked'][number])
        if (server.refusal !== undefined) throw server.refusal
        return new ReadableStream({
          start: (writer) => {
            writers.add(writer)
            signal.addEventListener('abort', () => {
              writers.delete(writer)
              writer.error(new DOMException('aborted', 'AbortError'))
            })
          },
        })
      },
    },
  }
  return server
}

/** Two tabs that hear each other; the first one leads. */
function twoTabs(): [Tabs, Tabs] {
  const listeners: ((message: TabMessage) => void)[][] = [[], []]
  const tab = (i: 0 | 1): Tabs => ({
    elect: (lead) => {
      if (i === 0) lead()
    },
    send: (message) => listeners[1 - i]?.forEach((listen) => listen(message)),
    onMessage: (listen) => listeners[i]?.push(listen),
  })
  return [tab(0), tab(1)]
}
