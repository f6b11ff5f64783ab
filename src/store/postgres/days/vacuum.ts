import type { Timers } from '../../../world/timers.js'
import type { World } from '../../../world/world.js'
import { connectWithin, cutClient, endClient } from '../connection/client.js'
import type { PgClient } from '../connection/client.js'
import { partitionOf } from '../queries/days.js'
import { DAY_MS } from '../queries/numbers.js'
import { quoted } from '../migrations/migrate.js'
import type { Target } from '../connection/target.js'

/** Rows deleted by this process after which it vacuums: about what a store holds whose jobs are kept for some seconds. */
const VACUUM_AFTER = 50_000
const CONNECT_MS = 5_000

/**
 * Vacuums today's tables where jobs are pruned row by row at a high rate. Autovacuum looks once a minute, and by then a store that
 * prunes 20,000 jobs a second has over a million dead rows, so its tables would grow to many times what they hold. Rare or
 * slow pruning is left to autovacuum. It needs a connection for the moment that it takes; without one, or where the role does
 * not own the tables, nothing is vacuumed and nothing fails.
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

  /** So many jobs were deleted at the database's `now`. */
  deleted(jobs: number, now: number): void {
    this.#deleted += jobs
    if (this.#deleted < VACUUM_AFTER || this.#client !== undefined || this.#isClosed) return
    this.#deleted = 0
    // Another process may be at it, or the server may have no connection left: the next time is soon.
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

/** Nothing is waited for, and no table is cut at its end, which would need a lock that stops everyone: autovacuum does that. */
function vacuumOf(schema: string, now: number): string {
  const day = Math.floor(now / DAY_MS)
  const tables = [partitionOf('history', day), partitionOf('jobs', day), 'ready', 'leases']
  return `vacuum (skip_locked, truncate off) ${tables.map((table) => `${quoted(schema)}.${table}`).join(', ')}`
}
