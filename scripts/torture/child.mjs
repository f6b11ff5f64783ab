import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

const PROGRAMS = {
  laborer: new URL('./programs/laborer.mjs', import.meta.url),
  faulted: new URL('./programs/faulted.mjs', import.meta.url),
  crowded: new URL('./programs/crowded.mjs', import.meta.url),
  ticker: new URL('./programs/ticker.mjs', import.meta.url),
  poisoned: new URL('./programs/poisoned.mjs', import.meta.url),
  poisons: new URL('./programs/poisons.mjs', import.meta.url),
  'long-worker': new URL('./programs/long-worker.mjs', import.meta.url),
  leaver: new URL('./programs/leaver.mjs', import.meta.url),
}

/**
 * A child process. Its messages are lines, each a word and its arguments; all messages before its death are read,
 * since a pipe outlives its writer. `ended` resolves when it has ended and every line was read.
 */
export class Child {
  pid
  /** The exit code, or the signal that ended it; undefined while it runs. */
  ended
  how
  errors = ''
  #process

  constructor(program, config, { hear, env = {} }) {
    const path = fileURLToPath(PROGRAMS[program])
    this.#process = spawn(process.execPath, [path, JSON.stringify(config)], {
      stdio: ['pipe', 'pipe', 'pipe'],
      env: { ...process.env, NODE_OPTIONS: '', ...env },
    })
    this.pid = this.#process.pid
    this.#process.stdin.on('error', () => undefined) // It may be dead already when a line is written to it.
    this.#process.stderr.on('data', (data) => (this.errors = (this.errors + data).slice(-4_000)))
    createInterface({ input: this.#process.stdout }).on('line', (line) => hear(line.split(' '), this))
    this.ended = new Promise((resolve) =>
      this.#process.once('close', (code, signal) => {
        this.how = code ?? signal ?? 'unknown'
        resolve(this.how)
      }),
    )
  }

  tell(word) {
    this.#process.stdin.write(`${word}\n`)
  }

  /** By the process id that was started here, never by name. */
  kill() {
    this.#process.kill('SIGKILL')
    return this.ended
  }
}

export function pause(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

/** Waits until `isSo` returns true; false when the time is up first. */
export async function until(isSo, withinMs, stepMs = 20) {
  const end = performance.now() + withinMs
  while (!(await isSo())) {
    if (performance.now() > end) return false
    await pause(stepMs)
  }
  return true
}
