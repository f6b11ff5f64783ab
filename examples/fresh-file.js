import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/**
 * A path for a new database in the system's folder for temporary files; all of it is removed when the example ends. Where
 * $EXAMPLES_STORE names another store, such as `postgres://localhost/app`, the example runs on that.
 */
export function freshFile() {
  if (process.env.EXAMPLES_STORE) return process.env.EXAMPLES_STORE
  const folder = mkdtempSync(join(tmpdir(), 'millrace-example-'))
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  return join(folder, 'jobs.db')
}
