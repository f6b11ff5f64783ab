import { existsSync, readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import pg from 'pg'

const INSTALLED = '/usr/lib/postgresql'
/** As for the server from npm: whether autovacuum runs would decide some figures. All else is the default. */
const SETTINGS = { autovacuum: 'off', max_connections: '200' }

/** The folder of programs that `--server` names: `debian` is the newest that Debian has installed. */
export function programsOf(named) {
  if (named !== 'debian') return named
  const majors = existsSync(INSTALLED) ? readdirSync(INSTALLED).filter((name) => /^\d+$/.test(name)) : []
  const [newest] = majors.sort((a, b) => Number(b) - Number(a))
  if (newest === undefined) throw new Error(`--server debian: there is no PostgreSQL in ${INSTALLED}`)
  return join(INSTALLED, newest, 'bin')
}

/** A server of the programs in a folder, with stock settings; as `Server`. */
export class InstalledServer {
  #server
  #admin

  /** @param {string} bin @param {string} dist of the package, whose test kit starts servers */
  static async start(bin, dist) {
    const { startPostgres } = await import(pathToFileURL(join(dirname(dist), 'dist', 'testing', 'index.js')).href)
    const made = new InstalledServer()
    made.#server = await startPostgres({ bin, settings: SETTINGS })
    made.#admin = await made.connect(made.url('postgres'))
    const [{ pid }] = await made.query(`select split_part(pg_read_file('postmaster.pid'), E'\\n', 1) as pid`)
    made.pid = Number(pid)
    return made
  }

  url(database) {
    const url = new URL(this.#server.url)
    url.pathname = `/${database}`
    return url.href
  }

  async connect(url) {
    const client = new pg.Client({ connectionString: url })
    client.on('error', () => {})
    await client.connect()
    return client
  }

  async query(text) {
    return (await this.#admin.query(text)).rows
  }

  async stop() {
    await this.#admin?.end()
    await this.#server.stop()
  }

  /** The keeper of the test kit stops it when this process ends. */
  kill() {}
}
