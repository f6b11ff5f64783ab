import { pause } from '../child.mjs'

/**
 * What a laborer does beside plain jobs: it cancels jobs, pauses and resumes a queue of its own, enqueues unique jobs and in
 * transactions, and has jobs whose work is written in the transaction that settles them. What must be known about it
 * afterwards is sent at once, each with the machine's monotonic time where the order matters between processes.
 *
 * It sends `calloff id` (a cancel is called), `cancelled id ns` (it resolved with true), `paused queue ns`, `resuming queue ns`
 * (resume is called) and `undone id` (written in a transaction that was rolled back).
 */
export class Errands {
  #parts
  #books
  #count = 0
  #calm = false
  /** Jobs of this process, the newest last: the newest are cancelled. */
  #recent = []

  /** @param {{ job: Function, random: object, say: Function, note: Function, run: Function, config: object, books: object }} parts */
  constructor(parts) {
    this.#parts = parts
    this.#books = parts.books
    this.jobs = this.#makeJobs()
  }

  #makeJobs() {
    const { job, run } = this.#parts
    const retry = { limit: 5, backoff: { start: 50, max: 200 } }
    return {
      banker: job('banker', {
        run: (payload, ctx) =>
          run(payload, ctx, () => ctx.transaction((tx) => this.#books.follow(tx, this.#work(payload, ctx)))),
        retry,
      }),
      teller: job('teller', {
        run: (payload, ctx) =>
          run(payload, ctx, () =>
            this.#books.transact(this.#work(payload, ctx, (tx) => ctx.settleIn(tx, `r${payload.n}`))),
          ),
        retry,
      }),
      sole: job('sole', { run: (payload, ctx) => run(payload, ctx), unique: { by: 'place' } }),
      ordered: job('ordered', (payload, ctx) => run(payload, ctx)),
      // Runs in a queue that is paused sometimes, and pauses it itself.
      aside: job('aside', (payload, ctx) =>
        run(payload, ctx, async () => {
          if (payload.rests) await ctx.queue.pauseUntil(100)
        }),
      ),
    }
  }

  /** A row of work with the job's settlement; a throw here rolls both back. */
  #work({ n, fails }, ctx, settle = () => undefined) {
    return [
      (tx) => this.#books.enter(tx, 'work', ctx.id),
      settle,
      () => {
        if (!fails || ctx.attempt !== 1) return `r${n}`
        this.#parts.note('f', ctx.id)
        throw new Error('rolled back on purpose')
      },
    ]
  }

  /** Enqueues one of its own kinds; returns the handle to await, or undefined. */
  async enqueue(mill, payload) {
    const { random, config } = this.#parts
    const kind = random.next()
    const banked = { ...payload, spawns: false, fails: random.next() < 0.2 }
    if (kind < 0.16) return mill.enqueue(this.jobs.banker, banked)
    if (kind < 0.32) return mill.enqueue(this.jobs.teller, banked)
    if (kind < 0.54) return this.#unique(mill, payload)
    if (kind < 0.82) return this.#order(mill, payload)
    return mill.enqueue(this.jobs.aside, { ...payload, rests: random.next() < 0.2 }, { queue: config.queue })
  }

  async #unique(mill, payload) {
    const { random } = this.#parts
    const onDuplicate = random.pick(['ignore', 'reject', 'replace'])
    try {
      const place = random.between(1, 3)
      return await mill.enqueue(this.jobs.sole, { ...payload, place }, { unique: { onDuplicate } })
    } catch (error) {
      if (error.code === 'E_DUPLICATE_JOB') return undefined
      throw error
    }
  }

  /** An order and its job, in one transaction that commits or does not. */
  async #order(mill, payload) {
    const { random, say } = this.#parts
    const order = `${process.pid}-${(this.#count += 1)}`
    /** @type {Promise<{ id: string }>[]} */
    const written = []
    try {
      const write = (tx) => {
        const writing = mill.enqueue(this.jobs.ordered, { ...payload, order }, { tx })
        written.push(writing)
        return writing
      }
      const decide = () => {
        if (random.next() < 0.5) throw new ChangedMind()
      }
      await this.#books.transact([(tx) => this.#books.enter(tx, 'orders', order), write, decide])
      const [handle] = await Promise.all(written)
      return handle
    } catch (error) {
      if (!(error instanceof ChangedMind)) throw error
      for (const { id } of await Promise.all(written)) say('undone', id)
      return undefined
    }
  }

  remember(id) {
    this.#recent.push(id)
    if (this.#recent.length > 40) this.#recent.shift()
  }

  /** All jobs must end: nothing more is cancelled or paused. */
  calm() {
    this.#calm = true
  }

  /** Runs the errands, whether or not anything is enqueued. */
  async goAbout(mill, complain) {
    const { random } = this.#parts
    await this.resume(mill).catch(complain) // The process that had this queue before may have died while it was paused.
    while (!this.#calm) {
      await pause(random.between(5, 60))
      await this.#errand(mill).catch(complain)
    }
  }

  async #errand(mill) {
    const { random } = this.#parts
    const kind = random.next()
    if (this.#calm) return
    if (kind < 0.6) return this.#cancel(mill)
    return kind < 0.8 ? this.#pause(mill) : this.resume(mill)
  }

  async #cancel(mill) {
    const { random, say } = this.#parts
    const id = random.pick(this.#recent)
    if (id === undefined) return
    say('calloff', id)
    if (await mill.cancel(id)) say('cancelled', id, now())
  }

  async #pause(mill) {
    const { config, say } = this.#parts
    await mill.queue(config.queue).pause()
    say('paused', config.queue, now())
  }

  async resume(mill, queue = this.#parts.config.queue) {
    this.#parts.say('resuming', queue, now())
    await mill.queue(queue).resume()
  }
}

/** The machine's monotonic time, which all of its processes share. */
export function now() {
  return process.hrtime.bigint()
}

class ChangedMind extends Error {}
