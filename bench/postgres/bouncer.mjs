import { execFileSync, spawn } from 'node:child_process'
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createConnection } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from './server.mjs'

const PROGRAM = process.env.MILLRACE_PGBOUNCER ?? '/usr/sbin/pgbouncer'

/** Undefined: this machine has no PgBouncer. */
export function findBouncer() {
  return existsSync(PROGRAM) ? PROGRAM : undefined
}

/** PgBouncer in transaction mode before one database. */
export async function startBouncer(program, url) {
  const { hostname, port: serverPort, username, password, pathname } = new URL(url)
  const folder = mkdtempSync(join(tmpdir(), 'millrace-bench-bouncer-'))
  chmodSync(folder, 0o755)
  const [port, database, file] = [await freePort(), pathname.slice(1), join(folder, 'pgbouncer.ini')]
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
`,
  )
  const user =
    process.getuid?.() === 0 ? { uid: Number(execFileSync('id', ['-u', 'nobody'], { encoding: 'utf8' })) } : {}
  const child = spawn(program, ['-q', file], { stdio: 'ignore', ...user })
  const gone = new Promise((resolve) => child.once('exit', resolve))
  while (!(await answers(port))) {
    if (child.exitCode !== null) throw new Error(`${program} ended with ${child.exitCode}`)
    await new Promise((next) => setTimeout(next, 20))
  }
  const stop = async () => {
    child.kill('SIGKILL')
    await gone
    rmSync(folder, { recursive: true, force: true })
  }
  return { url: `postgres://${username}@127.0.0.1:${port}/${database}`, stop }
}

function answers(port) {
  return new Promise((resolve) => {
    const socket = createConnection(port, '127.0.0.1')
    const tell = (isThere) => () => {
      socket.destroy()
      resolve(isThere)
    }
    socket.once('connect', tell(true)).once('error', tell(false))
  })
}
