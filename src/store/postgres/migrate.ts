import { StoreError } from '../../errors.js'
import { channelOf } from './channel.js'
import type { Executor } from './executor.js'
import { addJob } from './migrations/0001-add-job.js'
import { jobs } from './migrations/0001-jobs.js'

/** Numbered, forward only, never edited after release. A statement at a time: what is prepared cannot be several. */
export const MIGRATIONS: readonly {
  readonly version: number
  readonly name: string
  /** `schema` is a quoted identifier. */
  readonly statements: (schema: string, channel: string) => readonly string[]
}[] = [{ version: 1, name: 'jobs', statements: (schema, channel) => [...jobs(schema), ...addJob(schema, channel)] }]

export const SCHEMA_VERSION = MIGRATIONS.length

/** An identifier that stands for itself, whatever is in it. */
export function quoted(identifier: string): string {
  return `"${identifier.replaceAll('"', '""')}"`
}

/** The version of our tables in a database; 0 when there are none. */
export async function schemaVersion(db: Executor, schema: string): Promise<number> {
  const [ledger] = await db.query<{ found: string | null }>('select to_regclass($1)::text as found', [
    `${quoted(schema)}.migrations`,
  ])
  if (ledger?.found == null) return 0
  const [row] = await db.query<{ version: number | null }>(
    `select max(version) as version from ${quoted(schema)}.migrations`,
    [],
  )
  return row?.version ?? 0
}

/** Refuses tables made by a newer Millrace, before anything is written to them. */
export function refuseNewer(version: number, name: string): void {
  if (version <= SCHEMA_VERSION) return
  throw new StoreError(
    'E_SCHEMA_NEWER',
    `${name} has schema version ${version} of a newer Millrace and this one knows ${SCHEMA_VERSION}; it was left untouched. ` +
      'Upgrade this package, or choose another schema',
  )
}

/** Brings the tables up to this version. Within one transaction; of several processes one does it and the others wait. */
export async function migrate(tx: Executor, schema: string): Promise<void> {
  for (const statement of statementsFor(schema, 0).lock) await tx.query(statement, [])
  const version = await schemaVersion(tx, schema)
  for (const statement of statementsFor(schema, version).statements) await tx.query(statement, [])
}

/** What a migration from a version on would run, for those who run it themselves. */
export function printMigration(schema: string, version = 0): string {
  const { lock, statements } = statementsFor(schema, version)
  return ['begin', ...lock, ...statements, 'commit'].map((statement) => `${statement.trim()};`).join('\n\n') + '\n'
}

function statementsFor(schema: string, version: number): { lock: string[]; statements: string[] } {
  const name = quoted(schema)
  const lock = [
    `select pg_advisory_xact_lock(hashtextextended('millrace migrate ${name.replaceAll(`'`, `''`)}', 7))`,
    `create schema if not exists ${name}`,
    `create table if not exists ${name}.migrations (version integer primary key, name text not null, applied_at timestamptz not null default now())`,
  ]
  const statements = MIGRATIONS.filter((migration) => migration.version > version).flatMap((migration) => [
    ...migration.statements(name, channelOf(schema)),
    `insert into ${name}.migrations (version, name) values (${migration.version}, '${migration.name}')`,
  ])
  return { lock, statements }
}
