import { Child, until } from './child.mjs'

/** A process that does not close within this time is killed by the caller. */
const CLOSE_MS = 20_000

/** Processes of one program that are killed and replaced. Each writes `up` when it works, and closes at `close`. */
export class Fleet {
  #program
  #config
  #living = new Set()
  #lives = 0

  constructor(program, config) {
    this.#program = program
    this.#config = config
  }

  start() {
    this.#lives += 1
    const config = { ...this.#config, life: this.#lives }
    const child = new Child(this.#program, config, {
      hear: ([word], self) => {
        if (word === 'up') self.isUp = true
      },
    })
    this.#living.add(child)
    void child.ended.then(() => this.#living.delete(child))
  }
  get living() {
    return [...this.#living]
  }
  get up() {
    return this.living.filter((child) => child.isUp)
  }
  tell(word) {
    for (const child of this.living) child.tell(word)
  }
  async close() {
    this.tell('close')
    await until(() => this.living.length === 0, CLOSE_MS)
  }
  killAll() {
    return Promise.all(this.living.map((child) => child.kill()))
  }
}

/** A server of the run's own. */
export async function startPostgres(ground) {
  const { startPostgres: start } = await import(ground.entry.replace('index.js', 'testing/index.js'))
  return start()
}
