import { execFileSync } from 'node:child_process'
import { chmodSync, chownSync, cpSync, lchownSync, mkdtempSync, readdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { MillraceError } from '../../errors.js'
import { systemIds } from '../../world/ids.js'
import { startKeeper } from './postgres-keeper.js'
import type { Keeper, Step, StepResult } from './postgres-keeper.js'
import type { Programs } from './postgres-programs.js'

export type Settings = Readonly<Record<string, string>>

export interface Server {
  readonly url: string
  /** As the server gives it: `18.4`. */
  readonly version: string
  readonly stop: () => Promise<void>
}

/** The user that the server runs as. PostgreSQL refuses to run as root; for any other user it is the same user. */
type User = { readonly uid: number; readonly gid: number } | Record<never, never>

/** A server of our own, in a folder of its own, on a port of its own. */
export async function startServer(programs: Programs, settings: Settings): Promise<Server> {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-postgres-'))
  const keeper = startKeeper(folder)
  try {
    const server = new ServerFolder(folder, keeper, serverUser())
    const { bin, version } = await server.usablePrograms(programs)
    const password = await server.makeData(bin)
    const port = await server.serve(bin, settings)
    return { url: `postgresql://postgres:${password}@127.0.0.1:${port}/postgres`, version, stop: keeper.stop }
  } catch (error) {
    await keeper.stop()
    throw error
  }
}

/** Now and then another process takes a free port before the server has started on it; not five times in a row. */
const PORT_TRIES = 5

class ServerFolder {
  readonly #folder: string
  readonly #keeper: Keeper
  readonly #user: User

  constructor(folder: string, keeper: Keeper, user: User) {
    this.#folder = folder
    this.#keeper = keeper
    this.#user = user
    if ('uid' in user) chownSync(folder, user.uid, user.gid)
  }

  /**
   * The programs where they are, if they run. Those of the package may not: its install script, which makes links between
   * libraries, was blocked; or we are root, its folder is in root's home, and the server's user cannot reach it. A copy of
   * our own works in both cases, and leaves node_modules as it is.
   */
  async usablePrograms({ bin, packageFolder }: Programs): Promise<{ bin: string; version: string }> {
    const result = await this.#run(join(bin, 'postgres'), ['--version'])
    if (result.code === 0) return { bin, version: versionIn(result.output) }
    if (packageFolder === undefined) throw notStarted(join(bin, 'postgres'), result)
    const copied = this.#copyPackage(packageFolder)
    const again = await this.#run(join(copied, 'postgres'), ['--version'])
    if (again.code !== 0) throw notStarted(join(bin, 'postgres'), again)
    return { bin: copied, version: versionIn(again.output) }
  }

  /** A new cluster that only a password of chance opens; gives the password. */
  async makeData(bin: string): Promise<string> {
    const ids = systemIds()
    const password = ids.workerId() + ids.workerId()
    const passwordFile = join(this.#folder, 'password')
    writeFileSync(passwordFile, `${password}\n`, { mode: 0o600 })
    if ('uid' in this.#user) chownSync(passwordFile, this.#user.uid, this.#user.gid)
    const result = await this.#run(join(bin, 'initdb'), [
      `--pgdata=${this.#data}`,
      '--username=postgres',
      `--pwfile=${passwordFile}`,
      '--auth=scram-sha-256',
      '--encoding=UTF8',
      '--locale=C',
      '--no-sync', // Nothing is promised of this folder before the server is up; then its own settings count.
    ])
    if (result.code !== 0) throw notStarted(join(bin, 'initdb'), result)
    return password
  }

  /** Starts the server and gives its port. */
  async serve(bin: string, settings: Settings): Promise<number> {
    const program = join(bin, 'postgres')
    const all = { listen_addresses: '127.0.0.1', unix_socket_directories: '', ...settings }
    const flags = Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`])
    for (let left = PORT_TRIES; ; left -= 1) {
      const port = await freePort()
      const args = ['-D', this.#data, '-p', String(port), ...flags]
      const result = await this.#keeper.run(this.#step(program, args, join(this.#data, 'postmaster.pid')))
      if (result.ready) return port
      if (left <= 1 || !/could not (bind|create any)/.test(result.output)) throw notStarted(program, result)
    }
  }

  get #data(): string {
    return join(this.#folder, 'data')
  }

  #copyPackage(packageFolder: string): string {
    const copy = join(this.#folder, 'package')
    cpSync(packageFolder, copy, { recursive: true, verbatimSymlinks: true })
    execFileSync(process.execPath, [join('scripts', 'hydrate-symlinks.js')], { cwd: copy, stdio: 'ignore' })
    const bin = join(copy, 'native', 'bin')
    for (const name of readdirSync(bin)) chmodSync(join(bin, name), 0o755)
    if ('uid' in this.#user)
      for (const name of ['.', ...readdirSync(copy, { recursive: true, encoding: 'utf8' })])
        lchownSync(join(copy, name), this.#user.uid, this.#user.gid)
    return bin
  }

  async #run(program: string, args: readonly string[]): Promise<Ended> {
    return (await this.#keeper.run(this.#step(program, args))) as Ended
  }

  #step(program: string, args: readonly string[], pidFile?: string): Step {
    const options = { cwd: this.#folder, env: plainEnvironment(), ...this.#user }
    return { program, args, options, ...(pidFile === undefined ? {} : { pidFile }) }
  }
}

type Ended = Exclude<StepResult, { ready: true }>

/** What the app's shell says of languages and of its own PostgreSQL is not said to this one. */
function plainEnvironment(): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(([name]) => !/^(PG|LC_|LANG|NODE_)/.test(name))
  return { ...Object.fromEntries(kept), LC_ALL: 'C' }
}

/** Users that every system has; none is made for us. `postgres` is there where PostgreSQL was ever installed. */
function serverUser(): User {
  if (process.getuid?.() !== 0) return {}
  for (const name of ['postgres', 'nobody']) {
    try {
      const [uid, gid] = ['-u', '-g'].map((which) =>
        Number(execFileSync('id', [which, name], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })),
      )
      return { uid: uid as number, gid: gid as number }
    } catch {
      // There is no such user: the next one.
    }
  }
  throw new MillraceError(
    'E_POSTGRES_NOT_STARTED',
    'startPostgres(): PostgreSQL does not run as root, and there is no user "postgres" or "nobody" to run it as; run the tests as another user',
  )
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer()
    probe.once('error', reject)
    probe.listen(0, '127.0.0.1', () => {
      const { port } = probe.address() as AddressInfo
      probe.close(() => resolve(port))
    })
  })
}

const versionIn = (output: string): string => /\d+(\.\d+)*\S*/.exec(output)?.[0] ?? output.trim()

function notStarted(program: string, { code, output }: Ended): MillraceError {
  const words = output.trim() === '' ? 'said nothing' : `said:\n${output.trim()}`
  return new MillraceError('E_POSTGRES_NOT_STARTED', `startPostgres(): ${program} ended with ${code} and ${words}`)
}
