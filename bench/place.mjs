import { closeSync, copyFileSync, cpSync, fdatasyncSync, mkdirSync, mkdtempSync } from 'node:fs'
import { openSync, rmSync, symlinkSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { nowMs } from './clock.mjs'
import { runTask } from './child.mjs'
import { percentile } from './figures.mjs'

/**
 * The working folder of a run, on the repository's disk (a temporary folder may be in memory, where a flush
 * costs nothing), with a copy of the built package, so that a build in between changes nothing.
 */
export class Place {
  #folder
  #templates = new Map()
  #files = 0

  /** @param {string} root the repository */
  constructor(root) {
    mkdirSync(join(root, '.cache'), { recursive: true })
    this.#folder = mkdtempSync(join(root, '.cache', 'bench-'))
    const home = join(this.#folder, 'package')
    cpSync(join(root, 'dist'), join(home, 'dist'), { recursive: true })
    cpSync(join(root, 'package.json'), join(home, 'package.json'))
    symlinkSync(join(root, 'node_modules'), join(home, 'node_modules'))
    this.dist = join(home, 'dist')
  }

  /** A path for a new file, in a folder of its own, which also holds the files beside a database. */
  newFile() {
    const folder = join(this.#folder, `file-${(this.#files += 1)}`)
    mkdirSync(folder)
    return join(folder, 'jobs.db')
  }

  /**
   * A file to begin from, made once by `steps`, tasks that run one after another on it.
   * @param {string} key
   * @param {readonly object[]} steps
   */
  template(key, steps) {
    if (!this.#templates.has(key)) this.#templates.set(key, this.#make(steps))
    return this.#templates.get(key)
  }

  async #make(steps) {
    const file = this.newFile()
    for (const step of [...steps, { task: 'fold' }]) await runTask({ file, dist: this.dist, ...step })
    return file
  }

  /** A fresh copy: already read once, so that it is in memory for every contestant, and on disk, so that no measurement pays for it later. */
  copyOf(template) {
    const file = this.newFile()
    copyFileSync(template, file)
    const handle = openSync(file, 'r+')
    fdatasyncSync(handle)
    closeSync(handle)
    return file
  }

  /** What a task needs to work on a copy. */
  whereOf(file) {
    return { file, dist: this.dist }
  }

  remove(file) {
    rmSync(join(file, '..'), { recursive: true, force: true })
  }

  /** Templates of a million jobs are large, and the next scenario has its own. */
  async dropTemplates() {
    for (const making of this.#templates.values()) this.remove(await making)
    this.#templates.clear()
  }

  /** What a flush costs on this disk: the figures of FULL depend on it. */
  flushMs() {
    const handle = openSync(join(this.#folder, 'flush'), 'w')
    const page = Buffer.alloc(4096, 1)
    const tookMs = Array.from({ length: 200 }, () => {
      writeSync(handle, page)
      const began = nowMs()
      fdatasyncSync(handle)
      return nowMs() - began
    })
    closeSync(handle)
    return { p50: percentile(tookMs, 50), p99: percentile(tookMs, 99) }
  }

  clear() {
    rmSync(this.#folder, { recursive: true, force: true })
  }

  /** At once, when the run is interrupted. */
  abandon() {
    this.clear()
  }
}
