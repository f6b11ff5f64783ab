import { MillraceError } from '../../src/errors.js'
import type { EnqueueOptions, Handle } from '../../src/job/enqueue.js'
import type { SqliteDatabase } from '../../src/store/sqlite/connection/driver.js'
import { BrokenPromise } from '../../src/testing/checkers/broken-promise.js'
import { anyJob } from './any-job.js'
import { asTenant } from './shared-state.js'
import type { ScenarioClient } from './scenario.js'
import { uniqueJob } from './uniques.js'

/** Enqueues in a transaction of the client, which commits or does not; errors of refused calls within it are caught. */
export async function enqueueInTransaction(scenario: ScenarioClient): Promise<void> {
  const { random } = scenario
  await inTransaction(scenario, random.chance(0.4), (tx) => {
    const written: Promise<readonly Handle<unknown>[]>[] = []
    for (let times = random.int(1, 3); times > 0; times -= 1) written.push(...enqueueIn(scenario, tx))
    return Promise.all(written).then((all) => all.flat())
  })
}

/** Work in a transaction of the client, all of whose jobs exist afterwards, or none. */
export async function inTransaction(
  { sim, known }: ScenarioClient,
  rollsBack: boolean,
  work: (tx: SqliteDatabase) => Promise<readonly Handle<unknown>[]>,
): Promise<void> {
  let written: Promise<readonly Handle<unknown>[]> = Promise.resolve([])
  const { engine } = sim.database
  if (engine.answersLater) written = engine.inTransaction(rollsBack, (tx) => work(tx as SqliteDatabase))
  else
    try {
      sim.transaction((tx) => {
        written = work(tx)
        if (rollsBack) throw new RolledBack()
      })
    } catch (error) {
      if (!(error instanceof RolledBack)) throw error
    }
  for (const { id, isNew } of await written) {
    if (!rollsBack) sim.acknowledged.add(id)
    else if (isNew) sim.undone.add(id)
    if (!rollsBack) known.push(id)
  }
  sim.count(rollsBack ? 'tx rolled back' : 'tx committed')
}

/** One call; empty when it was refused, and then nothing of it may exist. */
function enqueueIn(scenario: ScenarioClient, tx: SqliteDatabase): Promise<readonly Handle<unknown>[]>[] {
  const { sim } = scenario
  if (sim.database.engine.answersLater) return [enqueueLater(scenario, tx)]
  const before = sim.census().jobs.length
  try {
    return [scenario.random.chance(0.5) ? oneIn(scenario, tx) : manyIn(scenario, tx)]
  } catch (error) {
    if (!(error instanceof MillraceError)) throw error
    sim.count('tx calls refused')
    const left = sim.census().jobs.length - before
    if (left !== 0) sim.fail(new BrokenPromise(`G2: a call that was refused left ${left} jobs in the transaction`))
    return []
  }
}

/** The same where a refusal comes as a rejection. Other transactions change the store meanwhile, so nothing is counted. */
async function enqueueLater(scenario: ScenarioClient, tx: SqliteDatabase): Promise<readonly Handle<unknown>[]> {
  try {
    return await (scenario.random.chance(0.5) ? oneIn(scenario, tx) : manyIn(scenario, tx))
  } catch (error) {
    if (!(error instanceof MillraceError)) throw error
    scenario.sim.count('tx calls refused')
    return []
  }
}

function oneIn(scenario: ScenarioClient, tx: SqliteDatabase): Promise<readonly Handle<unknown>[]> {
  const { mill, random } = scenario
  const [name, payload, more] = random.chance(0.3) ? uniqueJob(random, scenario.known.length) : [...anyJob(random), {}]
  const options: EnqueueOptions = { tx, ...(random.chance(0.2) ? { in: random.int(1, 2_000) } : {}), ...more }
  const enqueued = asTenant(scenario, random, (tenant) => mill.enqueue(name, { ...payload, tenant }, options))
  return enqueued.then((handle) => [handle])
}

/** Some of these have a key, and a bulk with a held key is refused completely. */
function manyIn(scenario: ScenarioClient, tx: SqliteDatabase): Promise<readonly Handle<unknown>[]> {
  const { mill, random } = scenario
  const keys = Array.from({ length: random.int(2, 4) }, () =>
    random.chance(0.5) ? `key-${random.int(1, 3)}` : undefined,
  )
  return asTenant(scenario, random, (tenant) =>
    mill.enqueueMany(
      'steady',
      keys.map((_, n) => ({ ms: 5, n, tenant })),
      (_, n) => ({ tx, key: keys[n], onDuplicate: 'reject' }),
    ),
  )
}

class RolledBack extends Error {}
