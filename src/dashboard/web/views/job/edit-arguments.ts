import type { ActArguments, JobFields } from '../../../protocol.js'

const MINUTE = 60_000

export interface Edited {
  readonly args: ActArguments
  /** The changes in words: what was and what will be. */
  readonly lines: readonly string[]
  readonly problem: string | undefined
}

/** Only what differs from the job as it is, or what is wrong with the input. */
export function changedArguments(
  job: Pick<JobFields, 'priority'>,
  given: { readonly priority: string; readonly delay: string; readonly payload: string },
  now: number,
): Edited {
  const none = { args: {}, lines: [] }
  const priority = Number(given.priority)
  if (given.priority.trim() === '' || !Number.isInteger(priority))
    return { ...none, problem: `The priority must be a whole number, got "${given.priority}".` }
  const delay = Number(given.delay)
  if (given.delay.trim() !== '' && !(delay >= 0))
    return { ...none, problem: `The delay must be a number of minutes, got "${given.delay}".` }
  const wrong = given.payload.trim() === '' ? undefined : jsonProblem(given.payload)
  if (wrong !== undefined) return { ...none, problem: wrong }
  return {
    args: {
      ...(priority === job.priority ? {} : { priority }),
      ...(given.delay.trim() === '' ? {} : { dueAt: now + delay * MINUTE }),
      ...(given.payload.trim() === '' ? {} : { payload: given.payload }),
    },
    lines: [
      ...(priority === job.priority ? [] : [`priority ${job.priority} → ${priority}`]),
      ...(given.delay.trim() === '' ? [] : [`due in ${delay} min`]),
      ...(given.payload.trim() === '' ? [] : ['a new payload']),
    ],
    problem: undefined,
  }
}

/** Why a text is not JSON; undefined when it is. */
export function jsonProblem(text: string): string | undefined {
  try {
    JSON.parse(text)
    return undefined
  } catch (error) {
    return `The payload is not JSON: ${(error as Error).message}.`
  }
}
