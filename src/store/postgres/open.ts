import { StoreError } from '../../errors.js'
import type { Timers } from '../../world/timers.js'
import type { World } from '../../world/world.js'
import { HELD_UNASKED_MS } from '../queues.js'
import type { StoreInfo } from '../store.js'
import type { Heart } from '../workers.js'
import { Connection } from './connection.js'
import { answerWithin, endClient } from './client.js'
import type { PgClient } from './client.js'
import { Ears } from './ears.js'
import { translate } from './faults.js'
import { Lender } from './lender.js'
import { migrate, quoted, refuseNewer, schemaVersion, SCHEMA_VERSION } from './migrate.js'
import { makeQueries } from './queries.js'
import type { Queries } from './queries.js'
import type { Target } from './target.js'

const OLDEST = 140_000
/** How long the first look may take. */
const LOOK_MS = 10_000

/** An open database: its connections, and what was found out about it. */
export interface Opened {
  readonly info: StoreInfo
  readonly queries: Queries
  readonly schema: string
  /** Our name in notifications. */
  readonly self: string
  readonly world: World
  readonly target: Target
  /** By which a transaction on another database is told from one on this. */
  readonly token: string
  readonly lender: Lender
  connection(kind: 'writes' | 'work'): Connection
  /** Called when a connection was lost and made anew: perhaps to another server. */
  onReconnect(callback: () => void): void
  /** Hears what others commit, from now on. */
  listen(heard: (news: string) => void): void
  startHeart(worker: string, everyMs: number, onLost: (why: string) => void): Promise<Heart | undefined>
  close(): Promise<void>
}

export async function openDatabase(target: Target, autoMigrate: boolean, world: World): Promise<Opened> {
  const schema = quoted(target.schema)
  const queries = makeQueries(schema, channelOf(target.schema))
  const self = world.ids.workerId()
  const look = await firstLook(target, queries, self, world.timers)
  const keepsSession = (): boolean => look.keepsSession
  const connections = new Set<Connection>()
  let reconnected: (() => void) | undefined
  const onReconnect = (): void => reconnected?.()
  const connect = (onConnect?: (client: PgClient) => Promise<unknown>): Connection => {
    const parts = { world, name: target.name, makeClient: target.makeClient, keepsSession, onReconnect }
    const connection = new Connection(onConnect === undefined ? parts : { ...parts, onConnect })
    connections.add(connection)
    return connection
  }
  const writes = connect()
  // A claim that is lost loses nothing, so it need not be flushed; a later flush takes it along.
  const work = connect(async (client) => {
    if (look.keepsSession) await client.query({ text: 'set synchronous_commit = off', values: [] })
  })
  const closeAll = (): Promise<unknown> => Promise.all([...connections].map((connection) => connection.close()))
  const token = await prepare(writes, target, autoMigrate, queries).catch(async (error: unknown) => {
    await closeAll()
    throw error
  })
  const lender = new Lender(target, target.pool, queries, world)
  const ears = new Ears(target, world, look.keepsSession ? queries.listen : null)
  return {
    info: {
      name: target.name,
      engine: `PostgreSQL ${look.version}`,
      warnings: look.warnings,
      heldUnaskedMs: HELD_UNASKED_MS.postgres,
    },
    queries,
    schema,
    self,
    world,
    target,
    token,
    lender,
    connection: (kind) => (kind === 'writes' ? writes : work),
    onReconnect: (callback) => (reconnected = callback),
    listen: (heard) => ears.listen(heard),
    startHeart: (worker, everyMs, onLost) => ears.startHeart({ worker, everyMs, beat: queries.beat, onLost }),
    async close() {
      await Promise.all([ears.close(), lender.close(), closeAll()])
    },
  }
}

interface Look {
  readonly version: string
  readonly warnings: string[]
  /** Nothing hands out another session for each transaction: what is listened for is heard, what is prepared is found. */
  readonly keepsSession: boolean
}

