import { runTask, startTask } from './child.mjs'

/** A latency task in two processes: a producer, and the worker, whose figures are measured. */
export async function acrossTwo(spec) {
  const worker = startTask({ ...spec, role: 'worker' })
  await worker.heard('ready')
  try {
    await runTask({ ...spec, role: 'producer' })
    return await worker.result
  } catch (error) {
    worker.kill()
    throw error
  }
}
