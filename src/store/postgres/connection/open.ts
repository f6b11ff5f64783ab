import type { Timers } from '../../../world/timers.js'
import type { World } from '../../../world/world.js'
import { refuseOlder } from '../../migrations.js'
import { CALL_PACE } from '../../info.js'
import type { StoreInfo } from '../../info.js'
import type { Heartbeat, HeartbeatRequest } from '../../workers.js'
import { isSame, readHome } from '../caller-transactions/check-open.js'
import type { Home } from '../caller-transactions/check-open.js'
import { channelOf } from '../wake/channel.js'
import type { Connection } from './connection.js'
import { makeConnections } from './connections.js'
import { answerWithin, connectWithin, endClient } from './client.js'
import type { PgClient } from './client.js'
import { Owners } from '../days/days.js'
import { dayQueries } from '../queries/days.js'
import type { DayQueries } from '../queries/days.js'
import { HintChannel } from '../wake/hint-channel.js'
import type { SqlExecutor } from './sql-executor.js'
import type { Direct } from '../wake/notify-connection.js'
import { bringUpToDate } from '../migrations/database-migrations.js'
import { translate } from './faults.js'
import {
  INSPECT_SERVER,
  listenWarning,
  ownerWarning,
  poolerWarning,
  refuseUnfit,
  shortageWarning,
  warningsOf,
} from './fitness.js'
import type { Found } from './fitness.js'
import { HandlerConnections } from './handler-connections.js'
import { quoted, refuseNewer, schemaVersion, SCHEMA_VERSION } from '../migrations/migrate.js'
import { Notices } from '../wake/notices.js'
import { makeQueries } from '../queries/queries.js'
import type { Queries } from '../queries/queries.js'
import { CONNECTION_NEEDED, isConnectionNeeded } from './session.js'
import { Shortage } from './shortage.js'
import type { Target } from './target.js'

/** Time limit of each step of the first read of the server. */
const STEP_MS = 10_000

/** An open database: its connections, and what was read about it. */
export interface Opened {
  readonly info: StoreInfo
  readonly queries: Queries
  readonly days: DayQueries
  /** The sender's name in notifications of this process. */
  readonly self: string
  readonly world: World
  readonly target: Target
  /** Tells this database from another, so that a caller's transaction on the wrong database is refused. */
  home(): Home
  /** The same, read from the server again: tables that are created again have another identity. */
  readHome(): Promise<Home>
  readonly handlerConnections: HandlerConnections
  connection(kind: 'writes' | 'work'): Connection
  /** Notifies other processes of a commit. A hint: it may be lost. */
  notify(payload: string): void
  /** Resolves when this process listens. */
  listening(): Promise<void>
  /** Whether notifications reach this process; true where it does not listen. */
  isHeard(): Promise<boolean>
  /** Called when a lost connection was replaced, perhaps by one to another server. */
  onReconnect(callback: () => void): void
  /** Passes on notifications of other processes from now on. */
  listen(onPayload: (payload: string) => void): void
  startHeartbeat(...request: HeartbeatRequest): Promise<Heartbeat | undefined>
  close(): Promise<void>
}

export async function openDatabase(target: Target, autoMigrate: boolean, world: World): Promise<Opened> {
  const schema = quoted(target.schema)
  const queries = makeQueries(schema, channelOf(target.schema))
  const self = world.ids.workerId()
  const server = await inspectServer(target, queries, self, world.timers)
  const { keepsSession } = server
  const engine = `PostgreSQL ${server.version}`
  const notices = new Notices()
  const shortage = new Shortage(world, (error) => notices.warn(shortageWarning(target.name, error)))
  const connections = makeConnections({ target, queries, world, keepsSession, shortage })
  const { writes, work } = connections
  const days = dayQueries(schema)
  const rereadHome = async (): Promise<Home> => (home = await readHome(writes, schema))
  let home = await prepare(writes, target, autoMigrate)
    .then(() => readHome(writes, schema))
    .catch(async (error: unknown) => {
      await connections.close() // An open connection would keep the refused process running.
      throw error
    })
  const owners = new Owners(work, days, (owner) => server.warnings.push(ownerWarning(target.name, owner)))
  const requestConnections = (): void => channel.notify(`${self} ${CONNECTION_NEEDED}`)
  const parts = { target, queries, world, isDirect: keepsSession, shortage, requestConnections }
  const handlerConnections = new HandlerConnections(parts)
  const direct = target.listen === undefined ? undefined : directListen(target.listen, () => home, notices)
  const canListen = keepsSession || direct !== undefined
  const notifyFallback = (payload: string): Promise<unknown> => work.query(queries.notify, [payload])
  const channel = new HintChannel(target, world, canListen ? queries.listen : null, notifyFallback, direct)
  return {
    info: { name: target.name, engine, warnings: server.warnings, onNotice: notices.on, ...CALL_PACE.postgres },
    queries,
    days,
    self,
    world,
    target,
    home: () => home,
    readHome: rereadHome,
    handlerConnections,
    connection: (kind) => (kind === 'writes' ? writes : work),
    notify: (payload) => channel.notify(payload),
    listening: () => channel.listening(),
    isHeard: () => channel.isHeard(`${self} probe`),
    onReconnect: (callback) => connections.onReconnect(callback),
    listen: (onPayload) =>
      channel.listen((payload) => {
        if (isConnectionNeeded(payload, self)) handlerConnections.closeIdle()
        onPayload(payload)
      }),
    async startHeartbeat(worker, everyMs, onLost, loop) {
      await owners.check() // A process without a worker prunes nothing, so it does not need this.
      return channel.startHeartbeat({ ...queries, worker, everyMs, onLost, loop })
    },
    async close() {
      await channel.flushed()
      await Promise.all([channel.close(), handlerConnections.close(), connections.close()])
    },
  }
}

