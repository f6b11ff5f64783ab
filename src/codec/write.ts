import { CodecError } from '../errors.js'
import { isError } from './error-shape.js'
import { DEPTH_MAX, PARTS_MAX } from './limits.js'
import { codecError, formatPath, type Segment } from './path.js'
import { isMarkKey } from './plain.js'
import { whyExcluded, whyRefused } from './refuse.js'
import type { Rules } from './rules.js'
import { className, reason, show } from './show.js'
import type { Tag } from './tags.js'

/**
 * Writes any value the rules allow, with a tag where JSON has no such value, or throws the path of the part that cannot be
 * written. It is the slow path: values that JSON.stringify writes without loss are handled by plain.ts.
 */
export function writeText(value: unknown, rules: Rules): string {
  const walk: Walk = { rules, path: [], above: new Map(), left: PARTS_MAX }
  try {
    return write(walk, value, undefined)
  } catch (error) {
    if (error instanceof CodecError) throw error
    // A proxy, a getter or the JavaScript engine threw; the path shows where.
    throw codecError(formatPath(walk.path), `could not be read: ${reason(error)}`, { cause: error })
  }
}

/** The state of one walk. */
interface Walk {
  readonly rules: Rules
  readonly path: Segment[]
  /** The enclosing objects, each with the length of the path to it. */
  readonly above: Map<object, number>
  left: number
}

function write(walk: Walk, value: unknown, writtenBy: Tag | undefined): string {
  walk.left -= 1
  if (walk.left < 0) return refuse(walk, `is where the value passes ${PARTS_MAX} parts; write it in pieces`)
  switch (typeof value) {
    case 'string':
      return JSON.stringify(value)
    case 'boolean':
      return value ? 'true' : 'false'
    case 'number':
      return value - value === 0 && (value !== 0 || 1 / value > 0)
        ? String(value)
        : writeBuiltIn(walk, numberName(value), value)
    case 'undefined':
      return writeBuiltIn(walk, 'undefined', value)
    case 'bigint':
    case 'symbol':
    case 'function':
    case 'object':
      return value === null ? 'null' : writeTyped(walk, value, writtenBy)
  }
}

/** Registered types are tried first. is() of a type is not called for its own written form, so the two may look alike. */
function writeTyped(walk: Walk, value: {}, writtenBy: Tag | undefined): string {
  for (const tag of walk.rules.custom)
    if (tag !== writtenBy && isOfType(walk, tag, value)) return writeTagged(walk, tag, value)
  if (typeof value === 'bigint') return writeBuiltIn(walk, 'BigInt', value)
  if (typeof value !== 'object') return refuse(walk, whyRefused(value))
  if (isArray(value)) return writeArray(walk, value)
  if (isRecord(value)) return writeRecord(walk, value)
  const name = builtInName(walk, value)
  return name === undefined ? refuse(walk, whyRefused(value)) : writeBuiltIn(walk, name, value)
}

function writeArray(walk: Walk, array: readonly unknown[]): string {
  // Checked first, because an empty array may have four thousand million holes.
  if (array.length > walk.left) return refuse(walk, `has ${array.length} entries; a value may have ${PARTS_MAX} parts`)
  enter(walk, array)
  let text = '['
  for (let at = 0; at < array.length; at++) {
    walk.path.push(at)
    text += (at === 0 ? '' : ',') + write(walk, array[at], undefined)
    walk.path.pop()
  }
  walk.above.delete(array)
  return `${text}]`
}

function writeRecord(walk: Walk, record: object): string {
  enter(walk, record)
  let text = '{'
  for (const key of Object.keys(record)) {
    walk.path.push(key)
    const property = Object.getOwnPropertyDescriptor(record, key)
    if (property?.get !== undefined || property?.set !== undefined) refuse(walk, GETTER)
    const name = JSON.stringify(isMarkKey(key) ? `$${key}` : key)
    text += `${text === '{' ? '' : ','}${name}:${write(walk, property?.value, undefined)}`
    walk.path.pop()
  }
  walk.above.delete(record)
  return `${text}}`
}

const GETTER = 'is computed by a getter or setter, and only data can be written; pass a copy that holds the value'

