import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A path for a new database in the system's folder for temporary files; all of it is removed when the example ends. */
export function freshFile() {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-example-'))
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  return join(folder, 'jobs.db')
}
