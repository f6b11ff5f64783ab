import { readFileSync } from 'node:fs'
import { Client } from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ContractFixture } from '../../../../test/contract/fixture.js'
import { freshDatabase } from '../../../../test/postgres/shared-postgres.js'
import { systemWorld } from '../../../world/world.js'
import { openDatabase } from '../connection/open.js'
import { PostgresStore } from '../postgres-store.js'
import { targetOf } from '../connection/target.js'

/** A role with exactly the privileges that the guide names, on tables of another role. */

const DAY_MS = 86_400_000

let database: Awaited<ReturnType<typeof freshDatabase>>
let sql: Client
let app: string
beforeAll(async () => {
  database = await freshDatabase()
  sql = new Client(database.url)
  await sql.connect()
  app = `app_${new URL(database.url).pathname.slice(-12)}`
  await sql.query(`create role ${app} login password 'app'`)
})
afterAll(async () => {
  await sql.query(`drop owned by ${app}`)
  await sql.query(`drop role ${app}`)
  await sql.end()
  await database.drop()
})

const clock = { now: Date.now() }

async function open(url: string): Promise<PostgresStore> {
  const world = systemWorld()
  const opened = await openDatabase(await targetOf(url, 'millrace'), true, world)
  return new PostgresStore(opened, world, { now: () => clock.now })
}

async function grantAsTheGuideSays(): Promise<void> {
  const guide = readFileSync(new URL('../../../../docs/guides/postgres.md', import.meta.url), 'utf8')
  const grants = [...guide.matchAll(/^(grant .* to) app;$/gm)].map(([, grant]) => `${grant} ${app}`)
  expect(grants).toHaveLength(3)
  for (const grant of grants) await sql.query(grant)
}

async function done(b: ContractFixture, count: number, keepMs: number): Promise<string[]> {
  const jobs = Array.from({ length: count }, () => b.job())
  await b.insert(jobs)
  const { jobs: claimed } = await b.claim(await b.worker())
  await b.store.leases.settleJobs(
    claimed.map((job) => b.settled(job, { keepMs })),
    [],
  )
  return jobs.map(({ id }) => id)
}

async function days(): Promise<string[]> {
  const { rows } = await sql.query(
    `select relname from pg_inherits join pg_class c on c.oid = inhrelid
     where inhparent in ('millrace.jobs'::regclass, 'millrace.history'::regclass) order by relname`,
  )
  return rows.map((row: { relname: string }) => row.relname)
}

test('a role that may not drop days prunes expired jobs row by row, and is warned once', async () => {
  const owner = await open(database.url)
  await grantAsTheGuideSays()
  const store = await open(Object.assign(new URL(database.url), { username: app, password: 'app' }).href)
  const b = new ContractFixture({ store, clock })
  const before = await days()
  const [gone, kept] = [await done(b, 30, 2 * DAY_MS), await done(b, 5, 30 * DAY_MS)]
  expect((await sql.query('select from only millrace.jobs_rest')).rows).toEqual([])

  clock.now += 3 * DAY_MS
  expect((await store.sweepRows(500)).swept).toBe(30)
  expect(await b.state(gone[0] as string)).toBe('gone')
  expect(await b.state(kept[0] as string)).toBe('done')
  expect((await sql.query('select from millrace.jobs')).rows).toHaveLength(5)
  expect((await sql.query('select from millrace.history')).rows).toHaveLength(5)
  clock.now += 30 * DAY_MS
  expect((await store.sweepRows(500)).swept).toBe(5)
  expect(await days()).toEqual(before)

  const worker = await b.worker()
  for (let i = 0; i < 2; i += 1) await (await store.startHeartbeat(worker, 1_000, () => undefined))?.stop()
  const { rows } = await sql.query('select quote_ident(current_user) as owner')
  expect(store.info.warnings.filter((warning) => warning.includes('belong to'))).toEqual([
    expect.stringMatching(
      new RegExp(
        `the tables belong to the role ${rows[0].owner}, and ${app} may .* \`grant ${rows[0].owner} to ${app}\``,
      ),
    ),
  ])

  // As the warning says.
  await sql.query(`grant ${rows[0].owner} to ${app}`)
  clock.now += DAY_MS
  await store.sweepRows(500)
  expect((await days()).filter((each) => before.includes(each))).toEqual(['history_rest', 'jobs_rest'])
  // New partitions belong to the owner of the others: any member of that role may drop them.
  expect((await sql.query(`select from pg_tables where tableowner = '${app}'`)).rows).toEqual([])
  await store.close()
  await owner.close()
})

test('a child whose failed parent is pruned row by row is cancelled, and not left blocked', async () => {
  const { rows } = await sql.query('select quote_ident(current_user) as owner')
  await sql.query(`revoke ${rows[0].owner} from ${app}`)
  const store = await open(Object.assign(new URL(database.url), { username: app, password: 'app' }).href)
  const b = new ContractFixture({ store, clock })
  const parent = await b.one()
  const child = await b.one({ after: [{ id: parent }] })
  const { jobs } = await b.claim(await b.worker())
  await store.settleJobs(
    jobs.map((job) => b.settled(job, { to: 'failed', keepMs: 2 * DAY_MS })),
    [],
  )
  // The parent may be retried, so the child stays blocked.
  await store.promoteJobs(100)
  clock.now += 3 * DAY_MS
  await store.sweepRows(500)
  expect([await b.state(parent), await b.state(child)]).toEqual(['gone', 'blocked'])
  await store.promoteJobs(100)
  expect(await b.state(child)).toBe('cancelled')
  await store.close()
})

test('the owner of the tables gets no warning', async () => {
  const owner = await open(database.url)
  const b = new ContractFixture({ store: owner, clock })
  await (await owner.startHeartbeat(await b.worker(), 1_000, () => undefined))?.stop()
  expect(owner.info.warnings.filter((warning) => warning.includes('belong to'))).toEqual([])
  await owner.close()
})
