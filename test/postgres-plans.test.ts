import { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openDatabase } from '../src/store/postgres/connection/open.js'
import { makeQueries } from '../src/store/postgres/queries/queries.js'
import { targetOf } from '../src/store/postgres/connection/target.js'
import { createDatabase } from '../src/testing/postgres/fresh-database.js'
import { startPostgres } from '../src/testing/postgres/start-postgres.js'
import { systemWorld } from '../src/world/world.js'
import { fillTables, makeDays, pretendRows, SCHEMA } from './postgres/many-rows.js'
import { allStatements } from './postgres/statements.js'
import type { Statement } from './postgres/statements.js'

/**
 * The plan of every statement: how it finds rows in tables of a million, whatever statistics its plan was made from, and that none
 * costs so much that a server with JIT would compile it. Only ROWS of the million rows exist, and the planner's statistics
 * claim the rest; `MILLRACE_PLAN_ROWS=1000000` inserts all of them.
 */
const ROWS = Number(process.env['MILLRACE_PLAN_ROWS'] ?? 30_000)
const MILLION = 1_000_000
/** `jit_above_cost`, the default of every server. */
const JIT_COST = 100_000
/** Rows that a statement may read to return ten. A table that is read completely has several thousand. */
const LOOKED_MAX = 1_000
/** Statements that may read more. */
const MAY_LOOK = [
  // By ids or by refs: for an empty day both indexes have the same cost. The plan is dropped after one slow run (connection.ts).
  'newRefs',
  // Jobs that are ready are in the order of their lanes, so up to READY_MAX are listed and sorted.
  'listJobs([{"by":"states","states":["ready"]}]',
]
/** Relations that do not grow with jobs, and so may be read completely, stay below this. */
const SMALL = 1_000

/**
 * Not the server that test files share: their DDL overflows its queue of invalidations, and then every session replans all its
 * statements.
 */
let server: Awaited<ReturnType<typeof startPostgres>>
let database: Awaited<ReturnType<typeof createDatabase>>
/** A session with the store's settings and plans made while all tables were empty, and one with the server's defaults. */
let own: Client
let stock: Client
const costs = { empty: new Map<string, number>(), full: new Map<string, number>() }
const statements = allStatements(ROWS)

beforeAll(async () => {
  server = await startPostgres(process.env['MILLRACE_POSTGRES_URL'] ? {} : { settings: { fsync: 'off' } })
  database = await createDatabase(server.url)
  const opened = await openDatabase(await targetOf(database.url), true, systemWorld())
  await opened.close()
  own = await connect()
  stock = await connect()
  await makeDays(stock)
  // So that only this file makes the server replan.
  await eachTable((table) => `alter table ${table} set (autovacuum_enabled = off)`)
  // An empty table that was never analysed is estimated at ten pages; this one is known to be empty.
  await stock.query('vacuum analyze')
  await measure(costs.empty)
  await own.query(makeQueries(SCHEMA, 'channel').setUpWork)
  await own.query('set plan_cache_mode = force_generic_plan')
  await own.query('create temporary table control (number integer primary key)')
  await own.query('vacuum analyze control')
  await own.query('set enable_seqscan = on; prepare control as select number from control where number = 1')
  await own.query('explain execute control; set enable_seqscan = off')
  for (const [index, statement] of statements.entries()) {
    await own.query(`prepare own_${index}${typesOf(statement)} as ${statement.text}`)
    await own.query(`explain ${execute(`own_${index}`, statement)}`)
  }
  await fillTables(stock, ROWS)
}, 600_000)

afterAll(async () => {
  await own?.end()
  await stock?.end()
  await database?.drop()
  await server?.stop()
})

describe('a plan that was made while all tables were empty', () => {
  test('is kept when they have grown, or this file would prove nothing', async () => {
    await own.query('insert into control select generate_series(1, 10000)')
    expect(nodesOf((await explained(own, 'explain (format json) execute control')).Plan)).toContain('Seq Scan control')
  })

  test('reads a few rows of tables that are large by now', async () => {
    const many: string[] = []
    for (const [index, statement] of statements.entries()) {
      const { Plan } = await undone(
        own,
        `explain (analyze, timing off, format json) ${execute(`own_${index}`, statement)}`,
      )
      const looked = lookedAt(Plan)
      if (looked > LOOKED_MAX && !MAY_LOOK.some((name) => statement.name.startsWith(name)))
        many.push(`${statement.name}: ${looked} rows: ${nodesOf(Plan).join(', ')}`)
    }
    expect(many).toEqual([])
  }, 120_000)

  test('has a path by index for everything, so that no cost of a disabled scan is in it', async () => {
    const disabled: string[] = []
    for (const [index, statement] of statements.entries()) {
      const { Plan } = await explained(own, `explain (format json) ${execute(`own_${index}`, statement)}`)
      if (hasDisabled(Plan)) disabled.push(`${statement.name}: ${nodesOf(Plan).join(', ')}`)
    }
    expect(disabled).toEqual([])
  })
})

