import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { checkOpen, readHome } from '../src/store/postgres/caller-transactions/check-open.js'
import type { Home } from '../src/store/postgres/caller-transactions/check-open.js'
import { numberOf } from '../src/store/rows/columns.js'
import type { SqlExecutor } from '../src/store/postgres/connection/sql-executor.js'
import { executorOf } from '../src/store/postgres/caller-transactions/handles.js'
import { freshDatabase } from './postgres/shared-postgres.js'
import { libraries } from './postgres/libraries.js'
import type { Opened } from './postgres/libraries.js'
import { openPrisma, prismaFolder } from './postgres/prisma.js'

/** E4 and E5 on PostgreSQL: transactions of every library, with the real library and a real server. */

/** A schema whose name has every character sequence that some library interprets. */
const SCHEMA = `"a ? $1 :p1 ::x:: '""\\ schema"`
let home: Home

const databases: Awaited<ReturnType<typeof freshDatabase>>[] = []
let url: string
let otherUrl: string
let outside: pg.Client

beforeAll(async () => {
  databases.push(await freshDatabase(), await freshDatabase())
  ;[url, otherUrl] = databases.map((database) => database.url) as [string, string]
  outside = new pg.Client(url)
  await outside.connect()
  await outside.query(`create schema ${SCHEMA}`)
  await outside.query(`create table ${SCHEMA}.identity (token text not null)`)
  await outside.query(`insert into ${SCHEMA}.identity values ('this one')`)
  home = await readHome(executorOf(outside), SCHEMA)
  await outside.query(`create table ${SCHEMA}.notes (id text primary key, note text, "camelCase" bigint)`)
})

afterAll(async () => {
  await outside?.end()
  for (const database of databases) await database.drop()
})

/** The store's own check of a `tx`. */
async function enter(tx: unknown): Promise<SqlExecutor> {
  const executor = executorOf(tx)
  await checkOpen(executor, home)
  return executor
}

const INSERT = `insert into ${SCHEMA}.notes (id, note) values ($1::text, $2::text)`

async function notesOf(id: string): Promise<unknown[]> {
  return (await outside.query(`select note from ${SCHEMA}.notes where id = $1`, [id])).rows.map((row) => row.note)
}

const all: typeof libraries =
  prismaFolder === undefined ? libraries : { ...libraries, Prisma: (at) => openPrisma(prismaFolder ?? '', at) }

describe.skipIf(prismaFolder !== undefined)('Prisma', () => {
  test.skip('is tested where MILLRACE_PRISMA names a folder that has it, created by test/postgres/prisma.sh')
})

