import { InvalidOptionsError, InvalidPayloadError } from '../../errors.js'
import type { ItemProblems } from './prepare.js'

/** Throws all that is wrong with a call's items in one error; `unseen` of them were not looked at any more. */
export function refuse(name: string, wrongs: readonly ItemProblems[], unseen = 0): never {
  refuseAs(`job ${JSON.stringify(name)}${unseen === 0 ? '' : ` (${unseen} more items were not looked at)`}`, wrongs)
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