describe('without the engine’s settings', () => {
  beforeAll(async () => {
    await stock.query('vacuum analyze')
    if (ROWS < MILLION) await pretendRows(stock, MILLION)
    await measure(costs.full)
  }, 600_000)

  test.each(['empty', 'full'] as const)('no plan for tables that are %s costs enough to be compiled', (size) => {
    const dear = [...costs[size]].filter(([, cost]) => cost >= JIT_COST)
    expect(dear).toEqual([])
  })

  test('no statement reads a table of a million rows completely', async () => {
    const large = new Set(await largeTables())
    expect(large.size).toBeGreaterThan(20)
    const whole: string[] = []
    for (const statement of statements) {
      const { Plan } = await planOf(statement)
      const read = nodesOf(Plan).filter((node) => node.startsWith('Seq Scan') && large.has(node.split(' ')[2] ?? ''))
      if (read.length > 0) whole.push(`${statement.name}: ${read.join(', ')}`)
    }
    expect(whole).toEqual([])
  })
})

interface Node {
  readonly 'Node Type': string
  readonly 'Relation Name'?: string
  readonly 'Total Cost': number
  readonly 'Actual Rows'?: number
  readonly 'Actual Loops'?: number
  readonly 'Rows Removed by Filter'?: number
  readonly 'Rows Removed by Index Recheck'?: number
  readonly Disabled?: boolean
  readonly Plans?: readonly Node[]
}

async function connect(): Promise<Client> {
  const client = new Client(database.url)
  await client.connect()
  return client
}

async function eachTable(statementFor: (table: string) => string): Promise<void> {
  const { rows } = await stock.query<{ name: string }>(
    `select oid::regclass::text as name from pg_class where relnamespace = $1::regnamespace and relkind = 'r'`,
    [SCHEMA],
  )
  for (const { name } of rows) await stock.query(statementFor(name))
}

async function largeTables(): Promise<string[]> {
  const { rows } = await stock.query<{ name: string }>(
    `select relname::text as name from pg_class where relnamespace = $1::regnamespace and relkind = 'r' and reltuples > ${SMALL}`,
    [SCHEMA],
  )
  return rows.map(({ name }) => name)
}

async function measure(into: Map<string, number>): Promise<void> {
  for (const statement of statements) into.set(statement.name, (await planOf(statement)).Plan['Total Cost'])
}

/** As behind a pooler, where nothing is prepared: planned for these values. */
async function planOf(statement: Statement): Promise<{ Plan: Node }> {
  const { rows } = await stock.query<{ 'QUERY PLAN': [{ Plan: Node }] }>({
    text: `explain (format json) ${statement.text}`,
    values: [...statement.values],
  })
  return rows[0]!['QUERY PLAN'][0]
}

const typesOf = ({ values }: Statement): string =>
  values.length === 0 ? '' : `(${values.map(() => 'text').join(', ')})`

function execute(name: string, { values }: Statement): string {
  const given = values.map((value) => (value === null ? 'null' : `'${value.replaceAll(`'`, `''`)}'`))
  return `execute ${name}${given.length === 0 ? '' : `(${given.join(', ')})`}`
}

async function explained(client: Client, text: string): Promise<{ Plan: Node }> {
  const { rows } = await client.query<{ 'QUERY PLAN': [{ Plan: Node }] }>(text)
  return rows[0]!['QUERY PLAN'][0]
}

async function undone(client: Client, text: string): Promise<{ Plan: Node }> {
  await client.query('begin')
  try {
    return await explained(client, text)
  } finally {
    await client.query('rollback')
  }
}

function lookedAt(node: Node): number {
  const removed = (node['Rows Removed by Filter'] ?? 0) + (node['Rows Removed by Index Recheck'] ?? 0)
  const own = node['Node Type'].endsWith('Scan') && node['Relation Name'] !== undefined
  const rows = own ? ((node['Actual Rows'] ?? 0) + removed) * (node['Actual Loops'] ?? 1) : 0
  return rows + (node.Plans ?? []).reduce((sum, each) => sum + lookedAt(each), 0)
}

/** Up to PostgreSQL 17 by its cost, from 18 on by its name. */
function hasDisabled(node: Node): boolean {
  return node['Total Cost'] >= 1e9 || node.Disabled === true || (node.Plans ?? []).some(hasDisabled)
}

function nodesOf(node: Node): string[] {
  const own = node['Relation Name'] === undefined ? [] : [`${node['Node Type']} ${node['Relation Name']}`]
  return [...new Set([...own, ...(node.Plans ?? []).flatMap(nodesOf)])]
}