describe.each(Object.entries(all))('in a transaction of %s', (name, open) => {
  let opened: Opened
  beforeAll(async () => {
    opened = await open(url)
  })
  afterAll(async () => opened?.close())

  test('a statement runs in the caller’s own transaction', async () => {
    await opened.transaction(async (tx) => {
      const executor = await enter(tx)
      const [row] = await executor.query<{ xid: string }>('select pg_current_xact_id()::text as xid', [])
      expect(row?.xid).toBe(await opened.own(tx, 'select pg_current_xact_id()::text as xid'))
    })
  })

  test('a write is visible after its commit, and not before', async () => {
    const id = `commit ${name}`
    await opened.transaction(async (tx) => {
      await (await enter(tx)).query(INSERT, [id, 'kept'])
      expect(await notesOf(id)).toEqual([])
    })
    expect(await notesOf(id)).toEqual(['kept'])
  })

  test('a write is undone by its rollback', async () => {
    const id = `rollback ${name}`
    const thrown = new Error('on purpose')
    const work = opened.transaction(async (tx) => {
      const executor = await enter(tx)
      await executor.query(INSERT, [id, 'lost'])
      expect(await executor.query(`select note from ${SCHEMA}.notes where id = $1::text`, [id])).toHaveLength(1)
      throw thrown
    })
    await expect(work).rejects.toBe(thrown)
    expect(await notesOf(id)).toEqual([])
  })

  test('a nested transaction works too, and is undone alone', async ({ skip }) => {
    const { nested } = opened
    if (nested === undefined) return skip('this library has none')
    const thrown = new Error('on purpose')
    await opened.transaction(async (tx) => {
      await (await enter(tx)).query(INSERT, [`outer ${name}`, 'kept'])
      const inner = nested(tx, async (deeper) => {
        await (await enter(deeper)).query(INSERT, [`inner ${name}`, 'lost'])
        throw thrown
      })
      await expect(inner).rejects.toBe(thrown)
      await enter(tx)
    })
    expect(await notesOf(`outer ${name}`)).toEqual(['kept'])
    expect(await notesOf(`inner ${name}`)).toEqual([])
  })

  test('values are read back unchanged, also twice, and null', async () => {
    const odd = `?  ?? \\? :name ::name:: :p1 $1 $2 ' " \\ 日本 🦉 \u0001 %s {}`
    await opened.transaction(async (tx) => {
      const [row] = await (
        await enter(tx)
      ).query(
        `select $1::text as one, $1::text || $1::text as twice, $2::text as none, $3::text::json->>'a' as deep,
                '? :name $1 ::x::' as "fixed", $2::text is null as empty`,
        [odd, null, JSON.stringify({ a: odd })],
      )
      expect(row).toEqual({ one: odd, twice: odd + odd, none: null, deep: odd, fixed: '? :name $1 ::x::', empty: true })
    })
  })

  test('columns keep their names, and bigints are numbers', async () => {
    await opened.transaction(async (tx) => {
      const [row] = await (
        await enter(tx)
      ).query<Record<string, unknown>>(
        `insert into ${SCHEMA}.notes (id, "camelCase") values ($1::text, $2::text::bigint)
         returning "camelCase", "camelCase" as started_at, 7 as small`,
        [`columns ${name}`, '1794700800000'],
      )
      expect(numberOf(row?.['camelCase'])).toBe(1_794_700_800_000)
      expect(numberOf(row?.['started_at'])).toBe(1_794_700_800_000)
      expect(numberOf(row?.['small'])).toBe(7)
    })
  })

  test('update and delete statements return their rows', async () => {
    await opened.transaction(async (tx) => {
      const executor = await enter(tx)
      await executor.query(INSERT, [`change ${name}`, 'a'])
      const one = [`change ${name}`]
      const changed = `update ${SCHEMA}.notes set note = 'b' where id = $1::text returning note`
      expect(await executor.query(changed, one)).toEqual([{ note: 'b' }])
      const gone = `delete from ${SCHEMA}.notes where id = $1::text`
      expect(await executor.query(`${gone} returning note`, one)).toEqual([{ note: 'b' }])
      expect(await executor.query(gone, one)).toEqual([])
    })
  })

  test('concurrent calls do not disturb each other', async () => {
    await opened.transaction(async (tx) => {
      await Promise.all([1, 2, 3].map(async (n) => (await enter(tx)).query(INSERT, [`${n} at once ${name}`, 'kept'])))
    })
    expect(await notesOf(`3 at once ${name}`)).toEqual(['kept'])
  })

  test('a transaction that has ended is refused', async () => {
    let kept: unknown
    await opened.transaction(async (tx) => {
      kept = tx
      await enter(tx)
    })
    await expect(enter(kept)).rejects.toMatchObject({ name: 'TransactionError', code: 'E_TX_NOT_OPEN' })
  })

  test('a transaction in which a statement has failed is refused', async () => {
    let refusal: unknown
    const work = opened.transaction(async (tx) => {
      const failed = opened.own(tx, 'select 1 / 0')
      await expect(failed).rejects.toThrow()
      refusal = await enter(tx).catch((error: unknown) => error)
      throw new Error('on purpose')
    })
    await expect(work).rejects.toThrow()
    expect(refusal).toMatchObject({ name: 'TransactionError', code: 'E_TX_ABORTED' })
  })

  test('a transaction on another database is refused, and stays usable', async () => {
    const elsewhere = await open(otherUrl)
    try {
      await elsewhere.transaction(async (tx) => {
        await expect(enter(tx)).rejects.toMatchObject({
          code: 'E_TX_OTHER_DATABASE',
          message: expect.stringContaining('belongs to another database'),
        })
        expect(await elsewhere.own(tx, 'select 1 as one')).toBe(1)
      })
    } finally {
      await elsewhere.close()
    }
  })

  test('a handle without a transaction is refused before any statement is sent', () => {
    for (const root of Object.values(opened.roots))
      expect(() => executorOf(root)).toThrow(
        expect.objectContaining({ name: 'TransactionError', code: 'E_TX_NOT_OPEN' }) as Error,
      )
  })
})

