import { InvalidOptionsError, InvalidPayloadError } from '../../errors.js'
import type { ItemProblems } from './prepare.js'

/** Throws one error that lists every problem of a call's items. `unchecked` items were not checked any more. */
export function refuse(name: string, wrongs: readonly ItemProblems[], unchecked = 0): never {
  refuseAs(`job ${JSON.stringify(name)}${unchecked === 0 ? '' : ` (${unchecked} more items were not checked)`}`, wrongs)
}

export function refuseAs(subject: string, wrongs: readonly ItemProblems[]): never {
  const options = wrongs.flatMap((wrong) => wrong.options)
  const payload = wrongs.flatMap((wrong) => wrong.payload)
  const cause = wrongs.find((wrong) => wrong.cause !== undefined)?.cause
  const tooLarge = wrongs.find((wrong) => wrong.tooLarge !== undefined)?.tooLarge
  if (options.length > 0) throw new InvalidOptionsError(subject, [...options, ...payload])
  if (tooLarge !== undefined && payload.length === 1) throw tooLarge
  throw new InvalidPayloadError(subject, payload, cause === undefined ? undefined : { cause })
}
