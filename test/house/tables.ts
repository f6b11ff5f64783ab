import type { Breach, House, Rule } from './source.js'

const MAP = 'ARCHITECTURE.md'
/** The header of the table of tables; its first two columns name the tables of SQLite and of PostgreSQL. */
const HEADER = /^\| SQLite .*\| PostgreSQL /
const STORES = [
  { name: 'SQLite', schema: 'src/store/sqlite/schema.sql', column: 1 },
  { name: 'PostgreSQL', schema: 'src/store/postgres/schema.sql', column: 2 },
]
/** A partition has the columns of its table and is not listed. */
const TABLE = /^create table millrace[_.](\w+)(?! partition of)\b/gim

/** The table of tables in ARCHITECTURE.md names each table of both schemas, and no other. */
export const mapNamesEveryTable: Rule = (house) => {
  const rows = rowsOf(house)
  return STORES.flatMap(({ name, schema, column }) => {
    const tables = new Set([...(house.doc(schema) ?? '').matchAll(TABLE)].map(([, table]) => table as string))
    const named = rows.flatMap(({ cells, line }) =>
      [...(cells[column] ?? '').matchAll(/`(\w+)`/g)].map(([, table]) => ({ table: table as string, line })),
    )
    const missing = [...tables].filter((table) => !named.some((each) => each.table === table))
    return [
      ...missing.map((table) => breach(1, `does not name the table ${table} of ${name}`)),
      ...named
        .filter(({ table }) => !tables.has(table))
        .map(({ table, line }) => breach(line, `names the table ${table}, which ${schema} does not have`)),
    ]
  })
}

function rowsOf(house: House): { readonly cells: readonly string[]; readonly line: number }[] {
  const lines = (house.doc(MAP) ?? '').split('\n')
  const start = lines.findIndex((line) => HEADER.test(line))
  if (start < 0) return []
  const after = lines.slice(start + 1)
  const end = after.findIndex((line) => !line.startsWith('|'))
  return after.slice(0, end < 0 ? undefined : end).map((line, i) => ({ cells: line.split('|'), line: start + 2 + i }))
}

function breach(line: number, what: string): Breach {
  return { file: MAP, line, what }
}
