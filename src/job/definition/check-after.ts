import type { Problem } from '../../errors.js'
import { show } from '../../codec/show.js'
import { isJob } from './brands.js'
import type { Check } from './check-fields.js'
import { KEY_MAX, NAME_MAX, textProblem } from './check-text.js'

/** The most parents of one job. */
export const AFTER_MAX = 20_000

/** The most wrong entries that one error lists. */
const WRONG_MAX = 20

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** Whether a value has the form of a job's id. */
export function isId(value: unknown): value is string {
  return typeof value === 'string' && UUID.test(value)
}

/** A list of parents: handles, ids, or [job, key]. */
export const isAfter: Check = (value) => {
  if (!Array.isArray(value)) {
    const meant = parentProblem(value) === undefined ? '; did you mean [handle]?' : ''
    return `must be an array of handles, ids or [job, key], got ${show(value)}${meant}`
  }
  if (value.length > AFTER_MAX) return `must name at most ${AFTER_MAX} jobs, got ${value.length}`
  const problems: Problem[] = []
  for (let i = 0; i < value.length && problems.length < WRONG_MAX; i += 1) {
    const message = parentProblem(value[i])
    if (message !== undefined) problems.push({ path: `[${i}]`, message })
  }
  return problems
}

function parentProblem(value: unknown): string | undefined {
  if (isId(value)) return undefined
  if (Array.isArray(value)) return keyedProblem(value)
  if (typeof value === 'object' && value !== null && !isJob(value)) {
    if (typeof (value as { then?: unknown }).then === 'function')
      return 'must be a handle, got a promise; await the enqueue'
    if (isId((value as { id?: unknown }).id)) return undefined
  }
  const advice = isJob(value) ? '; a job runs many times: give [job, key]' : ''
  return `must be a handle, a job's id (a UUID) or [job, key], got ${show(value)}${advice}`
}

function keyedProblem(pair: readonly unknown[]): string | undefined {
  const [job, key] = pair
  if (pair.length !== 2) return `must be [job, key], got an array of ${pair.length}`
  const name = isJob(job) ? undefined : textProblem(job, NAME_MAX, 'a job or its name')
  if (name !== undefined) return `must be [job, key]: the first ${name}`
  const wrong = textProblem(key, KEY_MAX, 'text')
  return wrong === undefined ? undefined : `must be [job, key]: the key ${wrong}`
}
