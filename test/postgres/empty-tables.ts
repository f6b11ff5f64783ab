import type { Client } from 'pg'

/** Deletes every row of these schemas and keeps the tables: to make them takes longer than most tests. */
export async function emptyTables(client: Client, schemas: readonly string[]): Promise<void> {
  const { rows } = await client.query<{ name: string }>(
    `select format('%I.%I', schemaname, tablename) as name from pg_tables
     where schemaname = any ($1) and tablename not in ('migrations', 'identity')`,
    [schemas],
  )
  await client.query(rows.map(({ name }) => `delete from ${name}`).join(';'))
}
