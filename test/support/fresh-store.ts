import { join } from 'node:path'

let stores = 0

/**
 * Somewhere new for jobs: a file in `folder`, or a schema of its own where the run is one on PostgreSQL. Behaviour is the
 * same on both, so the tests of behaviour ask for their store here.
 */
export function freshStore(folder: string): string {
  stores += 1
  const url = process.env['MILLRACE_TEST_POSTGRES']
  return url === undefined ? join(folder, `${stores}.db`) : `${url}?schema=t${process.pid}_${stores}`
}

export const onPostgres = process.env['MILLRACE_TEST_POSTGRES'] !== undefined
