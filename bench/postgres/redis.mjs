import { spawn } from 'node:child_process'
import { existsSync, mkdirSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { runTask } from '../child.mjs'
import { freePort } from './server.mjs'

const START_MAX_MS = 10_000

/** A redis-server in PATH, or where Debian puts it. */
export function findRedis(path = process.env.PATH ?? '') {
  return [...path.split(delimiter), '/usr/bin']
    .filter((folder) => folder !== '')
    .map((folder) => join(folder, 'redis-server'))
    .find((file) => existsSync(file))
}

/** Redis for BullMQ, with the part of `PostgresPlace` that a measurement uses: it has no templates, so each copy is filled again. */
export class RedisPlace {
  #child
  #client
  #url

  static async open(program, folder) {
    mkdirSync(folder, { recursive: true })
    const place = new RedisPlace()
    const port = await freePort()
    const settings = { port, bind: '127.0.0.1', dir: folder, appendonly: 'yes', appendfsync: 'everysec', save: '' }
    const args = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, String(value)])
    place.#child = spawn(program, args, { stdio: 'ignore' })
    place.#child.on('error', () => {})
    place.#url = `redis://127.0.0.1:${port}`
    place.#client = new Redis(place.#url, { lazyConnect: true, maxRetriesPerRequest: 0, retryStrategy: () => 50 })
    place.#client.on('error', () => {})
    await place.#answers()
    return place
  }

  async #answers() {
    for (let waited = 0; waited < START_MAX_MS; waited += 50) {
      if ((await this.#client.ping().catch(() => undefined)) === 'PONG') return
      await setTimeout(50)
    }
    this.kill()
    throw new Error(`redis-server did not answer within ${START_MAX_MS / 1000} s`)
  }

  async version() {
    return /redis_version:(\S+)/.exec(await this.#client.info('server'))?.[1]
  }

  async template(_key, steps) {
    return steps
  }

  async copyOf(steps) {
    await this.#client.flushall()
    for (const step of steps) await runTask({ ...step, ...this.whereOf() })
  }

  async remove() {
    await this.#client.flushall()
  }

  whereOf() {
    return { url: this.#url, serverPid: this.#child.pid }
  }

  async stop() {
    await this.#client.shutdown('NOSAVE').catch(() => {})
    this.#client.disconnect()
  }

  kill() {
    this.#child.kill('SIGKILL')
    this.#client.disconnect()
  }
}
