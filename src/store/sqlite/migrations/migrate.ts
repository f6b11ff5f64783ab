import { StoreError } from '../../../errors.js'
import type { SqliteDatabase } from '../connection/driver.js'
import { audit } from './0001-audit.js'
import { changeLog } from './0001-change-log.js'
import { sql as groups } from './0001-groups.js'
import { sql as jobs } from './0001-jobs.js'
import { sql as limits } from './0001-limits.js'
import { sql as links } from './0001-links.js'
import { sql as longWork } from './0001-long-work.js'
import { schedules } from './0001-schedules.js'
import { statistics } from './0001-statistics.js'

/** Numbered, forward only, never edited after release. */
export const MIGRATIONS: readonly { readonly version: number; readonly name: string; readonly sql: string }[] = [
  {
    version: 1,
    name: 'jobs',
    sql: jobs + links + groups + schedules + longWork + audit + limits + statistics + changeLog,
  },
]

export const SCHEMA_VERSION = MIGRATIONS.length

const CREATE_LEDGER = `
create table if not exists millrace_migrations (
  version integer primary key,
  name text not null,
  applied_at integer not null
) strict`

/** The version of our tables in a file, read without writing anything; 0 when there are none. */
export function schemaVersion(database: SqliteDatabase): number {
  const ledger = database
    .prepare(`select 1 from sqlite_schema where type = 'table' and name = 'millrace_migrations'`)
    .get()
  if (ledger === undefined) return 0
  const row = database.prepare(`select max(version) as version from millrace_migrations`).get() as {
    version: number | null
  }
  return row.version ?? 0
}

/** Refuses a file of a newer Millrace, before anything is written to it. */
export function refuseNewer(version: number, name: string): void {
  if (version <= SCHEMA_VERSION) return
  throw new StoreError(
    'E_SCHEMA_NEWER',
    `${name} has schema version ${version} of a newer Millrace and this one knows ${SCHEMA_VERSION}; it was left untouched. ` +
      'Upgrade this package, or choose another file',
  )
}

/**
 * Migrates the tables to this version and returns the version it found. It runs within one write transaction, so of two
 * processes one migrates.
 */
export function migrate(database: SqliteDatabase, now: number): number {
  database.exec(CREATE_LEDGER)
  const version = schemaVersion(database)
  for (const migration of MIGRATIONS) {
    if (migration.version <= version) continue
    database
      .prepare(`insert into millrace_migrations (version, name, applied_at) values (?, ?, ?)`)
      .run(migration.version, migration.name, now)
    database.exec(migration.sql)
  }
  return version
}

const NOW = `cast(unixepoch('subsec') * 1000 as integer)`

/** The SQL that a migration from a version would run, for operators who run it themselves. */
export function printMigration(version: number): string {
  const statements = MIGRATIONS.filter((migration) => migration.version > version).flatMap((migration) => [
    `insert into millrace_migrations (version, name, applied_at) values (${migration.version}, '${migration.name}', ${NOW});`,
    migration.sql.trim(),
  ])
  const ledger = version === 0 ? [`${CREATE_LEDGER.trim()};`] : []
  return ['begin immediate;', ...ledger, ...statements, 'commit;'].join('\n\n') + '\n'
}
