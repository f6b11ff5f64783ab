import type { Snapshot } from '../../protocol/frames.js'
import { parseTopic, writeTopic } from '../../protocol/topics.js'
import type { Topic } from '../../protocol/topics.js'
import type { Role } from '../../protocol/verbs.js'
import { snapshotOf } from './frames.js'
import { inTime } from './in-time.js'
import { LiveTopic } from './live-topic.js'
import type { TopicSource } from './live-topic.js'
import { Refusal } from '../parts.js'
import type { Parts } from '../parts.js'
import { readView } from '../views/views.js'
import { errorText } from '../error-text.js'
import { watchOf } from './watch.js'

/** Topics that are kept at once. */
const TOPICS_MAX = 1_000
/** Characters of a topic: a list has its search in it. */
const TOPIC_MAX = 1_200

/** How often a topic is read at most, and without any sign of change. */
const PACES: Readonly<Record<Topic['kind'], readonly [paceMs: number, pollMs: number]>> = {
  job: [250, 1_000],
  group: [250, 1_000],
  sequence: [250, 1_000],
  bulk: [250, 250],
  health: [1_000, 1_000],
  overview: [1_000, 1_000],
  queues: [1_000, 1_000],
  queue: [1_000, 1_000],
  workers: [1_000, 1_000],
  list: [1_000, 5_000],
  workflows: [1_000, 5_000],
  groups: [1_000, 2_000],
  sequences: [1_000, 2_000],
  failures: [2_000, 2_000],
  failure: [2_000, 10_000],
  recurring: [2_000, 2_000],
  'recurring:': [2_000, 2_000],
  upcoming: [10_000, 10_000],
  audit: [2_000, 5_000],
  enqueue: [10_000, 10_000],
  'enqueue:': [10_000, 10_000],
}

/** Pages that only an admin may open. */
const ADMIN_TOPICS: readonly Topic['kind'][] = ['audit', 'enqueue', 'enqueue:']

/** All topics that have readers, or had one a moment ago. */
export class Hub {
  readonly #parts: Parts
  readonly #topics = new Map<string, LiveTopic>()
  readonly #epoch: string
  #seq = 0

  constructor(parts: Parts) {
    this.#parts = parts
    this.#epoch = parts.world.ids.workerId()
  }

  /** Topics that are kept now, and their readers. */
  get size(): { readonly topics: number; readonly readers: number } {
    const readers = [...this.#topics.values()].reduce((sum, topic) => sum + topic.readers, 0)
    return { topics: this.#topics.size, readers }
  }

  topic(text: string, role: Role): LiveTopic {
    const parsed = checkTopic(text, role)
    const found = this.#topics.get(text)
    if (found !== undefined) return found
    if (this.#topics.size >= TOPICS_MAX)
      throw new Refusal('too-many', `More than ${TOPICS_MAX} pages are open.`, { retryMs: 5_000 })
    const made = new LiveTopic(this.#sourceOf(text, parsed), {
      world: this.#parts.world,
      showFor: this.#parts.showFor,
      nextId: () => `${this.#epoch}.${(this.#seq += 1)}`,
      failed: (topic, error) => errorText(this.#parts.log, `read ${topic}`, error).text,
      ended: (topic) => {
        topic.end()
        if (this.#topics.get(topic.text) === topic) this.#topics.delete(topic.text)
      },
    })
    this.#topics.set(text, made)
    return made
  }

  /** A later page of a topic: read once, and not kept. */
  async page(text: string, role: Role, cursor: string): Promise<Snapshot> {
    const topic = checkTopic(text, role)
    const make = await inTime(readView(this.#parts, topic, cursor), this.#parts.world)
    return snapshotOf(text, make(this.#parts.showFor(role)), this.#parts.world.clock.now())
  }

  end(): void {
    for (const topic of this.#topics.values()) topic.end()
    this.#topics.clear()
  }

  #sourceOf(text: string, topic: Topic): TopicSource {
    const [paceMs, pollMs] = PACES[topic.kind]
    return {
      text,
      paceMs,
      pollMs,
      read: () => readView(this.#parts, topic),
      watch: (changed) => watchOf(this.#parts, topic, changed),
    }
  }
}

function checkTopic(text: string, role: Role): Topic {
  const topic = text.length > TOPIC_MAX ? undefined : parseTopic(text)
  if (topic === undefined || writeTopic(topic) !== text) throw new Refusal('not-found', 'There is no such page.')
  if (ADMIN_TOPICS.includes(topic.kind) && role !== 'admin')
    throw new Refusal('not-allowed', 'Only an admin may open this page.', { hint: 'Ask for the admin role.' })
  return topic
}
