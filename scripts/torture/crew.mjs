import { join } from 'node:path'
import { Child, until } from './child.mjs'
import { readDiary } from './diary.mjs'

/** Messages of a laborer about its errands are written to the ledger unchanged. */
const ERRANDS = new Set(['calloff', 'cancelled', 'undone', 'paused', 'resuming'])

/** The processes of a run, alive and dead, each life with its own diary. */
export class Crew {
  /** Errors that callers got. */
  troubles = []
  lives = []
  #ground
  #ledger
  #config
  #random
  results = 0
  acknowledged = 0
  /** Calls that were refused because the server was down, by their code. */
  refused = new Map()

  /** @param {{ ground: object, ledger: object, random: object, config: object }} parts */
  constructor({ ground, ledger, random, config }) {
    this.#ground = ground
    this.#ledger = ledger
    this.#random = random
    this.#config = config
    this.folder = ground.room('diaries')
  }

  get living() {
    return this.lives.filter((life) => life.child.how === undefined)
  }
  /** Those at work: the others are still opening the file, or waiting for their first job. */
  get working() {
    return this.living.filter((life) => life.hasBegun)
  }

  start(env = {}) {
    const diary = join(this.folder, `${this.lives.length}.txt`)
    const queue = this.#freeQueue()
    const config = { entry: this.#ground.entry, diary, queue, seed: this.#random.fork(), ...this.#config }
    const life = { diary, queue: config.queue, isUp: false, hasBegun: false, told: false, child: undefined }
    life.child = new Child('laborer', config, { env, hear: (words) => this.#hear(life, words) })
    void life.child.ended.then((how) => {
      if (!life.told) this.troubles.push(`a process ended by itself (${how}): ${life.child.errors.trim()}`)
    })
    this.lives.push(life)
    return life
  }

  /** A queue that no live process has; a few in all, since each process reads every one of them. */
  #freeQueue() {
    const taken = new Set(this.living.map((life) => life.queue))
    for (let i = this.lives.length; ; i += 1) {
      const queue = `aside-${i % (2 * taken.size + 1)}`
      if (!taken.has(queue)) return queue
    }
  }

  /** Kills one with -9 and returns its complete diary. */
  async kill(life) {
    life.told = true
    await life.child.kill()
    return readDiary(life.diary)
  }

  killAll() {
    return Promise.all(this.living.map((life) => this.kill(life)))
  }

  /** All enqueue, or none do; those started later do the same. */
  produce(wanted) {
    if (wanted === this.#config.produce) return
    this.#config = { ...this.#config, produce: wanted }
    for (const life of this.living) life.child.tell(wanted ? 'go' : 'rest')
  }

  /** No process cancels or pauses anything any more, and one of them resumes queues that killed processes left paused. */
  calm(pausedQueues) {
    for (const life of this.living) life.child.tell('calm')
    const working = this.working[0]
    for (const queue of pausedQueues) working?.child.tell(`resume ${queue}`)
  }

  /** Asks all to close, and kills those that do not. */
  async close(withinMs = 20_000) {
    for (const life of this.living) {
      life.told = true
      life.child.tell('close')
    }
    const closed = await until(() => this.living.length === 0, withinMs)
    if (!closed) this.troubles.push(`${this.living.length} processes did not close within ${withinMs} ms`)
    await this.killAll()
  }

  diaries() {
    return this.lives.map((life) => readDiary(life.diary))
  }

  #hear(life, [word, ...rest]) {
    if (word === 'up') life.isUp = true
    else if (word === 'began') life.hasBegun = true
    else if (word === 'ack') {
      this.acknowledged += 1
      this.#ledger.acknowledge(rest[0])
    } else if (word === 'result') {
      this.results += 1
      this.#ledger.acknowledgeResult(rest[0], rest[1])
    } else if (ERRANDS.has(word)) this.#ledger.note([word, ...rest])
    else if (word === 'refused') this.refused.set(rest[0], (this.refused.get(rest[0]) ?? 0) + 1)
    else if (word === 'trouble') this.troubles.push(rest.join(' '))
  }
}
