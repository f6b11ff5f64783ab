import { Client } from 'pg'
import { expect } from 'vitest'
import { millrace } from '../../src/index.js'
import { postgres } from '../../src/postgres.js'
import { freshSchema } from '../support/fresh-store.js'
import type { Bench, Bound } from './bound.js'
import { refusedAbove, text } from './bound.js'

interface Sql {
  readonly client: Client
  readonly schema: string
}

/** A connection to a schema with the tables. */
async function sqlOf(bench: Bench): Promise<Sql> {
  if (bench.notes[0] !== undefined) return bench.notes[0] as Sql
  const { url, schema } = freshSchema() as { url: string; schema: string }
  const mill = await millrace({ store: postgres(url, { schema }), logger: false })
  const client = new Client(url)
  await client.connect()
  bench.closeToo(() => mill.close())
  bench.closeToo(() => client.end())
  return (bench.notes[0] = { client, schema }) as Sql
}

/** Calls `add_job` with a name and one more argument; returns the id. */
async function addJob(bench: Bench, name: string, option: string, value: unknown): Promise<string> {
  const { client, schema } = await sqlOf(bench)
  const call = `select "${schema}".add_job($1, ${option} => $2) as id`
  return ((await client.query(call, [name, value])).rows[0] as { id: string }).id
}

/** The same limits for `add_job`, which triggers and other languages call. */
function bySql(of: string, at: number, call: (size: number, bench: Bench) => Promise<unknown>, refusal: RegExp): Bound {
  return {
    of,
    at,
    on: 'postgres',
    when: 'by add_job',
    holds: async (size, bench) => {
      const id = await refusedAbove(size, at, () => call(size, bench), { code: '22023', text: refusal })
      expect(typeof id).toBe(size <= at ? 'string' : 'undefined')
    },
  }
}

export const sqlLimits: readonly Bound[] = [
  bySql(
    'src/store/postgres/migrations/0001-add-job.ts#PAYLOAD_MAX_BYTES',
    1024 * 1024,
    (size, bench) => addJob(bench, 'note', 'payload', JSON.stringify(text(size - 2))),
    /payload has 1048577 bytes and the limit is 1048576/,
  ),
  bySql(
    'src/job/definition/check-text.ts#NAME_MAX',
    200,
    (size, bench) => addJob(bench, text(size), 'queue', text(size)),
    /name must have 1 to 200 characters, got 201; queue must have 1 to 200 characters, got 201/,
  ),
  bySql(
    'src/job/definition/check-text.ts#KEY_MAX',
    500,
    (size, bench) => addJob(bench, 'note', 'key', text(size)),
    /key must have 1 to 500 characters, got 501/,
  ),
  bySql(
    'src/job/definition/check-options.ts#TITLE_MAX',
    500,
    (size, bench) => addJob(bench, 'note', 'title', text(size)),
    /title must have at most 500 characters, got 501/,
  ),
  bySql(
    'src/job/definition/check-options.ts#LABELS_MAX',
    16,
    (size, bench) =>
      addJob(
        bench,
        'note',
        'labels',
        Array.from({ length: size }, (_, i) => `${i}`),
      ),
    /labels must be at most 16, got 17/,
  ),
  bySql(
    'src/job/definition/check-options.ts#LABEL_MAX',
    100,
    (size, bench) => addJob(bench, 'note', 'labels', [text(size)]),
    /each of labels must have 1 to 100 characters, got 101/,
  ),
  bySql(
    'src/job/definition/check-options.ts#PRIORITY_MAX',
    1_000_000,
    (size, bench) => addJob(bench, 'note', 'priority', -size),
    /priority must be a whole number from -1000000 to 1000000, got -1000001/,
  ),
]