function writeBuiltIn(walk: Walk, name: string, value: unknown): string {
  const tag = walk.rules.builtIn.get(name)
  return tag === undefined ? refuse(walk, whyExcluded(name)) : writeTagged(walk, tag, value)
}

function writeTagged(walk: Walk, tag: Tag, value: unknown): string {
  const written = callWrite(walk, tag, value)
  if (written === undefined) return `{"$":${JSON.stringify(tag.name)}}`
  // A type may return the value itself, for example after a check: that is no cycle.
  const container = typeof value === 'object' && value !== written ? value : null
  if (container !== null) enter(walk, container)
  walk.path.push({ tag: tag.name, written })
  const text = write(walk, written, tag)
  walk.path.pop()
  if (container !== null) walk.above.delete(container)
  return `{"$":${JSON.stringify(tag.name)},"v":${text}}`
}

/** Records that the walk is inside an object: the same object below it is a cycle. */
function enter(walk: Walk, object: object): void {
  const back = walk.above.get(object)
  if (back !== undefined) {
    const target = back === 0 ? 'the whole value' : formatPath(walk.path.slice(0, back))
    refuse(walk, `points back to ${target}, and a cycle cannot be written; refer to it by an id`)
  }
  if (walk.above.size >= DEPTH_MAX) refuse(walk, `is nested more than ${DEPTH_MAX} levels deep`)
  walk.above.set(object, walk.path.length)
}

function isOfType(walk: Walk, tag: Tag, value: unknown): boolean {
  try {
    return tag.is(value)
  } catch (error) {
    return refuse(walk, `made the type ${JSON.stringify(tag.name)} throw in is(): ${reason(error)}`, error)
  }
}

function callWrite(walk: Walk, tag: Tag, value: unknown): unknown {
  try {
    return tag.write(value)
  } catch (error) {
    return refuse(walk, `could not be written as ${JSON.stringify(tag.name)}: ${reason(error)}`, error)
  }
}

/** The built-in type of an object, by its exact class: a subclass would be read back as another class. Errors may be any. */
function builtInName(walk: Walk, value: object): string | undefined {
  const printed = Object.prototype.toString.call(value).slice(8, -1)
  const name = printed.startsWith('Temporal.') ? printed : isFakeDate(value) ? 'Date' : className(value)
  const candidate = name === 'Buffer' ? 'Uint8Array' : name
  if (walk.rules.known.get(candidate)?.is(value) !== true) return isError(value) ? 'Error' : undefined
  const extra = LISTS_NOTHING.has(candidate) ? Object.keys(value)[0] : undefined
  if (extra !== undefined) refuse(walk, `is a ${name} with a property of its own, ${show(extra)}, which would be lost`)
  return candidate
}

/**
 * The Date of fake timers (@sinonjs/fake-timers, which Jest and Vitest use) is a subclass of Date whose values have a hidden
 * `constructor` of their own: Date itself.
 */
function isFakeDate(value: object): boolean {
  const own = Object.getOwnPropertyDescriptor(value, 'constructor')
  return (
    own?.enumerable === false && typeof own.value === 'function' && (own.value as { name: unknown }).name === 'Date'
  )
}

/** Built-in types whose values have no enumerable properties, unless the user added one. */
const LISTS_NOTHING: ReadonlySet<string> = new Set(['Date', 'Map', 'Set', 'URL', 'RegExp'])

/** Of this realm or another: Array.prototype of every realm is itself an array, and the prototype of a subclass is not. */
function isArray(value: object): value is readonly unknown[] {
  return Array.isArray(value) && Array.isArray(Object.getPrototypeOf(value))
}

/** No prototype, or Object.prototype of some realm: it has no prototype itself and has `isPrototypeOf`. */
function isRecord(value: object): boolean {
  const prototype: object | null = Object.getPrototypeOf(value)
  if (prototype === null || prototype === Object.prototype) return true
  return Object.getPrototypeOf(prototype) === null && Object.hasOwn(prototype, 'isPrototypeOf')
}

function numberName(value: number): string {
  return Object.is(value, -0) ? '-0' : String(value)
}

function refuse(walk: Walk, why: string, cause?: unknown): never {
  throw codecError(formatPath(walk.path), why, cause === undefined ? undefined : { cause })
}
