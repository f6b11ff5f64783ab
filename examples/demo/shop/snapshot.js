// Holds a snapshot of the store until the process that started it lets go: like a backup that hangs.
import { chooseLibrary } from '../../../dist/store/sqlite/connection/library.js'

const [store] = process.argv.slice(2)
process.on('SIGINT', () => {})
process.on('disconnect', () => process.exit(0))

if (/^postgres(ql)?:/.test(store)) {
  const { default: pg } = await import('pg')
  const { schemaOf } = await import('../../../dist/store/postgres/connection/target.js')
  const client = new pg.Client({ connectionString: schemaOf(store).where, application_name: 'pg_dump' })
  await client.connect()
  await client.query('begin isolation level repeatable read; select 1')
} else {
  const database = new (chooseLibrary().open)(store)
  database.exec('begin; select 1 from millrace_lanes')
}
