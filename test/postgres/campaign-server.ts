import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startPostgres } from '../../src/testing/postgres/start-postgres.js'

/** No power is cut, so the server flushes nothing, and writes as little as it can. */
const SETTINGS = {
  fsync: 'off',
  synchronous_commit: 'off',
  full_page_writes: 'off',
  wal_level: 'minimal',
  max_wal_senders: '0',
  max_connections: '200',
}

interface CampaignServer {
  readonly url: string
  stop(): Promise<void>
}

/** A server for a whole campaign, on a Unix socket where there are any: a step is ten statements, and TCP is half of their time. */
export async function startServer(): Promise<CampaignServer> {
  if (process.platform === 'win32') return startPostgres({ settings: SETTINGS })
  const folder = mkdtempSync(join(tmpdir(), 'millrace-campaign-'))
  const removeFolder = (): void => rmSync(folder, { recursive: true, force: true })
  // Where we are root, the server runs as another user.
  chmodSync(folder, 0o777)
  try {
    const server = await startPostgres({ settings: { ...SETTINGS, unix_socket_directories: folder } })
    const url = new URL(server.url)
    url.searchParams.set('host', folder)
    return { url: url.href, stop: () => server.stop().finally(removeFolder) }
  } catch (error) {
    removeFolder()
    throw error
  }
}