interface ServerFacts {
  readonly version: string
  readonly warnings: string[]
  /**
   * No pooler assigns another session for each transaction: notifications are delivered, and prepared statements stay.
   */
  readonly keepsSession: boolean
}

/** Refuses a server that cannot hold a store, before anything is written. */
async function inspectServer(target: Target, queries: Queries, self: string, timers: Timers): Promise<ServerFacts> {
  const client = target.makeClient()
  client.on('error', () => undefined)
  const within = <T>(answer: Promise<T>): Promise<T> => answerWithin(client, timers, STEP_MS, answer)
  try {
    await connectWithin(client, timers, STEP_MS)
    const { rows } = await within(client.query({ text: INSPECT_SERVER, values: [] }))
    const found = rows[0] as Found
    refuseUnfit(found, target.name)
    const keepsSession = isDirect(client, found) && (await within(deliversToItself(client, queries, self)))
    const warnings = warningsOf(found, target.name)
    if (!keepsSession && target.listen === undefined) warnings.push(poolerWarning(target.name))
    return { version: found.version, warnings, keepsSession }
  } catch (error) {
    throw translate(error, target.name)
  } finally {
    await endClient(client, timers)
  }
}

/**
 * A pooler reports a process id of its own at login. That a notification to itself is delivered is no proof: an idle
 * pooler assigns the same session again and again, and its settings stay for the next client.
 */
function isDirect(client: PgClient, found: Pick<Found, 'process'>): boolean {
  return typeof client.processID !== 'number' || client.processID === found.process
}

/** The connection that bypasses a pooler: it must reach the same database, and not through another pooler. */
function directListen(target: Target, home: () => Home, notices: Notices): Direct & { readonly target: Target } {
  const text = 'select pg_backend_pid() as process'
  return {
    target,
    check: async (client) => {
      const { rows } = await client.query({ text, values: [] })
      const { process } = rows[0] as { readonly process: unknown }
      if (!isDirect(client, { process: Number(process) })) return 'leads to a connection pooler as well'
      const executor: SqlExecutor = {
        query: async <R extends object>(sql: string, values: readonly (string | null)[]) =>
          (await client.query({ text: sql, values })).rows as R[],
      }
      // A database without the tables of Millrace is another one too.
      const there = await readHome(executor, home().schema).catch(() => undefined)
      return there !== undefined && isSame(there, home()) ? undefined : 'leads to another database'
    },
    report: (wrong) => notices.warn(listenWarning(target.name, wrong)),
  }
}

/** Listens, notifies itself and waits for it: shows that no pooler keeps notifications back. */
async function deliversToItself(client: PgClient, queries: Queries, self: string): Promise<boolean> {
  const probe = `probe ${self}`
  const delivered = new Promise<boolean>((resolve) => {
    client.on('notification', ({ payload }) => {
      if (payload === probe) resolve(true)
    })
    void client
      .query({ text: queries.listen, values: [] })
      .then(() => client.query({ text: queries.notify, values: [probe] }))
      // Notifications are delivered before the answer to the next statement.
      .then(() => client.query({ text: 'select 1', values: [] }))
      .then(() => resolve(false))
      .catch(() => resolve(false))
  })
  return delivered
}

/** Migrates the tables, if `autoMigrate` is set. */
async function prepare(writes: Connection, target: Target, autoMigrate: boolean): Promise<void> {
  const version = await schemaVersion(writes, target.schema)
  refuseNewer(version, target.name)
  if (version < SCHEMA_VERSION && !autoMigrate)
    refuseOlder(target.name, version, SCHEMA_VERSION, target.migrateCommand, ', as a role that owns the schema,')
  if (version < SCHEMA_VERSION) await bringUpToDate(writes, target)
}
