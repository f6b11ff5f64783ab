import { EntitySchema, MikroORM } from '@mikro-orm/postgresql'
import { sql as drizzleSql } from 'drizzle-orm'
import { drizzle as drizzlePg } from 'drizzle-orm/node-postgres'
import { drizzle as drizzlePostgresJs } from 'drizzle-orm/postgres-js'
import createKnex from 'knex'
import type { Knex } from 'knex'
import { CamelCasePlugin, CompiledQuery, Kysely, PostgresDialect } from 'kysely'
import type { ControlledTransaction } from 'kysely'
import pg from 'pg'
import postgres from 'postgres'
import { DataSource } from 'typeorm'
import type { EntityManager, QueryRunner } from 'typeorm'

/** A library as its users use it: how they begin a transaction, and how they write in it themselves. */
export interface Opened {
  /** Handles without a transaction that a caller may pass by mistake. */
  readonly roots: Readonly<Record<string, unknown>>
  transaction<T>(work: (tx: unknown) => Promise<T>): Promise<T>
  /** A nested transaction; undefined where the library has none. */
  readonly nested?: <T>(tx: unknown, work: (tx: unknown) => Promise<T>) => Promise<T>
  /** The first column of the first row of a statement, by the library's own API. */
  own(tx: unknown, text: string): Promise<unknown>
  close(): Promise<void>
}

export const libraries: Readonly<Record<string, (url: string) => Promise<Opened> | Opened>> = {
  'a pg client of a pool': openPg,
  'a pg client of its own': openPgClient,
  'a { query } of the user’s own': openPlain,
  'postgres.js': (url) => openPostgresJs(postgres(url, { onnotice: () => undefined })),
  'postgres.js that renames columns': (url) => openPostgresJs(postgres(url, { transform: postgres.camel })),
  'a reserved connection of postgres.js': openReserved,
  'Drizzle on pg': openDrizzlePg,
  'Drizzle on postgres.js': openDrizzlePostgresJs,
  Kysely: (url) => openKysely(url, false),
  'Kysely with a plugin that renames columns': (url) => openKysely(url, true),
  'a Kysely controlled transaction': openKyselyControlled,
  Knex: (url) => openKnex(url),
  'Knex with a mapper of rows': (url) => openKnex(url, () => 'not for us'),
  'a TypeORM entity manager': (url) => openTypeOrm(url, (manager) => manager),
  'a TypeORM query runner': (url) => openTypeOrm(url, (manager) => manager.queryRunner),
  MikroORM: openMikro,
}

const first = (rows: unknown): unknown => Object.values((rows as object[])[0] ?? {})[0]

function openPg(url: string): Opened {
  const pool = new pg.Pool({ connectionString: url })
  return {
    roots: { pool },
    transaction: async (work) => {
      const client = await pool.connect()
      try {
        return await inBlock(client, work)
      } finally {
        client.release()
      }
    },
    nested: (tx, work) => inSavepoint(tx as pg.PoolClient, () => work(tx)),
    own: async (tx, text) => first((await (tx as pg.PoolClient).query(text)).rows),
    close: () => pool.end(),
  }
}

async function openPgClient(url: string): Promise<Opened> {
  const client = new pg.Client(url)
  await client.connect()
  return {
    roots: {},
    transaction: (work) => inBlock(client, work),
    own: async (tx, text) => first((await (tx as pg.Client).query(text)).rows),
    close: () => client.end(),
  }
}

async function openPlain(url: string): Promise<Opened> {
  const opened = await openPgClient(url)
  return {
    ...opened,
    transaction: (work) =>
      opened.transaction((tx) =>
        work({ query: async (text: string, values: string[]) => (await (tx as pg.Client).query(text, values)).rows }),
      ),
    own: async (tx, text) => first(await (tx as { query(text: string, values: []): Promise<unknown> }).query(text, [])),
  }
}

interface Speaker {
  query(text: string): Promise<unknown>
}

async function inBlock<T>(client: Speaker, work: (tx: unknown) => Promise<T>): Promise<T> {
  await client.query('begin')
  try {
    const value = await work(client)
    await client.query('commit')
    return value
  } catch (error) {
    await client.query('rollback')
    throw error
  }
}

async function inSavepoint<T>(client: Speaker, work: () => Promise<T>): Promise<T> {
  await client.query('savepoint inner_one')
  try {
    return await work()
  } catch (error) {
    await client.query('rollback to inner_one')
    throw error
  }
}

function openPostgresJs(sql: postgres.Sql): Opened {
  return {
    roots: { sql },
    transaction: (work) => sql.begin(work) as never,
    nested: (tx, work) => (tx as postgres.TransactionSql).savepoint(work) as never,
    own: async (tx, text) => first(await (tx as postgres.TransactionSql).unsafe(text)),
    close: () => sql.end(),
  }
}

