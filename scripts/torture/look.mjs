import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { pause } from './child.mjs'

const PROGRAM = new URL('./programs/look.mjs', import.meta.url)
const ANSWER_MAX_BYTES = 512 * 1024 * 1024

/**
 * The content of a file, read without the engine. Another process reads it, because the packaged driver keeps a closed
 * file open until its statements are collected: this process could checkpoint the WAL of a file whose power has just been cut, or keep
 * a disk from being unmounted.
 * @returns {{ integrity: string, places: object[], twice: { id: string, times: number }[], unfinished: number }}
 */
export function look(file, entry) {
  const answer = spawnSync(process.execPath, [fileURLToPath(PROGRAM), JSON.stringify({ file, entry })], {
    encoding: 'utf8',
    maxBuffer: ANSWER_MAX_BYTES,
    env: { ...process.env, NODE_OPTIONS: '' },
  })
  if (answer.status !== 0) throw new Error(`${file} cannot be looked at: ${answer.stderr}`)
  return JSON.parse(answer.stdout)
}

/** Creates the tables, and counts settlements from the first. */
export function makeStore(file, entry) {
  look(file, entry)
}

/** Waits until nothing is left to do; false when the time is up first. */
export async function drains(file, withinMs) {
  const end = performance.now() + withinMs
  while (look(file).unfinished > 0) {
    if (performance.now() > end) return false
    await pause(250)
  }
  return true
}
