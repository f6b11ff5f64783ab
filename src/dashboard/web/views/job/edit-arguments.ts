import type { ActArguments, JobFields, Shown, ShownValue } from '../../../protocol.js'

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

/** The payload as text to edit; empty where plain JSON would lose something of it: a part, a hidden value, a Date, a big integer. */
export function editableText(payload: ShownValue | undefined): string {
  return payload === undefined || payload.isCut || payload.isRedacted || !isPlain(payload.value) ? '' : payload.text
}

function isPlain(value: Shown): boolean {
  if (typeof value !== 'object' || value === null) return true
  if (value.is === 'tag' || value.of !== undefined || value.more !== undefined) return false
  return value.is === 'list' ? value.items.every(isPlain) : value.entries.every(([, each]) => isPlain(each))
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
