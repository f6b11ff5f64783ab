import { NotYetError } from '../errors.js'

/** `watch()` of handles and groups is not built yet. TypeScript has no such method; a JavaScript call throws and names the alternative. */
export interface WithoutWatch {
  watch(): never
}

export function refuseWatch(of: string, instead: string): never {
  throw new NotYetError(`${of}.watch()`, instead)
}
