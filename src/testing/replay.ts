import { show } from '../codec/show.js'
import { InvalidOptionsError } from '../errors.js'
import { isWorkflow } from '../job/definition/brands.js'
import type { AnyJob, Job } from '../job/definition/define.js'
import { internalsOf } from '../mill/internals.js'
import type { Mill } from '../mill/mill-type.js'
import { replayStored } from '../mill/replay-stored.js'
import type { Replayed } from '../workflow/replay.js'

export type { Replayed } from '../workflow/replay.js'

/**
 * Runs this code against the recorded log of a workflow: does it still fit? Nothing acts, and nothing is written.
 *
 * ```ts
 * import { workflow } from 'millrace'
 * import { replay, testing } from 'millrace/testing'
 * const onboard = workflow('onboard', async (name: string, w) => w.step('create', () => name))
 * const t = await testing({ jobs: [onboard] })
 * const { id } = await t.mill.enqueue(onboard, 'ada')
 * console.log(await replay(t.mill, id, onboard)) // { fits: true }
 * await t.close()
 * ```
 */
export async function replay<Payload, Result>(
  mill: Mill,
  id: string,
  workflow: Job<Payload, Result>,
): Promise<Replayed> {
  const internals = internalsOf(Object(mill) as object)
  const problems = [
    ...(internals === undefined
      ? [{ path: 'mill', message: `must be made by millrace() or testing(), got ${show(mill)}` }]
      : []),
    ...(typeof id === 'string' ? [] : [{ path: 'id', message: `must be the id of a workflow, got ${show(id)}` }]),
    ...(isWorkflow(workflow)
      ? []
      : [{ path: 'workflow', message: `must be made by workflow(), got ${show(workflow)}` }]),
  ]
  if (internals === undefined || problems.length > 0) throw new InvalidOptionsError('replay()', problems)
  return replayStored(internals, id, workflow as unknown as AnyJob)
}
