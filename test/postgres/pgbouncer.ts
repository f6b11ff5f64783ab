import { execFileSync, spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createConnection, createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'

/** The program, if installed: on the PATH, where Debian puts it, or named by MILLRACE_PGBOUNCER (test/postgres/pgbouncer.sh downloads one). */
export const pgbouncer = process.env['MILLRACE_PGBOUNCER'] ?? programOf('pgbouncer')

function programOf(name: string): string | undefined {
  const folders = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin']
  return folders.map((folder) => join(folder, name)).find((path) => existsSync(path))
}

/** A pooler that assigns its few sessions per transaction. */
export interface Bouncer {
  readonly url: string
  /** Crashes it, and starts it again on the same port. */
  restart(): Promise<void>
  end(): Promise<void>
}

/** Fewer sessions than connections to it, so that each connection gets sessions that others have used. */
const SESSIONS = 4

export async function startBouncer(program: string, server: string): Promise<Bouncer> {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-bouncer-'))
  chmodSync(folder, 0o755) // As root it runs as another user, which must be able to read it.
  const port = await freePort()
  const { hostname, port: serverPort, username, password, pathname } = new URL(server)
  const database = pathname.slice(1)
  const file = join(folder, 'pgbouncer.ini')
  writeFileSync(
    file,
    `[databases]
${database} = host=${hostname} port=${serverPort} dbname=${database} user=${username} password=${password}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = ${SESSIONS}
max_client_conn = 200
`,
  )
  let child: ChildProcess | undefined
  const start = async (): Promise<void> => {
    child = spawn(program, ['-q', file], { stdio: 'ignore', ...(process.getuid?.() === 0 ? { uid: nobody() } : {}) })
    while (!(await answers(port))) {
      if (child.exitCode !== null) throw new Error(`${program} ended with ${child.exitCode}: is it a PgBouncer?`)
      await new Promise((next) => setTimeout(next, 20))
    }
  }
  const stop = async (): Promise<void> => {
    const gone = new Promise((next) => child?.once('exit', next))
    child?.kill('SIGKILL')
    await gone
  }
  await start()
  return {
    url: `postgres://${username}@127.0.0.1:${port}/${database}`,
    restart: async () => {
      await stop()
      await start()
    },
    end: async () => {
      await stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

const nobody = (): number => Number(execFileSync('id', ['-u', 'nobody'], { encoding: 'utf8' }))

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection(port, '127.0.0.1')
    const tell = (isThere: boolean) => () => {
      socket.destroy()
      resolve(isThere)
    }
    socket.once('connect', tell(true)).once('error', tell(false))
  })
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const probe = createServer().listen(0, '127.0.0.1', () => {
      const { port } = probe.address() as AddressInfo
      probe.close(() => resolve(port))
    })
  })
}
