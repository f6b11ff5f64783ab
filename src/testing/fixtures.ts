import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { millrace } from '../mill.js'
import { DefinitionError, TimeoutError } from '../errors.js'
import type { Duration } from '../job/duration/duration.js'
import { formatDuration, parseDuration } from '../job/duration/duration.js'
import type { Handle } from '../job/enqueue.js'
import { checkMillOptions } from '../mill/options.js'
import type { MillOptions } from '../mill/options.js'
import type { Mill } from '../mill/mill-type.js'

/** How each mill of `startMill` was made, so that `restart` can make it again; kept on the mill itself. */
const MADE_WITH = Symbol.for('millrace.testing.made-with')
type Made = Mill & { [MADE_WITH]?: { readonly options: MillOptions; readonly folder: string | undefined } }

/**
 * A real mill that runs, on a fresh file, with quiet defaults: no log, a short poll. Closing it removes the file.
 *
 * ```ts
 * import { job } from 'millrace'
 * import { startMill, waitFor } from 'millrace/testing'
 * const greet = job('greet', async () => 'hello')
 * const mill = await startMill({ jobs: [greet] })
 * console.log(await waitFor(await mill.enqueue(greet)))
 * await mill.close()
 * ```
 */
export async function startMill(options: MillOptions = {}): Promise<Mill> {
  checkMillOptions(options, 'startMill()')
  const folder = options.store === undefined ? mkdtempSync(join(tmpdir(), 'millrace-test-')) : undefined
  const store = folder === undefined ? options.store : join(folder, 'test.db')
  try {
    return await begin({ logger: false, poll: '100ms', ...options, store }, folder)
  } catch (error) {
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true })
    throw error
  }
}

/** Stops a mill of `startMill` and starts another on the same file: what a deploy does. */
export async function restart(mill: Mill, change: Partial<MillOptions> = {}): Promise<Mill> {
  const made = (mill as Made)[MADE_WITH]
  if (made === undefined) throw new DefinitionError('restart() takes a mill made by startMill()')
  checkMillOptions(change, 'restart()')
  Object.assign(mill, { [MADE_WITH]: { ...made, folder: undefined } })
  await mill.close()
  return begin({ ...made.options, ...change }, made.folder)
}

/** A job's result, or how it failed; when it takes too long, the error names the state it is in. */
export async function waitFor<Result>(handle: Handle<Result>, timeout: Duration | number = '10s'): Promise<Result> {
  const parsed = parseDuration(timeout)
  if (!parsed.ok) throw new DefinitionError(`waitFor(): the time-out ${parsed.problem}`)
  try {
    return await handle.result({ timeout })
  } catch (error) {
    if (!(error instanceof TimeoutError)) throw error
    const found = await handle.get()
    const how =
      found?.error === undefined ? '' : ` after ${found.attempt} attempts, the last with: ${found.error.message}`
    throw new TimeoutError(
      `waited ${formatDuration(parsed.ms)} for job ${handle.id}: it is ${found?.state ?? 'gone'}${how}`,
    )
  }
}

async function begin(options: MillOptions, folder: string | undefined): Promise<Mill> {
  const mill: Made = await millrace(options)
  const close = mill.close.bind(mill)
  const closeAll = async (how?: Parameters<Mill['close']>[0]): Promise<void> => {
    await close(how)
    const kept = mill[MADE_WITH]?.folder
    if (kept !== undefined) rmSync(kept, { recursive: true, force: true })
  }
  Object.assign(mill, { [MADE_WITH]: { options, folder }, close: closeAll, [Symbol.asyncDispose]: () => closeAll() })
  await mill.start()
  return mill
}
