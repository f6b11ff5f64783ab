import { afterAll } from 'vitest'
import { freshDatabase } from './shared-postgres.js'

/** Before each file of the `postgres` project: the same tests of behaviour, on a database of the file's own. */
const database = await freshDatabase()
process.env['MILLRACE_TEST_POSTGRES'] = database.url
afterAll(() => database.drop())