describe('the server is asked', () => {
  const inBlock = async (begin: string, work: (client: pg.Client) => Promise<void>): Promise<void> => {
    const client = new pg.Client(url)
    await client.connect()
    try {
      await client.query(begin)
      await work(client)
    } finally {
      await client.end()
    }
  }

  test('and a client without a transaction is refused', async () => {
    await expect(enter(outside)).rejects.toMatchObject({ code: 'E_TX_NOT_OPEN' })
  })

  test('and a database with a store of its own is refused as another one', async () => {
    await inBlock('begin', async (client) => {
      const stranger = { ...home, token: 'another one' }
      await expect(checkOpen(executorOf(client), stranger)).rejects.toMatchObject({ code: 'E_TX_OTHER_DATABASE' })
      await enter(client)
    })
  })

  test('and a copy of the database, which has the same token, is refused as another one', async () => {
    const copy = new pg.Client(otherUrl)
    await copy.connect()
    try {
      await copy.query(`create schema ${SCHEMA}; create table ${SCHEMA}.identity (token text not null)`)
      await copy.query(`insert into ${SCHEMA}.identity values ('this one')`)
      await copy.query('begin')
      await expect(enter(copy)).rejects.toMatchObject({ code: 'E_TX_OTHER_DATABASE' })
      await copy.query('rollback')
      await copy.query(`drop schema ${SCHEMA} cascade`)
    } finally {
      await copy.end()
    }
  })

  test('and one on another server too, as far as the role may read that', async () => {
    const elsewhere = { ...home, cluster: '1' }
    expect(home.cluster).toMatch(/^[0-9]+$/)
    await inBlock('begin', async (client) => {
      await expect(checkOpen(executorOf(client), elsewhere)).rejects.toMatchObject({ code: 'E_TX_OTHER_DATABASE' })
    })
    await outside.query(`create role guest; grant usage on schema ${SCHEMA} to guest`)
    await outside.query(`grant select on ${SCHEMA}.identity to guest`)
    await inBlock('begin; set local role guest', async (client) => {
      await expect(checkOpen(executorOf(client), elsewhere)).rejects.toMatchObject({ code: 'E_TX_OTHER_DATABASE' })
      await enter(client)
    })
    await outside.query('revoke execute on function pg_catalog.pg_control_system() from public')
    await inBlock('begin; set local role guest', async (client) => void (await enter(client)))
  })

  test('and a transaction that may only read is refused', async () => {
    await inBlock('begin read only', async (client) => {
      await expect(enter(client)).rejects.toMatchObject({ code: 'E_TX_READ_ONLY' })
    })
  })

  test('and a role that may not read our tables is refused, and its transaction stays usable', async () => {
    await outside.query('create role stranger')
    for (const grant of ['', `grant usage on schema ${SCHEMA} to stranger`]) {
      await outside.query(grant)
      await inBlock('begin; set local role stranger', async (client) => {
        await expect(enter(client)).rejects.toMatchObject({ code: 'E_TX_DENIED' })
        expect((await client.query('select 1 as one')).rows).toEqual([{ one: 1 }])
      })
    }
  })

  test('and a snapshot from before our tables is stale', async () => {
    const young = `"young"`
    await inBlock('begin isolation level repeatable read', async (client) => {
      await client.query('select 1')
      await outside.query(`create schema ${young}; create table ${young}.identity (token text not null)`)
      await outside.query(`insert into ${young}.identity values ('this one')`)
      const check = checkOpen(executorOf(client), { ...home, schema: young })
      await expect(check).rejects.toMatchObject({ code: 'E_TX_STALE' })
    })
  })

  test('and a connection that was closed is reported as closed', async () => {
    const client = new pg.Client(url)
    await client.connect()
    await client.query('begin')
    await client.end()
    await expect(enter(client)).rejects.toMatchObject({ code: 'E_TX_CLOSED' })
  })

  test('and a connection that the server ended is reported as closed', async () => {
    const client = new pg.Client(url)
    const lost = new Promise((resolve) => client.on('error', resolve))
    await client.connect()
    await client.query('begin')
    const { rows } = await client.query('select pg_backend_pid() as pid')
    await outside.query('select pg_terminate_backend($1)', [rows[0].pid])
    await lost
    await expect(enter(client)).rejects.toMatchObject({ code: 'E_TX_CLOSED' })
  })
})
