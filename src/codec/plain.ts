import { DEPTH_MAX } from './limits.js'
import type { Tag } from './tags.js'

/**
 * Proves in one walk that JSON.stringify writes a value without loss. Returns how many parts are left of `left`, or -1 when
 * there is no proof: then write.ts takes over, which writes tags and reports errors with their paths. It may reject a value
 * that JSON.stringify could write, and never accepts one that it could not.
 */
export function provePlain(value: unknown, custom: readonly Tag[], depth: number, left: number): number {
  if (isPlainLeaf(value)) return left - 1
  if (typeof value !== 'object' || depth >= DEPTH_MAX || left <= 0) return -1
  for (const tag of custom) if (tag.is(value)) return -1
  const object = value as object
  return Array.isArray(object)
    ? provePlainArray(object, custom, depth, left - 1)
    : provePlainRecord(object, custom, depth, left - 1)
}

/** Whether a key would be read as the mark of a tag. `$`, `$$` and so on are escaped with one more `$`; `$set` is not. */
export function isMarkKey(key: string): boolean {
  if (key.charCodeAt(0) !== 36) return false
  for (let at = 1; at < key.length; at++) if (key.charCodeAt(at) !== 36) return false
  return true
}

/** null, a boolean, a string, or a number that JSON keeps: finite, and not negative zero. */
function isPlainLeaf(value: unknown): boolean {
  if (typeof value === 'string' || typeof value === 'boolean' || value === null) return true
  return typeof value === 'number' && value - value === 0 && (value !== 0 || 1 / value > 0)
}

function provePlainArray(array: readonly unknown[], custom: readonly Tag[], depth: number, left: number): number {
  if (Object.getPrototypeOf(array) !== Array.prototype || array.length > left) return -1
  for (let at = 0; at < array.length; at++) {
    // Leaves are checked here and not in a recursive call: most parts are leaves, and the call is most of their cost.
    if (isPlainLeaf(array[at])) left -= 1
    else left = provePlain(array[at], custom, depth + 1, left)
    if (left < 0) return -1
  }
  return left
}

function provePlainRecord(record: object, custom: readonly Tag[], depth: number, left: number): number {
  const prototype: unknown = Object.getPrototypeOf(record)
  if (prototype !== Object.prototype && prototype !== null) return -1
  for (const key in record) {
    // The descriptor distinguishes a value from a getter without calling the getter.
    const property = Object.getOwnPropertyDescriptor(record, key)
    if (property === undefined || property.get !== undefined || property.set !== undefined || isMarkKey(key)) return -1
    const part: unknown = property.value
    if (isPlainLeaf(part)) left -= 1
    else left = provePlain(part, custom, depth + 1, left)
    if (left < 0) return -1
  }
  return left
}