/** Refuses what cannot serve, before anything is written. */
async function firstLook(target: Target, queries: Queries, self: string, timers: Timers): Promise<Look> {
  const client = target.makeClient()
  client.on('error', () => undefined)
  const within = <T>(asked: Promise<T>): Promise<T> => answerWithin(client, timers, LOOK_MS, asked)
  try {
    await within(client.connect())
    const { rows } = await within(client.query({ text: LOOK, values: [] }))
    const found = rows[0] as Found
    refuseUnfit(found, target.name)
    return {
      version: found.version,
      warnings: warningsOf(found),
      keepsSession: client.processID === found.pid && (await within(hearsItself(client, queries, self))),
    }
  } catch (error) {
    throw translate(error, target.name)
  } finally {
    await endClient(client, timers)
  }
}

const LOOK = `
  select current_setting('server_version') as version, current_setting('server_version_num')::integer as number,
         pg_is_in_recovery() as replica, current_setting('transaction_read_only') as readonly,
         current_setting('synchronous_commit') as commit, current_setting('fsync') as fsync, pg_backend_pid() as pid`

interface Found {
  readonly version: string
  readonly number: number
  readonly replica: boolean
  readonly readonly: string
  readonly commit: string
  readonly fsync: string
  /** The server process that answered. A pooler tells another one at the connect: its own, or one of chance. */
  readonly pid: number
}

function refuseUnfit(found: Found, name: string): void {
  if (found.number < OLDEST)
    throw new StoreError(
      'E_STORE_VERSION',
      `${name} is PostgreSQL ${found.version} and Millrace needs 14 or newer; upgrade the server`,
    )
  if (found.replica)
    throw new StoreError('E_STORE_READ_ONLY', `${name} is a replica and takes no writes; connect to the primary`)
  if (found.readonly === 'on')
    throw new StoreError(
      'E_STORE_READ_ONLY',
      `${name} is read-only (default_transaction_read_only is on); turn it off for this role, or connect to the primary`,
    )
}

function warningsOf(found: Found): string[] {
  const warnings: string[] = []
  if (found.commit === 'off')
    warnings.push(
      'synchronous_commit is off: a crash of the server can lose the last moments of acknowledged jobs; set it to on for this role',
    )
  if (found.fsync === 'off')
    warnings.push('fsync is off: a crash of the machine can lose or damage everything; turn it on')
  return warnings
}

/** Listens, speaks and hears: between us and the server stands no pooler that hands out sessions by the transaction. */
async function hearsItself(client: PgClient, queries: Queries, self: string): Promise<boolean> {
  const probe = `probe ${self}`
  const heard = new Promise<boolean>((resolve) => {
    client.on('notification', ({ payload }) => {
      if (payload === probe) resolve(true)
    })
    void client
      .query({ text: queries.listen, values: [] })
      .then(() => client.query({ text: queries.notify, values: [probe] }))
      // Notifications come before the answer to whatever is asked next.
      .then(() => client.query({ text: 'select 1', values: [] }))
      .then(() => resolve(false))
      .catch(() => resolve(false))
  })
  return heard
}

/** An identifier is cut at 63 bytes, and both sides must mean the same one. */
function channelOf(schema: string): string {
  return `millrace ${schema}`.replaceAll(/[^\w -]/g, '_').slice(0, 63)
}

/** A migration may have to wait for another process's, and then has much to do. */
const MIGRATE_MS = 600_000

/** Brings the tables up to date, where that is needed and allowed; gives the token of the database. */
async function prepare(writes: Connection, target: Target, autoMigrate: boolean, queries: Queries): Promise<string> {
  const version = await schemaVersion(writes, target.schema)
  refuseNewer(version, target.name)
  if (version !== SCHEMA_VERSION) await bring(writes, target, autoMigrate, queries, version)
  const [identity] = await writes.query<{ token: string }>(`select token from ${quoted(target.schema)}.identity`, [])
  return identity?.token ?? ''
}

async function bring(
  writes: Connection,
  target: Target,
  autoMigrate: boolean,
  queries: Queries,
  version: number,
): Promise<void> {
  if (!autoMigrate)
    throw new StoreError(
      'E_SCHEMA_OLDER',
      `${target.name} has schema version ${version} and this Millrace needs ${SCHEMA_VERSION}; run \`millrace migrate\`, or leave autoMigrate on`,
    )
  await writes.transaction(queries, (tx) => migrate(tx, target.schema), MIGRATE_MS)
}
