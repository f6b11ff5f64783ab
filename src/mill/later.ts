import { NotYetError } from '../errors.js'
import { LATER } from './surface.js'

/** What is promised and not built yet is refused by name: "mill.sequence is not a function" would help nobody. */
export function refuseLater(prototype: object): void {
  const define = (name: string, descriptor: PropertyDescriptor): unknown =>
    Object.defineProperty(prototype, name, descriptor)
  for (const name of LATER.rejecting) define(name, { value: () => Promise.reject(new NotYetError(`mill.${name}()`)) })
  for (const name of LATER.throwing) define(name, { value: thrower(`mill.${name}()`) })
  for (const name of LATER.named) define(name, { get: thrower(`mill.${name}`) })
}

function thrower(what: string): () => never {
  return () => {
    throw new NotYetError(what)
  }
}
