/**
 * Copies data deeply: arrays, plain objects, Map, Set, Date, bytes and errors. Anything else, such as an instance of a
 * class or a function, is kept as it is. A part that is reached twice is copied once, so cycles are kept.
 */
export function copyData<T>(value: T): T {
  return copyInto(value, new Map()) as T
}

function copyInto(value: unknown, done: Map<object, unknown>): unknown {
  if (typeof value !== 'object' || value === null) return value
  const known = done.get(value)
  if (known !== undefined) return known
  const part = (inner: unknown): unknown => copyInto(inner, done)
  const keep = <C extends object>(copy: C): C => {
    done.set(value, copy)
    return copy
  }
  if (Array.isArray(value)) return fillArray(keep([]), value, part)
  if (value instanceof Map) return fillMap(keep(new Map()), value, part)
  if (value instanceof Set) return fillSet(keep(new Set()), value, part)
  if (isAtom(value)) return keep(structuredClone(value))
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype !== Object.prototype && prototype !== null) return value
  return fillObject(keep({}), value as Record<string, unknown>, part)
}

/** A date or bytes: without parts that could be anything. */
function isAtom(value: object): boolean {
  return ['[object Date]', '[object Uint8Array]'].includes(Object.prototype.toString.call(value))
}

type Part = (inner: unknown) => unknown

function fillArray(copy: unknown[], from: readonly unknown[], part: Part): unknown[] {
  for (const item of from) copy.push(part(item))
  return copy
}

function fillMap(copy: Map<unknown, unknown>, from: ReadonlyMap<unknown, unknown>, part: Part): Map<unknown, unknown> {
  for (const [key, item] of from) copy.set(part(key), part(item))
  return copy
}

function fillSet(copy: Set<unknown>, from: ReadonlySet<unknown>, part: Part): Set<unknown> {
  for (const item of from) copy.add(part(item))
  return copy
}

function fillObject(copy: object, from: Readonly<Record<string, unknown>>, part: Part): object {
  for (const key of Object.keys(from)) {
    // A key `__proto__` is data too; an assignment would set the prototype.
    Object.defineProperty(copy, key, { value: part(from[key]), enumerable: true, writable: true, configurable: true })
  }
  return copy
}
