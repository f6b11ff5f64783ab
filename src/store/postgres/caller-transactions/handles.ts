import { className, show } from '../../../codec/show.js'
import { withGivenNames } from '../connection/sql-executor.js'
import type { SqlExecutor } from '../connection/sql-executor.js'
import { describe, notOpen, otherKind, unknownHandle } from './refusals.js'
import { OWN_TYPES } from '../connection/types.js'

/**
 * Recognises the library of a `tx` by its shape, since no driver and no query builder is a dependency:
 *
 *   MikroORM      getTransactionContext, which returns a transaction of Knex (6) or Kysely (7)
 *   Kysely        executeQuery and getExecutor
 *   Prisma        $queryRawUnsafe
 *   Knex          a function with raw and client, which has the pg client of the transaction
 *   TypeORM       a query runner has isTransactionActive; a data source and an entity manager have getRepository, and the
 *                 latter, when in a transaction, its query runner
 *   postgres.js   unsafe
 *   Drizzle       a transaction, or a database, has the client of its driver at session.client: one of the others
 *   pg, and yours query
 *
 * Only a handle that itself says that it is in no transaction is refused here; the server decides about the others
 * (checkOpen).
 */
export function executorOf(tx: unknown): SqlExecutor {
  const given = Object(tx) as Shape
  if (isFunction(given.getTransactionContext)) return ofMikro(given)
  if (isFunction(given.executeQuery) && isFunction(given.getExecutor)) return ofKysely(given as Kysely)
  if (isFunction(given.$queryRawUnsafe)) return ofPrisma(given as Prisma)
  if (isFunction(given.raw) && isFunction(given.client?.acquireConnection)) return ofKnex(given as Knex)
  if (isFunction(given.query) && isTypeOrm(given)) return ofTypeOrm(given)
  if (isFunction(given.unsafe)) return ofPostgresJs(given as PostgresJs)
  if (isDriver(given.session?.client)) return executorOf(given.session?.client)
  if (isFunction(given.query)) return ofClient(given as Client)
  throw unknownHandle(describe(given.session?.client ?? tx))
}

/** The properties by which a handle is recognised. */
interface Shape {
  readonly getTransactionContext?: unknown
  readonly executeQuery?: unknown
  readonly getExecutor?: unknown
  readonly $queryRawUnsafe?: unknown
  readonly raw?: unknown
  readonly client?: { readonly acquireConnection?: unknown }
  readonly query?: unknown
  readonly queryRunner?: unknown
  readonly isTransactionActive?: unknown
  readonly getRepository?: unknown
  readonly unsafe?: unknown
  readonly session?: { readonly client?: unknown }
}

const isFunction = (value: unknown): boolean => typeof value === 'function'

function isDriver(value: unknown): boolean {
  const given = Object(value) as Shape
  return isFunction(given.query) || isFunction(given.unsafe)
}

/** The part of a pg client that we call, and of a `{ query }` of the caller's own. A pool has it too. */
interface Client {
  readonly totalCount?: unknown
  readonly idleCount?: unknown
  /** Only `pg`'s own client has it. */
  readonly getTypeParser?: unknown
  query(text: string | object, values?: (string | null)[]): Promise<unknown>
}

function ofClient(client: Client): SqlExecutor {
  if (typeof client.totalCount === 'number' && typeof client.idleCount === 'number')
    throw notOpen(
      'tx is a Pool, of which each statement takes another connection, or a handle on one,',
      'pass the client of the transaction: const client = await pool.connect(), then begin on it',
    )
  // A client of pg accepts type parsers per statement: the app may have changed the global ones.
  const query = isFunction(client.getTypeParser)
    ? (text: string, values: (string | null)[]) => client.query({ text, values, types: OWN_TYPES })
    : (text: string, values: (string | null)[]) => client.query(text, values)
  return {
    query: async <R extends object>(text: string, values: readonly (string | null)[]) =>
      rowsOf<R>(await query(text, [...values])),
  }
}

function rowsOf<R extends object>(answer: unknown): R[] {
  const rows: unknown = Array.isArray(answer) ? answer : (Object(answer) as { rows?: unknown }).rows
  if (Array.isArray(rows)) return withGivenNames<R>(rows as object[])
  throw unknownHandle(`one whose query() gave ${show(answer)}, where rows or { rows } were expected`)
}

interface PostgresJs {
  readonly begin?: unknown
  /** Only in a transaction. */
  readonly savepoint?: unknown
  unsafe(text: string, values: (string | null)[]): Promise<readonly object[]>
}

function ofPostgresJs(sql: PostgresJs): SqlExecutor {
  if (isFunction(sql.begin) && !isFunction(sql.savepoint))
    throw notOpen(
      'tx is the root sql of postgres.js, or a handle on it,',
      'pass the sql that sql.begin(async (sql) => …) gives you',
    )
  return {
    query: async <R extends object>(text: string, values: readonly (string | null)[]) =>
      withGivenNames<R>([...(await sql.unsafe(text, [...values]))]),
  }
}

