import { Client } from 'pg'
import { openDatabase } from '../../src/store/postgres/connection/open.js'
import type { Opened } from '../../src/store/postgres/connection/open.js'
import { targetOf } from '../../src/store/postgres/connection/target.js'
import { PostgresStore } from '../../src/store/postgres/postgres-store.js'
import { chooseLibrary } from '../../src/store/sqlite/connection/library.js'
import { Statements } from '../../src/store/sqlite/connection/driver.js'
import { openFile } from '../../src/store/sqlite/connection/open.js'
import { callerQueries } from '../../src/store/sqlite/queries/caller-transactions.js'
import { queries } from '../../src/store/sqlite/queries/queries.js'
import { SqliteStore } from '../../src/store/sqlite/sqlite-store.js'
import type { Store } from '../../src/store/store.js'
import type { World } from '../../src/world/world.js'
import { systemWorld } from '../../src/world/world.js'

/** A call in a caller's transaction: a refusal throws, or rejects. */
export type CallInTransaction = (tx: unknown) => unknown

export type Answer = { readonly value: unknown } | { readonly error: Error & { readonly code?: string } }

/** One database for many programs, one after the other. To open one takes longer than most programs. */
export interface ModelDatabase {
  /** A call in a transaction is over when it returns. */
  readonly isSync: boolean
  /** A store of its own for each mill, as for processes on one database. */
  storeFor(mill: number, world: World, now: () => number): Store
  /** A transaction of a caller: the calls, one after the other, then commit or rollback. */
  transact(calls: readonly CallInTransaction[], commits: boolean): Promise<Answer[]>
  /** The stores get the notification that a commit made jobs ready. */
  notifyReady(): void
  empty(): Promise<void>
  close(): Promise<void>
}

/** In a schema of PostgreSQL, or in memory. */
export function openModelDatabase(mills: number, fresh: FreshSchema | undefined): Promise<ModelDatabase> {
  return fresh === undefined ? onSqlite() : onPostgres(fresh, mills)
}

interface FreshSchema {
  readonly url: string
  readonly schema: string
}

/** All stores of a program share one connection in memory, as the processes of a simulation do. */
async function onSqlite(): Promise<ModelDatabase> {
  const database = new (chooseLibrary().open)(':memory:')
  const file = await openFile({ target: database, durability: 'process' }, true, systemWorld())
  const statements = new Statements(database)
  const tables = database
    .prepare(`select name from sqlite_schema where type = 'table' and name like 'millrace_%'`)
    .all() as { name: string }[]
  const emptied = tables.map(({ name }) => name).filter((name) => !name.endsWith('migrations'))
  const shared = { ...queries, dataVersion: 'select total_changes() as data_version' }
  return {
    isSync: true,
    storeFor: (_, world, now) =>
      new SqliteStore(file, world, { durability: 'process', queries: shared, now, statements }),
    transact: (calls, commits) => {
      database.exec(callerQueries.beginNow)
      const answers = calls.map((call) => answerOf(() => call(database)))
      database.exec(commits ? callerQueries.commit : callerQueries.rollback)
      return Promise.all(answers)
    },
    notifyReady: () => undefined,
    empty: () => {
      database.exec(emptied.map((name) => `delete from ${name}`).join(';'))
      return Promise.resolve()
    },
    close: () => {
      file.close()
      database.close()
      return Promise.resolve()
    },
  }
}

/** Each mill has connections of its own. Hints between processes are the fleet's task, so that a program has one history. */
async function onPostgres({ url, schema }: FreshSchema, mills: number): Promise<ModelDatabase> {
  const opened: Opened[] = []
  for (let mill = 0; mill < mills; mill += 1)
    opened.push(await openDatabase(await targetOf(url, schema), true, systemWorld()))
  const client = new Client(url)
  await client.connect()
  const nothing = (): void => undefined
  const listeners = new Map<number, (payload: string) => void>()
  const emptyAll = await deletesOf(client, schema)
  return {
    isSync: false,
    storeFor: (mill, world, now) =>
      new PostgresStore(
        {
          ...(opened[mill] as Opened),
          listen: (onPayload) => void listeners.set(mill, onPayload),
          notify: nothing,
          onReconnect: nothing,
        },
        world,
        { now },
      ),
    transact: async (calls, commits) => {
      await client.query('begin')
      const answers: Answer[] = []
      for (const call of calls) answers.push(await answerOf(() => call(client)))
      await client.query(commits ? 'commit' : 'rollback')
      return answers
    },
    notifyReady: () => {
      for (const onPayload of listeners.values()) onPayload('another ready')
    },
    empty: async () => void (await client.query(emptyAll)),
    close: async () => {
      await Promise.all(opened.map((each) => each.close()))
      await client.end()
    },
  }
}

/** Partitions are emptied with their tables. */
async function deletesOf(client: Client, schema: string): Promise<string> {
  const { rows } = await client.query<{ name: string }>(
    `select c.oid::regclass::text as name
     from pg_class c
     where c.relnamespace = $1::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
       and c.relname not in ('migrations', 'identity')`,
    [schema],
  )
  return rows.map(({ name }) => `delete from ${name}`).join(';')
}

/** The call begins at once: on SQLite it writes before it returns. */
export function answerOf(call: () => unknown): Promise<Answer> {
  const failed = (error: unknown): Answer => ({ error: error as Error })
  try {
    return Promise.resolve(call()).then((value) => ({ value }), failed)
  } catch (error) {
    return Promise.resolve(failed(error))
  }
}
