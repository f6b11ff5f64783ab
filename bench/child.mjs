import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

const PROGRAM = fileURLToPath(new URL('./task.mjs', import.meta.url))
/** A single measurement should take less than a tenth of it. */
const TASK_MAX_MS = 15 * 60_000

/**
 * A task in a separate process. `heard(word)` resolves when it sends that word, `result` when it has ended with success.
 * @param {object} spec
 * @param {{ nodeArgs?: readonly string[], maxMs?: number }} [options]
 */
export function startTask(spec, { nodeArgs = [], maxMs = TASK_MAX_MS } = {}) {
  const child = spawn(process.execPath, [...nodeArgs, PROGRAM, JSON.stringify(spec)], {
    stdio: ['pipe', 'pipe', 'pipe'],
    // The same for all contestants: warnings of an experimental library are not figures.
    env: { ...process.env, NODE_NO_WARNINGS: '1' },
  })
  const said = {}
  const waiting = new Map()
  let errors = ''
  const timer = setTimeout(() => child.kill('SIGKILL'), maxMs)
  child.stderr.setEncoding('utf8').on('data', (text) => (errors += text))
  createInterface({ input: child.stdout }).on('line', (line) => {
    Object.assign(said, JSON.parse(line))
    for (const [word, resolve] of waiting) if (word in said) resolve()
  })
  const result = new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (code, signal) => {
      clearTimeout(timer)
      if (code === 0 && 'result' in said) resolve(said.result)
      else reject(new Error(`${spec.task} ended with ${signal ?? code}: ${errors.trim().slice(-2000)}`))
    })
  })
  // A caller that waits for a word may never await the result.
  result.catch(() => {})
  const heard = (word) =>
    word in said ? Promise.resolve() : Promise.race([new Promise((resolve) => waiting.set(word, resolve)), result])
  return {
    result,
    heard,
    said,
    tell: (word) => child.stdin.write(`${word}\n`),
    end: () => child.stdin.end(),
    kill: () => child.kill('SIGKILL'),
  }
}

/** @param {Parameters<typeof startTask>[0]} spec @param {Parameters<typeof startTask>[1]} [options] */
export function runTask(spec, options) {
  return startTask(spec, options).result
}
