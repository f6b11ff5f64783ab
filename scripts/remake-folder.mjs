import { randomUUID } from 'node:crypto'
import { mkdirSync, renameSync, rmSync } from 'node:fs'
import { basename, join } from 'node:path'
import { root } from './run.mjs'

/** How often other processes may put their folder there between two renames. */
const TRIES_MAX = 20

/**
 * Fills a new folder and puts it in the place of `target`. Several processes may do so at once: each fills its own folder, and
 * what is at `target` is always complete. Between two renames nothing is there, for less than a millisecond.
 * @param {string} target
 * @param {(folder: string) => Promise<boolean>} fill returns false to keep the old folder
 */
export async function remakeFolder(target, fill) {
  // Not mkdtemp, whose folders other users cannot read: a test runs the built package as another user.
  const made = join(root, '.cache', `${basename(target)}-${randomUUID()}`)
  mkdirSync(made, { recursive: true })
  try {
    if (await fill(made)) replaceFolder(target, made)
  } finally {
    rmSync(made, { recursive: true, force: true })
  }
}

function replaceFolder(target, made) {
  const old = `${made}-old`
  for (let tries = 1; ; tries += 1) {
    moveAway(target, old)
    try {
      return renameSync(made, target)
    } catch (error) {
      // Another process put its folder there in between.
      if (tries === TRIES_MAX || !['ENOTEMPTY', 'EEXIST', 'EPERM'].includes(error.code)) throw error
    } finally {
      rmSync(old, { recursive: true, force: true })
    }
  }
}

function moveAway(target, old) {
  try {
    renameSync(target, old)
  } catch (error) {
    if (error.code !== 'ENOENT') throw error // There is none yet, or another process has just moved it.
  }
}
