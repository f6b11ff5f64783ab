import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { StoreError } from '../../../errors.js'
import { freshDatabase } from '../../../../test/postgres/shared-postgres.js'
import type { SqlExecutor } from '../connection/sql-executor.js'
import { migrate, MIGRATIONS, printMigration, refuseNewer, schemaVersion, SCHEMA_VERSION } from './migrate.js'

const SCHEMA_FILE = fileURLToPath(new URL('../schema.sql', import.meta.url))
const HOSTILE = `"; drop table users; --'`

let database: Awaited<ReturnType<typeof freshDatabase>>
let client: Client
let db: SqlExecutor

beforeAll(async () => {
  database = await freshDatabase()
  client = new Client(database.url)
  await client.connect()
  db = { query: async (text, values) => (await client.query(text, [...values])).rows as never }
})
afterAll(async () => {
  await client.end()
  await database.drop()
})

const names = async (): Promise<string[]> =>
  (await client.query<{ name: string }>(`select nspname as name from pg_namespace where nspname !~ '^pg_'`)).rows.map(
    ({ name }) => name,
  )

describe('migrations', () => {
  test('are numbered from 1 without a gap, and named', () => {
    expect(MIGRATIONS.map((m) => m.version)).toEqual(Array.from({ length: SCHEMA_VERSION }, (_, i) => i + 1))
    for (const { name } of MIGRATIONS) expect(name).toMatch(/^[a-z-]+$/)
  })

  test('bring an empty database to this version, record each migration, and do nothing the second time', async () => {
    expect(await schemaVersion(db, 'twice')).toBe(0)
    expect(await migrate(db, 'twice')).toBe(0)
    const before = await dumpSchema(client, 'twice')
    expect(await migrate(db, 'twice')).toBe(SCHEMA_VERSION)
    expect(await dumpSchema(client, 'twice')).toBe(before)
    expect(await schemaVersion(db, 'twice')).toBe(SCHEMA_VERSION)
    const { rows } = await client.query('select version, name from twice.migrations order by version')
    expect(rows).toEqual(MIGRATIONS.map(({ version, name }) => ({ version, name })))
  })

  test('that waited for those of another process have nothing left to do', async () => {
    const other = new Client(database.url)
    await other.connect()
    const waiter: SqlExecutor = { query: async (text, values) => (await other.query(text, [...values])).rows as never }
    expect(await schemaVersion(waiter, 'waited')).toBe(0)
    for (const each of [client, other]) await each.query('begin')
    await migrate(db, 'waited')
    const waited = migrate(waiter, 'waited')
    await client.query('commit')
    expect(await waited).toBe(SCHEMA_VERSION)
    await other.query('commit')
    await other.end()
  })

  test('that are printed and run by hand create the same schema', async () => {
    await client.query(printMigration('printed'))
    expect(await schemaVersion(db, 'printed')).toBe(SCHEMA_VERSION)
    await migrate(db, 'made')
    const [printed, made] = [await dumpSchema(client, 'printed'), await dumpSchema(client, 'made')]
    expect(printed.replaceAll('printed', 'made')).toBe(made)
    expect(made).toContain('create table made.jobs')
  })

  test('from the current version on are an empty transaction', () => {
    expect(printMigration('x', SCHEMA_VERSION)).not.toMatch(/create|insert/)
  })

  test('stay in their schema, whatever its name', async () => {
    await client.query('create table users (id integer)')
    const before = await names()
    await client.query('begin')
    await migrate(db, HOSTILE)
    await client.query('commit')
    expect((await names()).filter((name) => !before.includes(name))).toEqual([HOSTILE])
    expect(await schemaVersion(db, HOSTILE)).toBe(SCHEMA_VERSION)
    const { rows } = await client.query(`select relname from pg_class where relnamespace = 'public'::regnamespace`)
    expect(rows).toEqual([{ relname: 'users' }])
  })
})

