import type { Timers } from '../../../world/timers.js'
import type { World } from '../../../world/world.js'
import { connectWithin, cutClient, endClient } from '../connection/client.js'
import type { PgClient } from '../connection/client.js'
import { partitionOf } from '../queries/days.js'
import { DAY_MS } from '../numbers.js'
import { quoted } from '../migrations/migrate.js'
import type { Target } from '../connection/target.js'

/**
 * Rows deleted by this process after which it vacuums: about the size of a store whose jobs are kept for some seconds.
 */
const VACUUM_AFTER = 50_000
const CONNECT_MS = 5_000

/**
 * Vacuums today's tables if jobs are pruned row by row at a high rate. Autovacuum runs once a minute, and by then a
 * store that prunes 20,000 jobs a second has over a million dead rows, so its tables would grow to many times their
 * content. Rare or slow pruning is left to autovacuum. It makes a connection for the time that it takes; without one,
 * or if the role does not own the tables, nothing is vacuumed and nothing fails.
 */
export class Vacuum {
  readonly #target: Pick<Target, 'makeClient' | 'schema'>
  readonly #timers: Timers
  #deleted = 0
  #client: PgClient | undefined
  #isClosed = false

  constructor(target: Pick<Target, 'makeClient' | 'schema'>, world: Pick<World, 'timers'>) {
    this.#target = target
    this.#timers = world.timers
  }

  /** Counts deleted jobs; `now` is that of the server. */
  deleted(jobs: number, now: number): void {
    this.#deleted += jobs
    if (this.#deleted < VACUUM_AFTER || this.#client !== undefined || this.#isClosed) return
    this.#deleted = 0
    // Another process may run it, or the server may have no connection left: the next time is soon.
    void this.#run(vacuumOf(this.#target.schema, now)).catch(() => undefined)
  }

  close(): void {
    this.#isClosed = true
    if (this.#client !== undefined) cutClient(this.#client)
  }

  async #run(text: string): Promise<void> {
    const client = this.#target.makeClient()
    this.#client = client
    client.on('error', () => undefined)
    try {
      await connectWithin(client, this.#timers, CONNECT_MS)
      client.unref?.()
      await client.query({ text, values: [] })
    } finally {
      await endClient(client, this.#timers).catch(() => undefined)
      this.#client = undefined
    }
  }
}

/** Skips locked tables, and does not truncate them, which would need an exclusive lock: autovacuum does that. */
function vacuumOf(schema: string, now: number): string {
  const day = Math.floor(now / DAY_MS)
  const tables = [partitionOf('history', day), partitionOf('jobs', day), 'ready', 'leases']
  return `vacuum (skip_locked, truncate off) ${tables.map((table) => `${quoted(schema)}.${table}`).join(', ')}`
}
