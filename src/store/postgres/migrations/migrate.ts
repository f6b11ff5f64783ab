import { StoreError } from '../../../errors.js'
import { channelOf } from '../wake/channel.js'
import type { SqlExecutor } from '../connection/sql-executor.js'
import { addJob } from './0001-add-job.js'
import { audit } from './0001-audit.js'
import { changeLog } from './0001-change-log.js'
import { groups } from './0001-groups.js'
import { jobs } from './0001-jobs.js'
import { schedules } from './0001-schedules.js'
import { limits } from './0001-limits.js'
import { links } from './0001-links.js'
import { longWork } from './0001-long-work.js'
import { statistics } from './0001-statistics.js'
import { times } from './0001-times.js'

/**
 * Numbered, forward only, never edited after release. One statement at a time: a prepared statement cannot contain
 * several.
 */
export const MIGRATIONS: readonly {
  readonly version: number
  readonly name: string
  /** `schema` is a quoted identifier. */
  readonly statements: (schema: string, channel: string) => readonly string[]
}[] = [
  {
    version: 1,
    name: 'jobs',
    statements: (schema, channel) => [
      ...jobs(schema),
      ...times(schema),
      ...links(schema),
      ...groups(schema),
      ...schedules(schema),
      ...audit(schema),
      ...changeLog(schema),
      ...longWork(schema),
      ...limits(schema),
      ...statistics(schema),
      ...addJob(schema, channel),
    ],
  },
]

export const SCHEMA_VERSION = MIGRATIONS.length

/** A quoted identifier, valid for any name. */
export function quoted(identifier: string): string {
  return `"${identifier.replaceAll('"', '""')}"`
}

/** The schema version of a database; 0 without tables of Millrace. */
export async function schemaVersion(db: SqlExecutor, schema: string): Promise<number> {
  const { hasLedger } = await inspectSchema(db, schema)
  if (!hasLedger) return 0
  const [row] = await db.query<{ version: number | null }>(
    `select max(version) as version from ${quoted(schema)}.migrations`,
    [],
  )
  return row?.version ?? 0
}

/**
 * What exists, read from the catalogs themselves. `to_regclass` reads a cache that is not refreshed while a transaction
 * waits: a process that waited for another one's migration would not see its result.
 */
export async function inspectSchema(
  db: SqlExecutor,
  schema: string,
): Promise<{ readonly hasSchema: boolean; readonly hasLedger: boolean }> {
  const [found] = await db.query<{ schema: boolean; ledger: boolean }>(
    `select exists (select from pg_namespace where nspname = $1::text) as schema,
            exists (select from pg_class c join pg_namespace n on n.oid = c.relnamespace
                    where n.nspname = $1::text and c.relname = 'migrations') as ledger`,
    [schema],
  )
  return { hasSchema: found?.schema === true, hasLedger: found?.ledger === true }
}

/** Refuses tables of a newer Millrace, before anything is written to them. */
export function refuseNewer(version: number, name: string): void {
  if (version <= SCHEMA_VERSION) return
  throw new StoreError(
    'E_SCHEMA_NEWER',
    `${name} has schema version ${version} of a newer Millrace and this one knows ${SCHEMA_VERSION}; it was left untouched. ` +
      'Upgrade this package, or choose another schema',
  )
}

/**
 * Migrates the tables to this version and returns the version that it found. Runs in one transaction; an advisory lock
 * lets one process at a time migrate.
 */
export async function migrate(tx: SqlExecutor, schema: string): Promise<number> {
  await tx.query(lockFor(schema), [])
  const version = await schemaVersion(tx, schema)
  // `create schema if not exists` needs the privilege to create one even if it exists, which a careful owner does not
  // grant.
  const { hasSchema } = await inspectSchema(tx, schema)
  for (const statement of statementsFor(schema, version, hasSchema)) await tx.query(statement, [])
  return version
}

/** The statements of a migration from a version on, for an operator who runs them by hand. */
export function printMigration(schema: string, version = 0): string {
  const statements = ['begin', lockFor(schema), ...statementsFor(schema, version, false), 'commit']
  return statements.map((statement) => `${statement.trim()};`).join('\n\n') + '\n'
}

function lockFor(schema: string): string {
  return `select pg_advisory_xact_lock(hashtextextended('millrace migrate ${quoted(schema).replaceAll(`'`, `''`)}', 7))`
}

function statementsFor(schema: string, version: number, hasSchema: boolean): string[] {
  const name = quoted(schema)
  const ledger = [
    ...(hasSchema ? [] : [`create schema if not exists ${name}`]),
    `create table if not exists ${name}.migrations (version integer primary key, name text not null, applied_at timestamptz not null default now())`,
  ]
  const statements = MIGRATIONS.filter((migration) => migration.version > version).flatMap((migration) => [
    ...migration.statements(name, channelOf(schema)),
    `insert into ${name}.migrations (version, name) values (${migration.version}, '${migration.name}')`,
  ])
  return version === 0 ? [...ledger, ...statements] : statements
}