test('a version of a newer Millrace is refused, and this or an older one is not', () => {
  expect(() => refuseNewer(SCHEMA_VERSION, 'x')).not.toThrow()
  expect(() => refuseNewer(0, 'x')).not.toThrow()
  expect(() => refuseNewer(SCHEMA_VERSION + 1, 'x')).toThrow(StoreError)
  expect(() => refuseNewer(SCHEMA_VERSION + 1, 'x')).toThrow(/x has schema version .* left untouched/)
})

describe('the dump', () => {
  test('lists partitioned tables, functions, triggers and their changes, and leaves out partitions of a day', async () => {
    await client.query(`
      create schema kinds;
      create table kinds.days (day bigint not null, note text default 'x', primary key (day)) partition by range (day);
      create index days_note on kinds.days (note);
      create table kinds.days_1 partition of kinds.days for values from (1) to (2);
      create table kinds.days_rest partition of kinds.days default;
      create function kinds.twice(n integer) returns integer language sql as 'select n * 2; select n';
      create function kinds.note() returns trigger language plpgsql as $$ begin return new; end $$;
      create trigger noted after insert on kinds.days for each row execute function kinds.note();`)
    const dumped = await dumpSchema(client, 'kinds')
    for (const part of [
      'partition by RANGE (day)',
      'kinds.days_rest partition of kinds.days default',
      'kinds.twice(n integer)',
      'TRIGGER noted',
      'days_note',
      `note text default 'x'::text`,
    ])
      expect(dumped).toContain(part)
    expect(dumped).not.toContain('days_1')
    await client.query(`alter table kinds.days alter note set not null`)
    expect(await dumpSchema(client, 'kinds')).not.toBe(dumped)
  })

  test('refuses a kind of object that it does not know', async () => {
    await client.query('create schema odd; create materialized view odd.seen as select 1 as one')
    await expect(dumpSchema(client, 'odd')).rejects.toThrow(/does not know.*seen/)
  })
})

// MILLRACE_WRITE_SCHEMA=1 rewrites the dump after a migration was added.
test('schema.sql is the exact dump of a migrated database', async () => {
  await migrate(db, 'millrace')
  const dumped = await dumpSchema(client, 'millrace')
  if (process.env['MILLRACE_WRITE_SCHEMA'] === '1') writeFileSync(SCHEMA_FILE, dumped)
  expect(readFileSync(SCHEMA_FILE, 'utf8')).toBe(dumped)
})

/**
 * A schema as the server's catalogs describe it, in a fixed order and without anything that varies, so that two dumps
 * can be compared. `pg_dump` is not used: the binaries for the tests do not include it.
 */
async function dumpSchema(client: Client, schema: string): Promise<string> {
  const { rows: unknown } = await client.query<{ relname: string; relkind: string }>(UNKNOWN, [schema])
  if (unknown.length > 0)
    throw new Error(`what is dumped has kinds that the dump does not know: ${JSON.stringify(unknown)}`)
  const parts: string[] = []
  for (const statement of [SEQUENCES, TABLES, DEFAULT_PARTITIONS, CONSTRAINTS, INDEXES, VIEWS, FUNCTIONS, TRIGGERS]) {
    const { rows } = await client.query<{ sql: string }>(statement, [schema])
    parts.push(...rows.map(({ sql }) => `${sql.trim().replaceAll(/[ \t]+$/gm, '')};\n`))
  }
  return parts.join('\n')
}

/** Names are sorted as bytes, whatever the database's locale. */
const ours = `from pg_class c join pg_namespace n on n.oid = c.relnamespace where n.nspname = $1`

const UNKNOWN = `
  select relname, c.relkind ${ours} and c.relkind not in ('r', 'p', 'i', 'I', 'S', 'v', 't')`

