import { execFileSync } from 'node:child_process'
import { chownSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from 'pg'
import { startPostgres } from '../../src/testing/index.js'
import { startKeeper } from '../../src/testing/postgres/postgres-keeper.js'
import type { Keeper, Step } from '../../src/testing/postgres/postgres-keeper.js'

/** A server that can crash, and start again on the same port with the same data. */
export interface Restartable {
  readonly url: string
  /** As `pg_ctl stop -m immediate`: clients get no message, and the next start recovers. */
  crash(): Promise<void>
  /** As when its machine fails: kill -9. */
  kill(): Promise<void>
  start(): Promise<void>
  /** A second server that follows this one, on a port of its own. This one is down for a moment. */
  follow(): Promise<Follower>
  /** Stops it for good. */
  end(): Promise<void>
}

/** A hot standby. */
export interface Follower {
  readonly url: string
  end(): Promise<void>
}

export async function startRestartable(settings: Readonly<Record<string, string>> = {}): Promise<Restartable> {
  const server = await startPostgres({ settings: { fsync: 'off', max_connections: '100', ...settings } })
  const folder = await dataFolder(server.url)
  const pidFile = join(folder, 'postmaster.pid')
  const [program, ...args] = readFileSync(`/proc/${pidIn(pidFile)}/cmdline`, 'utf8')
    .split('\0')
    .slice(0, -1) as [string]
  const { uid, gid } = statSync(folder)
  const who = process.getuid?.() === 0 ? { uid, gid } : {}
  let keeper: Keeper | undefined
  const stop = async (signal: 'SIGQUIT' | 'SIGKILL'): Promise<void> => {
    const running = pidIn(pidFile)
    process.kill(running, signal)
    while (isThere(running)) await new Promise((next) => setTimeout(next, 10))
    await keeper?.stop()
    keeper = undefined
  }
  const start = async (): Promise<void> => {
    keeper = startKeeper(mkdtempSync(join(tmpdir(), 'millrace-again-')))
    await serve(keeper, { program, args, options: { cwd: folder, env: { LC_ALL: 'C' }, ...who }, pidFile })
  }
  return {
    url: server.url,
    crash: () => stop('SIGQUIT'),
    kill: () => stop('SIGKILL'),
    start,
    follow: async () => {
      // A copy of the files after a crash is a valid base backup, and needs no program that the package does not have.
      await stop('SIGQUIT')
      const home = mkdtempSync(join(tmpdir(), 'millrace-follower-'))
      if ('uid' in who) chownSync(home, uid, gid)
      const data = join(home, 'data')
      execFileSync('cp', ['-a', folder, data])
      rmSync(join(data, 'postmaster.pid'), { force: true })
      await start()
      return startFollower({ program, args, who, home, data, url: server.url })
    },
    end: async () => {
      await keeper?.stop()
      await server.stop()
    },
  }
}

interface FollowerParts {
  readonly program: string
  readonly args: readonly string[]
  readonly who: { readonly uid?: number; readonly gid?: number }
  readonly home: string
  readonly data: string
  /** The address of the server to follow. */
  readonly url: string
}

async function startFollower({ program, args, who, home, data, url }: FollowerParts): Promise<Follower> {
  const { port, password } = new URL(url)
  const ownPort = String(await freePort())
  const signal = join(data, 'standby.signal')
  writeFileSync(signal, '')
  if (who.uid !== undefined && who.gid !== undefined) chownSync(signal, who.uid, who.gid)
  const conninfo = `host=127.0.0.1 port=${port} user=postgres password=${password} application_name=follower`
  const flags = args.filter(
    (_, at) => !['-D', '-p'].includes(args[at] ?? '') && !['-D', '-p'].includes(args[at - 1] ?? ''),
  )
  const keeper = startKeeper(home)
  await serve(keeper, {
    program,
    args: ['-D', data, '-p', ownPort, ...flags, '-c', `primary_conninfo=${conninfo}`],
    options: { cwd: data, env: { LC_ALL: 'C' }, ...who },
    pidFile: join(data, 'postmaster.pid'),
  })
  const own = new URL(url)
  own.port = ownPort
  return { url: own.href, end: () => keeper.stop() }
}

async function serve(keeper: Keeper, step: Step): Promise<void> {
  const told = await keeper.run(step)
  if (!told.ready) throw new Error(`the server did not come up: ${told.output}`)
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const probe = createServer().listen(0, '127.0.0.1', () => {
      const { port } = probe.address() as AddressInfo
      probe.close(() => resolve(port))
    })
  })
}

async function dataFolder(url: string): Promise<string> {
  const client = new Client(url)
  await client.connect()
  const { rows } = await client.query<{ data_directory: string }>('show data_directory')
  await client.end()
  return rows[0]?.data_directory as string
}

function pidIn(pidFile: string): number {
  return Number(readFileSync(pidFile, 'utf8').split('\n')[0])
}

function isThere(pid: number): boolean {
  try {
    // A zombie that its parent has not reaped yet has ended as well.
    return !readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ')
  } catch {
    return false
  }
}
