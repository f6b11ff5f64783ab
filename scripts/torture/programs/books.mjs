/**
 * The app's own tables and transactions beside the jobs, on either store. A transaction is a list of steps, each with the
 * handle it runs on: SQLite's are executed within one turn of the loop, since nothing else of the process may write meanwhile;
 * PostgreSQL's one after the other.
 */
export async function openBooks(config) {
  if (config.url === undefined) return new FileBooks(config, await sqliteLibrary(config.entry))
  const { default: pg } = await import(config.pg)
  return new ServerBooks(config, pg)
}

/** The same library as the engine's, for a handle of its own on the same file. */
async function sqliteLibrary(entry) {
  const { chooseLibrary } = await import(new URL('./store/sqlite/connection/library.js', entry).href)
  return chooseLibrary().open
}

class FileBooks {
  #db

  constructor({ file }, Database) {
    this.#db = new Database(file)
    this.#db.exec('pragma busy_timeout = 10000')
  }

  enter(tx, table, id) {
    tx.prepare(`insert into torture_${table} (id) values (?)`).run(id)
  }

  /** The steps on a handle whose transaction the caller ends; returns the result of the last step. */
  follow(tx, steps) {
    let value
    for (const step of steps) value = step(tx)
    return value
  }

  transact(steps) {
    this.#db.exec('begin immediate')
    try {
      const value = this.follow(this.#db, steps)
      this.#db.exec('commit')
      return value
    } catch (error) {
      this.#db.exec('rollback')
      throw error
    }
  }
}

class ServerBooks {
  #pool
  #schema

  constructor({ url, schema }, pg) {
    this.#schema = schema
    this.#pool = new pg.Pool({ connectionString: url.split('?')[0], max: 5, application_name: 'torture' })
    this.#pool.on('error', () => undefined) // The server may be killed; the next transaction reconnects.
    // A client that is lost while in use reports it only to its own listeners, and it may be lost as it is checked out.
    this.#pool.on('connect', (client) => client.on('error', () => undefined))
  }

  async enter(tx, table, id) {
    await tx.query(`insert into ${this.#schema}.torture_${table} (id) values ($1)`, [id])
  }

  async follow(tx, steps) {
    let value
    for (const step of steps) value = await step(tx)
    return value
  }

  async transact(steps) {
    const client = await this.#pool.connect()
    let broken
    try {
      await client.query('begin')
      const value = await this.follow(client, steps)
      await client.query('commit')
      return value
    } catch (error) {
      await client.query('rollback').catch((lost) => (broken = lost))
      throw error
    } finally {
      client.release(broken)
    }
  }
}

const CODES = new Set([
  'E_STORE_UNREACHABLE',
  'E_OUTCOME_UNKNOWN',
  'E_TX_CLOSED',
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  '57P01',
  '57P02',
  '57P03',
])

/** Whether an error says that the server is down: an error of the engine or of the app's own connection. */
export function isOutage(error) {
  return CODES.has(error?.code) || /^Connection terminated|not queryable/.test(error?.message ?? '')
}
