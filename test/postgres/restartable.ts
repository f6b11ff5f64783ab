import { mkdtempSync, readFileSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from 'pg'
import { startPostgres } from '../../src/testing/index.js'
import { startKeeper } from '../../src/testing/postgres-keeper.js'
import type { Keeper } from '../../src/testing/postgres-keeper.js'

/** A server that can be taken down as by a crash, and come up again on the same port with the same data. */
export interface Restartable {
  readonly url: string
  /** As `pg_ctl stop -m immediate`: nothing is said to anybody, and the next start recovers. */
  crash(): Promise<void>
  start(): Promise<void>
  /** For good. */
  end(): Promise<void>
}

export async function startRestartable(): Promise<Restartable> {
  const server = await startPostgres({ settings: { fsync: 'off', max_connections: '100' } })
  const folder = await dataFolder(server.url)
  const pidFile = join(folder, 'postmaster.pid')
  const pid = pidIn(pidFile)
  const [program, ...args] = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').slice(0, -1) as [string]
  const { uid, gid } = statSync(folder)
  const who = process.getuid?.() === 0 ? { uid, gid } : {}
  let keeper: Keeper | undefined
  const crash = async (): Promise<void> => {
    const running = pidIn(pidFile)
    process.kill(running, 'SIGQUIT')
    while (isThere(running)) await new Promise((next) => setTimeout(next, 10))
    await keeper?.stop()
    keeper = undefined
  }
  return {
    url: server.url,
    crash,
    start: async () => {
      keeper = startKeeper(mkdtempSync(join(tmpdir(), 'millrace-again-')))
      const options = { cwd: folder, env: { LC_ALL: 'C' }, ...who }
      const told = await keeper.run({ program: program as string, args, options, pidFile })
      if (!told.ready) throw new Error(`the server did not come up again: ${told.output}`)
    },
    end: async () => {
      await keeper?.stop()
      await server.stop()
    },
  }
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
    // A zombie that its parent has not looked at yet has ended as well.
    return !readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ')
  } catch {
    return false
  }
}
