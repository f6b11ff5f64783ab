import { dirname } from 'node:path'
import { runTask } from '../child.mjs'
import { Place } from '../place.mjs'
import { findRedis, RedisPlace } from './redis.mjs'
import { InstalledServer, programsOf } from './installed-server.mjs'
import { Server } from './server.mjs'

/**
 * The place of a run on PostgreSQL: as `Place`, but what is filled once and copied for each measurement is a database of
 * a separate server. Redis, if installed, is a place beside it.
 */
export class PostgresPlace {
  #base
  #server
  #redis
  #templates = new Map()
  #databases = 0

  /** @param {string} root @param {string} [server] the folder of its programs, or `debian`; undefined: from npm */
  static async open(root, server) {
    const place = new PostgresPlace()
    place.#base = new Place(root)
    try {
      place.#server =
        server === undefined
          ? await Server.start(dirname(place.#base.newFile()))
          : await InstalledServer.start(programsOf(server), place.#base.dist)
      const program = findRedis()
      if (program !== undefined) place.#redis = await RedisPlace.open(program, dirname(place.#base.newFile()))
    } catch (error) {
      place.abandon()
      throw error
    }
    return place
  }

  get dist() {
    return this.#base.dist
  }

  get server() {
    return this.#server
  }

  /** Undefined: this machine has no Redis. */
  get redis() {
    return this.#redis
  }

  /**
   * A database to begin from, made once by `steps`, tasks that run one after another on it.
   * @param {string} key
   * @param {readonly object[]} steps
   * @param {{ analysed?: boolean }} [how] never analysed: the state right after a bulk, before the first autovacuum
   */
  template(key, steps, { analysed = true } = {}) {
    const name = analysed ? key : `${key} never analysed`
    if (!this.#templates.has(name)) this.#templates.set(name, this.#make(steps, analysed))
    return this.#templates.get(name)
  }

  async #make(steps, analysed) {
    const database = this.#newName()
    await this.#server.query(`create database ${database}`)
    const url = this.#server.url(database)
    for (const step of steps) await runTask({ ...this.whereOf(url), ...step })
    if (analysed) await this.#analyse(url)
    return url
  }

  async #analyse(url) {
    const client = await this.#server.connect(url)
    await client.query('analyze')
    await client.end()
  }

  /** A fresh copy, flushed. Its statistics are copied too. A copy of files ends with a checkpoint, so that no measurement pays for it later. */
  async copyOf(template) {
    const database = this.#newName()
    await this.#server.query(`create database ${database} template ${nameOf(template)} strategy file_copy`)
    return this.#server.url(database)
  }

  async remove(url) {
    await this.#server.query(`drop database if exists ${nameOf(url)} with (force)`)
  }

  /** What a task needs to work on a copy. */
  whereOf(url) {
    return { url, dist: this.dist, serverPid: this.#server.pid }
  }

  async dropTemplates() {
    for (const making of this.#templates.values()) await making.then((url) => this.remove(url)).catch(() => {})
    this.#templates.clear()
  }

  flushMs() {
    return this.#base.flushMs()
  }

  async clear() {
    await this.#redis?.stop()
    await this.#server.stop()
    this.#base.clear()
  }

  /** At once, and whatever state it is in. */
  abandon() {
    this.#redis?.kill()
    this.#server?.kill()
    this.#base.clear()
  }

  #newName() {
    return `bench_${(this.#databases += 1)}`
  }
}

function nameOf(url) {
  return new URL(url).pathname.slice(1)
}
