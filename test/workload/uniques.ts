import { DuplicateJobError } from '../../src/errors.js'
import type { EnqueueOptions, Handle } from '../../src/job/enqueue.js'
import { BrokenPromise } from '../../src/testing/checkers/broken-promise.js'
import type { Random } from '../../src/testing/simulation/random.js'
import { cancel, pause } from './commands.js'
import { asTenant } from './shared-state.js'
import type { ScenarioClient } from './scenario.js'

const NAMES = ['sole', 'once', 'behind', 'latest'] as const
const POLICIES = ['ignore', 'reject', 'replace'] as const
const PLACES = 2

/** A job with a unique slot, its payload and its options. */
export function uniqueJob(
  random: Random,
  n: number,
  name: string = random.pick(NAMES),
): [string, object, EnqueueOptions] {
  const ms = random.chance(0.5) ? random.int(0, 20) : random.int(100, 1_500)
  const payload = { place: random.int(1, PLACES), ms, n, fails: random.pick([0, 0, 1, 2]) }
  if (name === 'latest') return [name, payload, { in: random.int(100, 1_500) }]
  return [name, payload, { unique: { onDuplicate: random.pick(POLICIES) } }]
}

/** Enqueues a few jobs in a row that may request the same unique slot, and sometimes sends a command to the holder. */
export async function enqueueUnique(scenario: ScenarioClient): Promise<void> {
  const { sim, client, random } = scenario
  const name = random.pick(NAMES)
  for (let times = random.int(1, 4); times > 0; times -= 1) {
    const id = await enqueueSome(scenario, name)
    // This covers the slot of a cancelled job, and of one that is postponed while it is paused.
    if (id !== '' && random.chance(0.2)) await random.pick([cancel, pause])(scenario, id)
    if (random.chance(0.7)) await sim.wait(client, random.int(1, 400))
  }
}

/** One job, or a bulk; returns the id of a job that holds the slot. */
async function enqueueSome(scenario: ScenarioClient, name: string): Promise<string> {
  const { sim, random } = scenario
  const cancelled = new Set(sim.census().jobs.flatMap(({ id, state }) => (state === 'cancelled' ? [id] : [])))
  const answered = (id: string, how: string): string => {
    sim.count(`unique: ${how}`)
    if (cancelled.has(id))
      sim.fail(new BrokenPromise(`E6: job ${id} was called off, and its place was not free for the next one`))
    return id
  }
  try {
    const handles = await (random.chance(0.15) ? enqueueBulk(scenario, name) : enqueueOne(scenario, name))
    for (const { id, isNew } of handles) if (!isNew) answered(id, name === 'latest' ? 'put off' : 'ignored')
    return handles[0]?.id ?? ''
  } catch (error) {
    if (!(error instanceof DuplicateJobError)) throw error
    // The duplicate may be in the same bulk, and then nothing of it was written.
    return error.existingId === undefined ? '' : answered(error.existingId, 'refused')
  }
}

async function enqueueOne(scenario: ScenarioClient, name: string): Promise<readonly Handle<unknown>[]> {
  const { mill, random } = scenario
  const n = scenario.known.length
  const [, payload, options] = uniqueJob(random, n, name)
  const handle = await asTenant(scenario, random, (tenant) => mill.enqueue(name, { ...payload, tenant }, options))
  return [note(scenario, name, handle, n)]
}

async function enqueueBulk(scenario: ScenarioClient, name: string): Promise<readonly Handle<unknown>[]> {
  const { mill, random } = scenario
  const first = scenario.known.length
  const items = Array.from({ length: random.int(2, 4) }, (_, i) => uniqueJob(random, first + i, name))
  const handles = await asTenant(scenario, random, (tenant) =>
    mill.enqueueMany(
      name,
      items.map(([, payload]) => ({ ...payload, tenant })),
      (_, i) => items[i]?.[2] ?? {},
    ),
  )
  return handles.map((handle, i) => note(scenario, name, handle, first + i))
}

/** The newest payload that was acknowledged for a postponed job must run. */
function note({ known, newest }: ScenarioClient, name: string, handle: Handle<unknown>, n: number): Handle<unknown> {
  known.push(handle.id)
  if (name === 'latest') newest.set(handle.id, n)
  return handle
}
