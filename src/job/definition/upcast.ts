import { codecError } from '../../codec/path.js'
import { reason, show } from '../../codec/show.js'
import type { Check } from './check-fields.js'
import { ignoreRejection, isThenable } from './schema.js'

/** Turns a payload of one version into one of the next. Its parameter has the type of that older version. */
export type Upcast = (payload: never) => unknown

/** The most versions of one job's payload. */
const UPCASTS_MAX = 1_000

/**
 * A payload of the current version, from one that was stored at `version`. Throws when the payload cannot be turned into that, or
 * is of a version that this code does not know yet.
 */
export function upcastPayload(upcast: readonly Upcast[], version: number, payload: unknown): unknown {
  if (version > upcast.length)
    throw codecError(
      '',
      `is of version ${version}, and this code reads up to version ${upcast.length}: a newer release enqueued it; retry the job when this process has that release`,
    )
  let value = payload
  for (let at = version; at < upcast.length; at += 1) value = step(upcast[at] as Upcast, at, value)
  return value
}

function step(turn: Upcast, at: number, value: unknown): unknown {
  const next = called(turn, at, value)
  if (!isThenable(next)) return next
  ignoreRejection(next)
  throw codecError(
    '',
    `of version ${at} could not be turned into version ${at + 1}: upcast[${at}] returned a promise, and must be synchronous`,
  )
}

function called(turn: Upcast, at: number, value: unknown): unknown {
  try {
    return turn(value as never)
  } catch (error) {
    const message = `of version ${at} could not be turned into version ${at + 1}: upcast[${at}] threw ${reason(error)}`
    throw codecError('', message, { cause: error })
  }
}

export const isUpcast: Check = (value) => {
  if (!Array.isArray(value)) return `must be a list of functions, [(v0) => v1], got ${show(value)}`
  if (value.length > UPCASTS_MAX) return `must be at most ${UPCASTS_MAX}, got ${value.length}`
  return Array.from<unknown>(value).flatMap((one, i) =>
    typeof one === 'function' ? [] : [{ path: `[${i}]`, message: `must be a function, got ${show(one)}` }],
  )
}