/** Sequences of identity columns are dumped with their column. */
const SEQUENCES = `
  select format('create sequence %I.%I as %s', $1::text, c.relname, format_type(s.seqtypid, null)) as sql
  from pg_sequence s join pg_class c on c.oid = s.seqrelid join pg_namespace n on n.oid = c.relnamespace
  where n.nspname = $1 and not exists (select from pg_depend d where d.objid = c.oid and d.deptype = 'i')
  order by c.relname collate "C"`

/** Partitions are left out: they depend on the day. */
const TABLES = `
  select format(E'create %stable %I.%I (\\n%s\\n)%s%s',
           case c.relpersistence when 'u' then 'unlogged ' else '' end, $1::text, c.relname,
           (select string_agg(format('  %I %s%s%s%s', a.attname, format_type(a.atttypid, a.atttypmod),
                     case a.attidentity when 'a' then ' generated always as identity'
                       when 'd' then ' generated by default as identity' else '' end,
                     case when d.oid is null then '' when a.attgenerated = 's'
                       then format(' generated always as (%s) stored', pg_get_expr(d.adbin, d.adrelid))
                       else ' default ' || pg_get_expr(d.adbin, d.adrelid) end,
                     case when a.attnotnull then ' not null' else '' end), E',\\n' order by a.attnum)
            from pg_attribute a left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
            where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped),
           case when c.relkind = 'p' then ' partition by ' || pg_get_partkeydef(c.oid) else '' end,
           coalesce(' with (' || array_to_string(c.reloptions, ', ') || ')', '')) as sql
  ${ours} and c.relkind in ('r', 'p') and not c.relispartition
  order by c.relname collate "C"`

const DEFAULT_PARTITIONS = `
  select format('create table %I.%I partition of %s default', $1::text, c.relname, i.inhparent::regclass) as sql
  from pg_class c join pg_namespace n on n.oid = c.relnamespace join pg_inherits i on i.inhrelid = c.oid
  where n.nspname = $1 and c.relkind in ('r', 'p') and pg_get_expr(c.relpartbound, c.oid) = 'DEFAULT'
  order by c.relname collate "C"`

/** Since version 18 'not null' is a constraint too; it is dumped with its column. */
const CONSTRAINTS = `
  select format('alter table %I.%I add constraint %I %s', $1::text, c.relname, o.conname, pg_get_constraintdef(o.oid)) as sql
  from pg_constraint o join pg_class c on c.oid = o.conrelid join pg_namespace n on n.oid = c.relnamespace
  where n.nspname = $1 and not c.relispartition and o.contype not in ('n', 't')
  order by c.relname collate "C", o.conname collate "C"`

/** An index of a constraint is dumped as the constraint. */
const INDEXES = `
  select pg_get_indexdef(x.indexrelid) as sql
  from pg_index x join pg_class c on c.oid = x.indexrelid join pg_namespace n on n.oid = c.relnamespace
  where n.nspname = $1 and not c.relispartition
    and not exists (select from pg_class t where t.oid = x.indrelid and t.relispartition)
    and not exists (select from pg_constraint o where o.conindid = x.indexrelid)
  order by c.relname collate "C"`

const VIEWS = `
  select format(E'create view %I.%I as\\n%s', $1::text, c.relname, rtrim(pg_get_viewdef(c.oid), ';')) as sql
  ${ours} and c.relkind = 'v' order by c.relname collate "C"`

const FUNCTIONS = `
  select pg_get_functiondef(p.oid) as sql
  from pg_proc p join pg_namespace n on n.oid = p.pronamespace
  where n.nspname = $1 and p.prokind in ('f', 'p')
  order by p.proname collate "C", pg_get_function_identity_arguments(p.oid) collate "C"`

const TRIGGERS = `
  select pg_get_triggerdef(t.oid) as sql
  from pg_trigger t join pg_class c on c.oid = t.tgrelid join pg_namespace n on n.oid = c.relnamespace
  where n.nspname = $1 and not t.tgisinternal and not c.relispartition
  order by c.relname collate "C", t.tgname collate "C"`
