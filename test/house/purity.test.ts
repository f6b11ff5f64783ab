import { expect, test } from 'vitest'
import { nonDeterminismOnlyInWorld, sqlOnlyInStore } from './purity.js'
import { plant } from './source.js'

const sqlIn = (text: string, path = 'src/worker/claim.ts'): number => sqlOnlyInStore(plant({ [path]: text })).length
const chanceIn = (text: string, path = 'src/worker/claim.ts'): number =>
  nonDeterminismOnlyInWorld(plant({ [path]: text })).length

test.each([
  'select id from jobs',
  'SELECT * FROM millrace_job WHERE id = ?',
  '\n  select id,\n    queue\n  from millrace_job',
  'select sqlite_version()',
  'insert into jobs (id) values (?)',
  'insert or ignore into jobs values (1)',
  "update jobs set state = 'done'",
  'delete from jobs where id = ?',
  'with due as (select 1)',
  'create table if not exists jobs (id text)',
  'create unique index a on b (c)',
  'pragma data_version',
  'begin immediate',
  'begin',
  'commit',
  'savepoint a',
  'listen millrace',
])('%s is SQL, and belongs in store/', (sql) => {
  expect(sqlIn(`db.exec(${JSON.stringify(sql)})`)).toBe(1)
  expect(sqlIn(`db.exec(\`${sql}\`)`)).toBe(1)
  expect(sqlIn(`db.exec(${JSON.stringify(sql)})`, 'src/store/sqlite/queries/queries.ts')).toBe(0)
})

test('SQL with a name inserted by a template is detected', () => {
  expect(sqlIn('db.exec(`insert into ${prefix}job (id) values (?)`)')).toBe(1)
  expect(sqlIn('db.exec(`select a from ${table}`)')).toBe(1)
  expect(sqlIn('db.exec(`delete from ${table}`)')).toBe(1)
})

test.each([
  'you can select a job from the list',
  'cannot update the job: set a queue first',
  'the job was deleted from its queue',
  'a job cannot delete from the group it is in',
  'begin with a letter',
  'commit the change, then enqueue',
  'release',
  'insert a job into the queue',
  'with a key, as (for example) an order id',
])('«%s» is prose', (text) => {
  expect(sqlIn(`log(${JSON.stringify(text)})`)).toBe(0)
})

test('SQL in a comment is ignored', () => {
  expect(sqlIn('// select id from jobs\n/* insert into jobs (id) values (1) */')).toBe(0)
})

test.each([
  'Date.now()',
  'const now = Date.now',
  'new Date()',
  'new Date',
  'String(new Date())',
  'Date()',
  'performance.now()',
  'globalThis.performance.now()',
  'process.hrtime.bigint()',
  'Math.random()',
  'setTimeout(f, 1)',
  'globalThis.setTimeout(f, 1)',
  'setInterval(f, 1)',
  'setImmediate(f)',
  'queueMicrotask(f)',
  'process.nextTick(f)',
  'AbortSignal.timeout(5)',
  'crypto.randomUUID()',
  "import { randomBytes } from 'node:crypto'",
  "import { setTimeout as sleep } from 'node:timers/promises'",
  "const c = await import('node:crypto')",
  "const c = process.getBuiltinModule('node:crypto')",
  'const id = `${Math.random()}`',
  "const source = 'setInterval(beat, 1000)'",
  'const source = `const t = Date.now()`',
])('%s is refused outside the world', (text) => {
  expect(chanceIn(text)).toBeGreaterThan(0)
  expect(chanceIn(text, 'src/reactive/graph/signal.ts')).toBeGreaterThan(0)
  for (const free of ['src/world/clock.ts', 'src/reactive/host.ts', 'src/dashboard/web/app.ts', 'src/job/a.test.ts']) {
    expect(chanceIn(text, free)).toBe(0)
  }
})

test.each([
  'new Date(ms)',
  'new Date(job.dueAt).toISOString()',
  'world.clock.now()',
  'host.setTimeout(f, 1)',
  'world.random()',
  'let at: Date',
  'value instanceof Date',
  'Date.parse(text)',
  '// Date.now() is for the world',
  "import type { KeyObject } from 'node:crypto'",
  "throw new Error('past 2^31 ms setTimeout fires at once')",
])('%s is fine anywhere', (text) => {
  expect(chanceIn(text)).toBe(0)
})
