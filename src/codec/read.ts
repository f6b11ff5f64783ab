import { codecError, formatPath, type Segment } from './path.js'
import { DEPTH_MAX } from './limits.js'
import { didYouMean } from './near-name.js'
import { isMarkKey } from './plain.js'
import type { Rules } from './rules.js'
import { reason, show, showText } from './show.js'

/**
 * Turns the tags of a parsed text into values, in place and from the inside out. Paths refer to the stored text, with its
 * `v` keys, because that is what a person finds in the database.
 */
export function readTags(parsed: unknown, rules: Rules): unknown {
  return read({ rules, path: [] }, parsed)
}

interface Walk {
  readonly rules: Rules
  readonly path: Segment[]
}

function read(walk: Walk, value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  // Twice the limit for writing, so that the braces of tags at the limit do not count.
  if (walk.path.length > 2 * DEPTH_MAX) return fail(walk, `is nested more than ${2 * DEPTH_MAX} levels deep`)
  if (Array.isArray(value)) return readArray(walk, value)
  return Object.hasOwn(value, '$') ? readTag(walk, value as Fields) : readRecord(walk, value as Fields)
}

function readArray(walk: Walk, array: unknown[]): unknown[] {
  for (let at = 0; at < array.length; at++) array[at] = readPart(walk, at, array[at])
  return array
}

function readRecord(walk: Walk, record: Fields): Fields {
  let isEscaped = false
  for (const key of Object.keys(record)) {
    // The key is an own property, so the assignment calls no setter, whatever the key: `__proto__` too.
    record[key] = readPart(walk, key, record[key])
    isEscaped ||= isMarkKey(key)
  }
  if (!isEscaped) return record
  // fromEntries defines own properties and keeps their order.
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [isMarkKey(key) ? key.slice(1) : key, value]))
}

function readTag(walk: Walk, record: Fields): unknown {
  const name = record['$']
  const extra = Object.keys(record).find((key) => key !== '$' && key !== 'v')
  if (name === 'encrypted' && typeof record['key'] === 'string')
    return fail(walk, `is encrypted with key ${showText(record['key'])}, and this mill has no encryption keys`)
  if (typeof name !== 'string' || extra !== undefined) {
    const what = extra === undefined ? `"$" is ${show(name)}` : `it also has ${showText(extra)}`
    return fail(
      walk,
      `has the key "$", which marks a tag, but is none: ${what}; a key that is really "$" is written "$$"`,
    )
  }
  const tag = walk.rules.readable.get(name)
  if (tag === undefined) {
    const hint = didYouMean(name, [...walk.rules.readable.keys()])
    return fail(walk, `has the tag ${showText(name)}, which this codec does not know${hint}`)
  }
  const written = readPart(walk, 'v', record['v'])
  try {
    return tag.read(written)
  } catch (error) {
    return fail(walk, `cannot be read as ${showText(name)}: ${reason(error)}`, error)
  }
}

function readPart(walk: Walk, key: string | number, part: unknown): unknown {
  if (typeof part !== 'object' || part === null) return part
  walk.path.push(key)
  const value = read(walk, part)
  walk.path.pop()
  return value
}

type Fields = Record<string, unknown>

function fail(walk: Walk, why: string, cause?: unknown): never {
  throw codecError(formatPath(walk.path), why, cause === undefined ? undefined : { cause })
}