function openReserved(url: string): Opened {
  const sql = postgres(url)
  return {
    ...openPostgresJs(sql),
    transaction: async (work) => {
      const reserved = await sql.reserve()
      const query = async (text: string): Promise<unknown> => reserved.unsafe(text)
      try {
        return await inBlock({ query }, () => work(reserved))
      } finally {
        reserved.release()
      }
    },
    nested: (tx, work) =>
      inSavepoint({ query: async (text) => (tx as postgres.ReservedSql).unsafe(text) }, () => work(tx)),
  }
}

interface DrizzleTransaction {
  transaction<T>(work: (tx: unknown) => Promise<T>): Promise<T>
  execute(query: unknown): Promise<unknown>
}

function openDrizzlePg(url: string): Opened {
  const pool = new pg.Pool({ connectionString: url })
  const db = drizzlePg(pool)
  return {
    roots: { db },
    transaction: (work) => db.transaction(work),
    nested: (tx, work) => (tx as DrizzleTransaction).transaction(work),
    own: async (tx, text) =>
      first(((await (tx as DrizzleTransaction).execute(drizzleSql.raw(text))) as { rows: unknown }).rows),
    close: () => pool.end(),
  }
}

function openDrizzlePostgresJs(url: string): Opened {
  const sql = postgres(url)
  const db = drizzlePostgresJs(sql)
  return {
    roots: { db },
    transaction: (work) => db.transaction(work),
    nested: (tx, work) => (tx as DrizzleTransaction).transaction(work),
    own: async (tx, text) => first(await (tx as DrizzleTransaction).execute(drizzleSql.raw(text))),
    close: () => sql.end(),
  }
}

function kyselyOn(url: string, renames: boolean): Kysely<object> {
  const dialect = new PostgresDialect({ pool: new pg.Pool({ connectionString: url }) })
  return new Kysely<object>({ dialect, plugins: renames ? [new CamelCasePlugin()] : [] })
}

function openKysely(url: string, renames: boolean): Opened {
  const db = kyselyOn(url, renames)
  return {
    roots: { db },
    transaction: (work) => db.transaction().execute(work),
    own: async (tx, text) => first((await (tx as Kysely<object>).executeQuery(CompiledQuery.raw(text))).rows),
    close: () => db.destroy(),
  }
}

function openKyselyControlled(url: string): Opened {
  const db = kyselyOn(url, false)
  return {
    roots: {},
    transaction: async (work) => {
      const trx = await db.startTransaction().execute()
      try {
        const value = await work(trx)
        await trx.commit().execute()
        return value
      } catch (error) {
        await trx.rollback().execute()
        throw error
      }
    },
    nested: async (tx, work) => {
      const deeper = await (tx as ControlledTransaction<object>).savepoint('inner_one').execute()
      try {
        return await work(deeper)
      } catch (error) {
        await deeper.rollbackToSavepoint('inner_one').execute()
        throw error
      }
    },
    own: async (tx, text) => first((await (tx as Kysely<object>).executeQuery(CompiledQuery.raw(text))).rows),
    close: () => db.destroy(),
  }
}

function openKnex(url: string, postProcessResponse?: (response: unknown) => unknown): Opened {
  const knex = createKnex({ client: 'pg', connection: url, ...(postProcessResponse && { postProcessResponse }) })
  type Trx = Knex.Transaction
  return {
    roots: { knex },
    transaction: (work) => knex.transaction(work as never) as never,
    nested: (tx, work) => (tx as Trx).transaction(work as never) as never,
    own: async (tx, text) => {
      const told = new Promise<unknown>((resolve) => {
        // The rows from the server, before any mapper.
        ;(tx as Trx).on('query-response', (_: unknown, query: { response: { rows: unknown } }) =>
          resolve(query.response.rows),
        )
      })
      await (tx as Trx).raw(text)
      return first(await told)
    },
    close: () => knex.destroy(),
  }
}

async function openTypeOrm(url: string, handle: (manager: EntityManager) => unknown): Promise<Opened> {
  const source = await new DataSource({ type: 'postgres', url }).initialize()
  const idle = source.createQueryRunner()
  const run = (tx: unknown): QueryRunner =>
    'queryRunner' in (tx as object) ? (tx as { queryRunner: QueryRunner }).queryRunner : (tx as QueryRunner)
  return {
    roots: { 'the data source': source, 'its manager': source.manager, 'a query runner': idle },
    transaction: (work) => source.transaction((manager) => work(handle(manager))),
    nested: (tx, work) => run(tx).manager.transaction((manager) => work(manager)),
    own: async (tx, text) => first(await run(tx).query(text)),
    close: async () => {
      await idle.release()
      await source.destroy()
    },
  }
}

async function openMikro(url: string): Promise<Opened> {
  const thing = new EntitySchema({ name: 'Thing', properties: { id: { type: 'number', primary: true } } })
  const orm = await MikroORM.init({ clientUrl: url, entities: [thing] })
  type Manager = typeof orm.em
  return {
    roots: { em: orm.em.fork() },
    transaction: (work) => orm.em.fork().transactional((em) => work(em)),
    nested: (tx, work) => (tx as Manager).transactional((em) => work(em)),
    own: async (tx, text) => first(await (tx as Manager).execute(text)),
    close: () => orm.close(),
  }
}
