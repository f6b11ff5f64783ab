import { NotYetError } from '../errors.js'

/** `watch()` of handles and groups is promised and not built yet: JavaScript gets a refusal by name, TypeScript no such method. */
export interface NotWatched {
  watch(): never
}

export function refuseWatch(of: string, instead: string): never {
  throw new NotYetError(`${of}.watch()`, instead)
}
