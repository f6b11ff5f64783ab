import { StoreError } from '../../../errors.js'
import type { World } from '../../../world/world.js'
import type { Migrations } from '../../migrations.js'
import { Connection } from '../connection/connection.js'
import { makeFirstDays } from '../days/days.js'
import { dayQueries } from '../queries/days.js'
import type { SqlExecutor } from '../connection/sql-executor.js'
import { INSPECT_SERVER, refuseUnfit } from '../connection/fitness.js'
import type { Found } from '../connection/fitness.js'
import {
  inspectSchema,
  migrate,
  printMigration,
  quoted,
  refuseNewer,
  schemaVersion,
  SCHEMA_VERSION,
} from './migrate.js'
import { DATABASE_NOW } from '../queries/sql-fragments.js'
import { targetOf } from '../connection/target.js'
import type { PgPool, Target } from '../connection/target.js'

/** Migrations of a database, without opening a store on it. */
export function databaseMigrations(where: string | PgPool, schema: string): Migrations {
  return {
    latest: SCHEMA_VERSION,
    inspect: (world) => connected(where, schema, world, async (_, target, version) => ({ name: target.name, version })),
    apply: (world) =>
      connected(where, schema, world, async (connection, target, version) => ({
        name: target.name,
        from: version === SCHEMA_VERSION ? version : await bringUpToDate(connection, target),
      })),
    print: (from) => printMigration(schema, from),
  }
}

/**
 * Read committed whatever the role's default is: a process that waited for another one's migration must see its result.
 * No lock timeout: it waits as long as that one takes.
 */
const MIGRATION = {
  begin:
    'begin isolation level read committed; set local lock_timeout to default; set local statement_timeout = 0; set local jit = off',
  commit: 'commit',
  rollback: 'rollback',
}

/** Time limit: it may have to wait for the migration of another process first. */
const MIGRATE_MS = 600_000

/** Returns the version that was found. */
export async function bringUpToDate(connection: Connection, target: Target): Promise<number> {
  try {
    return await connection.transaction(
      MIGRATION,
      async (tx) => {
        const version = await migrate(tx, target.schema)
        if (version === 0) await makeFirstDays(tx, dayQueries(quoted(target.schema)), await clockOf(tx))
        return version
      },
      MIGRATE_MS,
    )
  } catch (error) {
    if (error instanceof StoreError && error.code === 'E_STORE_RIGHTS')
      throw await mayNotMake(error, connection, target)
    throw error
  }
}

async function clockOf(tx: SqlExecutor): Promise<number> {
  const [clock] = await tx.query<{ now: unknown }>(DATABASE_NOW, [])
  return Number(clock?.now)
}

/** The missing privilege is known here: to create objects. */
async function mayNotMake(error: StoreError, connection: Connection, target: Target): Promise<StoreError> {
  const [row] = await connection.query<{ role: string; database: string }>(
    `select current_user as role, current_database() as database`,
    [],
  )
  const { role = '', database = '' } = row ?? {}
  const { hasSchema } = await inspectSchema(connection, target.schema)
  const place = hasSchema ? `schema ${quoted(target.schema)}` : `database ${quoted(database)}`
  return new StoreError(
    'E_STORE_RIGHTS',
    `${target.name}: the role ${quoted(role)} may not create the tables; run \`${target.migrateCommand}\` as a role that owns the ${hasSchema ? 'schema' : 'database'}, ` +
      `or let that one \`grant create on ${place} to ${quoted(role)}\``,
    { cause: error.cause },
  )
}

async function connected<T>(
  where: string | PgPool,
  schema: string,
  world: World,
  work: (connection: Connection, target: Target, version: number) => Promise<T>,
): Promise<T> {
  const target = await targetOf(where, schema)
  const connection = new Connection({
    world,
    name: target.name,
    makeClient: target.makeClient,
    keepsSession: () => false,
  })
  try {
    const [found] = await connection.query<Found & object>(INSPECT_SERVER, [])
    refuseUnfit(found as Found, target.name)
    const version = await schemaVersion(connection, schema)
    refuseNewer(version, target.name)
    return await work(connection, target, version)
  } finally {
    await connection.close()
  }
}
