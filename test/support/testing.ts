import { openDatabase } from '../../src/store/postgres/connection/open.js'
import { PostgresStore } from '../../src/store/postgres/postgres-store.js'
import { targetOf } from '../../src/store/postgres/connection/target.js'
import { testing as testingInMemory } from '../../src/testing/index.js'
import type { TestKit, TestOptions } from '../../src/testing/index.js'
import { testingOn } from '../../src/testing/kit.js'
import { systemWorld } from '../../src/world/world.js'
import { freshSchema } from './fresh-store.js'

/** The test kit of users, or one on a schema of its own where the run is one on PostgreSQL. */
export function testing(options: TestOptions = {}): Promise<TestKit> {
  const fresh = freshSchema()
  if (fresh === undefined) return testingInMemory(options)
  return testingOn(options, async (world, now) => {
    // Its connections use the real world: a test that moves its clock does not speed up replies of the server.
    const opened = await openDatabase(await targetOf(fresh.url, fresh.schema), true, systemWorld())
    return new PostgresStore(opened, world, { now })
  })
}
