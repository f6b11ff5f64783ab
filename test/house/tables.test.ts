import { expect, test } from 'vitest'
import { plant } from './source.js'
import { mapNamesEveryTable } from './tables.js'

const SCHEMAS: Readonly<Record<string, string>> = {
  'src/store/sqlite/schema.sql': 'CREATE TABLE millrace_jobs (\n);\nCREATE TABLE millrace_live (\n);\n',
  'src/store/postgres/schema.sql':
    'create table millrace.jobs (\n);\ncreate table millrace.ready (\n);\ncreate table millrace.jobs_rest partition of millrace.jobs default;\n',
}

function checked(...rows: readonly string[]): string[] {
  const map = [
    '# Map',
    '',
    '| SQLite | PostgreSQL | a row is |',
    '| --- | --- | --- |',
    ...rows,
    '',
    'after `it`',
  ].join('\n')
  const doc = (path: string): string | undefined => (path === 'ARCHITECTURE.md' ? map : SCHEMAS[path])
  return mapNamesEveryTable(plant({}, { doc })).map(({ line, what }) => `${line} ${what}`)
}

test('a map that names every table of both schemas is accepted', () => {
  expect(checked('| `jobs` | `jobs`, partitioned | see `sort` |', '| `live` | `ready` | |')).toEqual([])
})

test('a table that the map does not name is refused, and a partition need not be named', () => {
  expect(checked('| `jobs` | `jobs` | |', '| – | `ready` | |')).toEqual(['1 does not name the table live of SQLite'])
})

test('a table that only one store has is refused in the column of the other', () => {
  expect(checked('| `jobs` | `jobs` | |', '| `live`, `ready` | `ready` | |')).toEqual([
    '6 names the table ready, which src/store/sqlite/schema.sql does not have',
  ])
})
