import { fork } from 'node:child_process'
import { once } from 'node:events'

/** A process without a sign of life for this long runs a loop that never ends; longer, if a test of it may take longer. */
const STUCK_MS = 3_000
const SLOWER_MAX = 2
const START_MAX_MS = 60_000
/** What mutants leave behind adds up: a new process after this many. */
const TRIES_MAX = 400

/** Starts `child.mjs`, sends it one task at a time, and starts it again when a mutant has ended it or hangs in it. */
export class RunnerProcess {
  #task
  #env
  #stuckMs
  #child
  #tries = 0

  /** @param {object} task what `child.mjs` needs before its first mutant */
  constructor(task, env = {}, stuckMs = STUCK_MS) {
    this.#task = task
    this.#env = env
    this.#stuckMs = stuckMs
  }

  /** The answer to a message whose tests take `ms` each at most; `{ type: 'stuck' }` or `{ type: 'exited' }` if there is none. */
  async ask(message, ms) {
    this.#tries += 1
    if (this.#tries % TRIES_MAX === 0) this.restart()
    if (this.#child === undefined) {
      this.#child = start(this.#env)
      const ready = await send(this.#child, { type: 'begin', ...this.#task }, START_MAX_MS)
      if (ready.type !== 'ready')
        throw new Error(`the process that runs tests does not start: ${ready.reason ?? ready.type}`)
    }
    const answer = await send(this.#child, message, this.#stuckMs + SLOWER_MAX * ms)
    if (answer.type === 'stuck' || answer.type === 'exited') this.restart()
    return answer
  }

  /** The next task gets a new process. */
  restart() {
    this.#child?.kill('SIGKILL')
    this.#child = undefined
  }

  /** Resolves when the process has ended. */
  async end() {
    const child = this.#child
    this.restart()
    if (child !== undefined && child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  }
}

function start(env) {
  return fork(new URL('./child.mjs', import.meta.url), {
    env: { ...process.env, ...env },
    stdio: process.env['MUTATE_DEBUG'] ? 'inherit' : ['ignore', 'ignore', 'ignore', 'ipc'],
    execArgv: ['--no-warnings'],
    serialization: 'advanced',
  })
}

function send(child, message, stuckMs) {
  return new Promise((resolve) => {
    let timer
    const end = (answer) => {
      clearTimeout(timer)
      child.off('message', onMessage).off('exit', onExit)
      resolve(answer)
    }
    const watch = () => {
      clearTimeout(timer)
      timer = setTimeout(() => end({ type: 'stuck' }), stuckMs)
    }
    const onMessage = (answer) => (answer.type === 'alive' ? watch() : end(answer))
    const onExit = () => end({ type: 'exited' })
    child.on('message', onMessage).on('exit', onExit)
    watch()
    child.send(message, (error) => error && end({ type: 'exited' }))
  })
}