interface Kysely {
  readonly isTransaction: boolean
  getExecutor(): { readonly adapter?: object }
  withoutPlugins(): Kysely
  executeQuery(query: object): Promise<{ readonly rows: readonly object[] }>
}

function ofKysely(trx: Kysely): SqlExecutor {
  const adapter = className(trx.getExecutor().adapter ?? {})
  if (isOther(adapter)) throw otherKind('a Kysely handle', adapter)
  if (!trx.isTransaction)
    throw notOpen('tx is a Kysely database', 'pass the trx of db.transaction().execute(async (trx) => …)')
  const plain = trx.withoutPlugins()
  return {
    query: async <R extends object>(text: string, values: readonly (string | null)[]) =>
      withGivenNames<R>([...(await plain.executeQuery(plainQuery(text, values))).rows]),
  }
}

/** What Kysely's own CompiledQuery.raw returns. */
function plainQuery(sql: string, parameters: readonly (string | null)[]): object {
  return {
    sql,
    parameters,
    query: { kind: 'RawNode', sqlFragments: [sql], parameters: [] },
    queryId: { queryId: 'millrace' },
  }
}

interface Knex {
  readonly isTransaction?: boolean
  isCompleted?(): boolean
  readonly client: { readonly dialect?: unknown; acquireConnection(): unknown }
}

/**
 * Not by `raw`: that interprets `?`, `:name` and `::name::` in a text, also inside of quotes, and passes the rows to
 * the user's own mapper. The connection of a transaction is the pg client, and takes the text as it is.
 */
function ofKnex(trx: Knex): SqlExecutor {
  if (isOther(trx.client.dialect)) throw otherKind('a Knex handle', String(trx.client.dialect))
  if (trx.isTransaction !== true)
    throw notOpen('tx is a Knex instance', 'pass the trx of knex.transaction(async (trx) => …)')
  return {
    query: async <R extends object>(text: string, values: readonly (string | null)[]) => {
      if (trx.isCompleted?.() === true) throw notOpen('tx is a Knex transaction')
      const client = (await trx.client.acquireConnection()) as Client
      return ofClient(client).query<R>(text, values)
    },
  }
}

interface QueryRunner {
  readonly isTransactionActive: boolean
  readonly isReleased?: boolean
  readonly connection?: TypeOrmSource
  readonly dataSource?: TypeOrmSource
  query(text: string, values: (string | null)[], structured: true): Promise<{ readonly records?: readonly object[] }>
}

interface TypeOrmSource {
  readonly options?: { readonly type?: unknown }
}

function isTypeOrm(given: Shape): boolean {
  return typeof given.isTransactionActive === 'boolean' || isFunction(given.getRepository)
}

function ofTypeOrm(given: Shape): SqlExecutor {
  const runner = (typeof given.isTransactionActive === 'boolean' ? given : given.queryRunner) as QueryRunner | undefined
  const source = (runner ?? given) as Partial<QueryRunner> & TypeOrmSource
  const type = (source.dataSource ?? source.connection ?? source).options?.type
  if (isOther(type)) throw otherKind('a TypeORM handle', String(type))
  const check = (): QueryRunner => {
    if (runner?.isTransactionActive === true && runner.isReleased !== true) return runner
    throw notOpen(
      'tx is a TypeORM data source, entity manager or query runner',
      'pass the manager of dataSource.transaction(async (manager) => …)',
    )
  }
  check()
  return {
    query: async <R extends object>(text: string, values: readonly (string | null)[]) =>
      // With `true` it returns the rows, otherwise for some statements the number of changed rows.
      withGivenNames<R>([...((await check().query(text, [...values], true)).records ?? [])]),
  }
}

function ofMikro(given: Shape): SqlExecutor {
  const manager = given as { getTransactionContext(): unknown }
  const context = manager.getTransactionContext()
  if (context !== undefined && context !== null) return executorOf(context)
  throw notOpen('tx is a MikroORM entity manager', 'pass the em of em.transactional(async (em) => …)')
}

interface Prisma {
  readonly _activeProvider?: unknown
  /** Only on a client that is in no transaction. */
  readonly $connect?: unknown
  $queryRawUnsafe(text: string, ...values: (string | null)[]): Promise<readonly object[]>
}

function ofPrisma(prisma: Prisma): SqlExecutor {
  if (isOther(prisma._activeProvider)) throw otherKind('a Prisma client', String(prisma._activeProvider))
  if (isFunction(prisma.$connect))
    throw notOpen('tx is a Prisma client', 'pass the tx of prisma.$transaction(async (tx) => …)')
  return {
    query: async <R extends object>(text: string, values: readonly (string | null)[]) =>
      withGivenNames<R>([...(await prisma.$queryRawUnsafe(text, ...values))]),
  }
}

/** Whether a library names a database other than PostgreSQL. */
function isOther(kind: unknown): boolean {
  return typeof kind === 'string' && /sqlite|mysql|maria|mssql|sqlserver|oracle|mongo|sqljs/i.test(kind)
}
