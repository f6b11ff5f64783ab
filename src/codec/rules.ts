import { basicTags, regExpTag, type Tag, tagOf } from './tags.js'
import type { CodecOptions } from './options.js'
import { temporalTags } from './temporal-tags.js'

/** What one codec writes and reads; created once from its options and never changed. */
export interface Rules {
  /** The registered types, in the order they were given. */
  readonly custom: readonly Tag[]
  /** The built-in types that are on. */
  readonly builtIn: ReadonlyMap<string, Tag>
  /** Every built-in type, also the excluded ones, to describe a refused value. */
  readonly known: ReadonlyMap<string, Tag>
  /** The closed list of names that a text may use. A Map, so that `constructor` is a name like any other. */
  readonly readable: ReadonlyMap<string, Tag>
}

export function rulesOf(options: CodecOptions): Rules {
  const custom = Object.entries(options.types ?? {}).map(([name, type]) => tagOf(name, type))
  const known = [...basicTags, ...temporalTags(options.temporal), ...(options.regExp === true ? [regExpTag] : [])]
  const without = new Set<string>(options.without)
  const builtIn = known.filter((tag) => !without.has(tag.name))
  return { custom, builtIn: byName(builtIn), known: byName(known), readable: byName([...builtIn, ...custom]) }
}

const byName = (tags: readonly Tag[]): ReadonlyMap<string, Tag> => new Map(tags.map((tag) => [tag.name, tag]))
