import { mkdirSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { until } from './child.mjs'

const GONE_MS = 20_000
/** Each process has three connections, and those of its transactions. */
const SETTINGS = { max_connections: '200' }

/**
 * A PostgreSQL server that can be killed with -9, all its processes, and starts again on the same port with
 * the same data. With the address of another server it only has a database there, and cannot be killed.
 */
export async function startDoomed(url, ground) {
  const near = (path) => import(new URL(path, ground.entry).href)
  const { startPostgres } = await near('./testing/index.js')
  if (url !== '' && url !== undefined) return startPostgres({ url })
  const server = await startPostgres({ settings: SETTINGS })
  const { startKeeper } = await near('./testing/postgres/postgres-keeper.js')
  return new DoomedServer(server, await howItRuns(server.url), (name) => startKeeper(newRoom(ground, name)))
}

/** A keeper removes its folder when it leaves. */
function newRoom(ground, name) {
  const folder = join(ground.room('keepers'), name)
  mkdirSync(folder)
  return folder
}

class DoomedServer {
  url
  #server
  #step
  #makeKeeper
  #keeper
  #lives = 0

  constructor(server, step, makeKeeper) {
    this.url = server.url
    this.#server = server
    this.#step = step
    this.#makeKeeper = makeKeeper
  }

  /** The postmaster first, so that it starts no other process; then all its children, by their pids. Returns how many there were. */
  async kill() {
    const postmaster = pidIn(this.#step.pidFile)
    const all = [postmaster, ...childrenOf(postmaster)]
    for (const pid of all) end(pid)
    // Processes that it started after the listing have no parent any more; they end by themselves.
    if (!(await until(() => !all.some(isThere), GONE_MS))) throw new Error('the server outlived kill -9')
    // It still says that the dead server is ready.
    rmSync(this.#step.pidFile)
    await this.#keeper?.stop()
    this.#keeper = undefined
    return all.length
  }

  async restart() {
    this.#keeper = this.#makeKeeper(String((this.#lives += 1)))
    const told = await this.#keeper.run(this.#step)
    if (!told.ready) throw new Error(`the server did not come up again: ${told.output}`)
  }

  async stop() {
    await this.#keeper?.stop()
    await this.#server.stop()
  }
}

/** How the server was started, read from the system: the next start is the same. */
async function howItRuns(url) {
  const client = new pg.Client(url)
  await client.connect()
  const { rows } = await client.query('show data_directory')
  await client.end()
  const cwd = rows[0].data_directory
  const pidFile = join(cwd, 'postmaster.pid')
  const [program, ...args] = readFileSync(`/proc/${pidIn(pidFile)}/cmdline`, 'utf8')
    .split('\0')
    .slice(0, -1)
  const { uid, gid } = statSync(cwd)
  const who = process.getuid?.() === 0 ? { uid, gid } : {}
  return { program, args, options: { cwd, env: { LC_ALL: 'C' }, ...who }, pidFile }
}

function pidIn(pidFile) {
  return Number(readFileSync(pidFile, 'utf8').split('\n')[0])
}

function childrenOf(parent) {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && statOf(name)?.parent === parent)
    .map(Number)
}

function end(pid) {
  try {
    process.kill(pid, 'SIGKILL')
  } catch (error) {
    if (error.code !== 'ESRCH') throw error
  }
}

/** A zombie that its parent has not reaped yet has ended as well. */
function isThere(pid) {
  const stat = statOf(pid)
  return stat !== undefined && stat.state !== 'Z'
}

function statOf(pid) {
  try {
    const [state, parent] = readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ')
    return { state, parent: Number(parent) }
  } catch {
    return undefined // It has ended.
  }
}
