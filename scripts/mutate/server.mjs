import { ModuleRegistry } from './module-registry.mjs'
import { readProgram } from './program.mjs'

const SHARED = 'test/postgres/shared-postgres.ts'

/** Calls `work` with the environment in which tests find one PostgreSQL server, which the first of them starts. */
export async function withServer(root, cache, work) {
  const { files } = readProgram(root, [{ path: SHARED }], () => false, cache)
  const { openDoor } = await new ModuleRegistry({ root, files }).load(SHARED)
  const close = await openDoor()
  try {
    return await work({ MILLRACE_TEST_POSTGRES_DOOR: process.env['MILLRACE_TEST_POSTGRES_DOOR'] })
  } finally {
    await close()
  }
}
