import { InvalidOptionsError, type Problem } from '../errors.js'
import { didYouMean } from './near-name.js'
import { formatPath } from './path.js'
import { isOptionsObject } from './options-object.js'
import { show } from './show.js'
import { type CodecType } from './tags.js'
import { type TemporalNamespace, type TemporalTag, temporalTagNames } from './temporal-tags.js'

const BASIC_TAGS = [
  'Date',
  'BigInt',
  'Map',
  'Set',
  'URL',
  'Uint8Array',
  'Error',
  'undefined',
  'NaN',
  'Infinity',
  '-Infinity',
  '-0',
] as const

/** The names of the types that every codec writes by default. RegExp is not among them: it is off by default. */
export type BuiltInTag = (typeof BASIC_TAGS)[number] | TemporalTag

/** How a codec differs from the default one. `Types` maps the names of registered types to their values. */
export interface CodecOptions<Types extends object = Record<string, unknown>> {
  /** Types of the user, by the name that marks them in the text. They are tried before the built-in ones. Default: none. */
  readonly types?: { readonly [Name in keyof Types]: CodecType<Types[Name]> }
  /** Built-in types to exclude: such values are refused and such tags are unknown. Default: none. */
  readonly without?: readonly BuiltInTag[]
  /** Whether RegExp is written and read. A hostile pattern can stall its reader. Default: false. */
  readonly regExp?: boolean
  /** The Temporal namespace to write and read with. Default: `globalThis.Temporal`, where the runtime has it. */
  readonly temporal?: TemporalNamespace
  /** Replaces encoding; requires `decode` and excludes the options above. Default: tagged JSON. */
  readonly encode?: (value: unknown) => string | Uint8Array
  /** Replaces decoding; requires `encode`. It gets what the store kept: what `encode` returned. */
  readonly decode?: (text: string | Uint8Array) => unknown
}

/** Throws one error that lists all problems of a codec's options. */
export function checkCodecOptions(options: unknown): void {
  if (options === undefined) return
  if (!isObject(options) || !isOptionsObject(options))
    throw new InvalidOptionsError('codec', [problem('', `options must be an object, got ${show(options)}`)])
  const problems = [
    ...unknownNames(options, OPTION_NAMES, '', 'is no option of a codec'),
    ...typesProblems(options),
    ...withoutProblems(options['without']),
    ...switchProblems(options),
    ...replacementProblems(options),
  ]
  if (problems.length > 0) throw new InvalidOptionsError('codec', problems)
}

const OPTION_NAMES = ['types', 'without', 'regExp', 'temporal', 'encode', 'decode'] satisfies (keyof CodecOptions)[]
const TYPE_PARTS = ['is', 'write', 'read'] satisfies (keyof CodecType)[]
const TAG_NAMES: readonly string[] = [...BASIC_TAGS, ...temporalTagNames]

function typesProblems(options: Fields): Problem[] {
  const types = options['types']
  if (types === undefined) return []
  if (!isObject(types) || !isOptionsObject(types)) {
    return [problem('types', `must be an object of { is, write, read } by name, got ${show(types)}`)]
  }
  return Object.entries(types).flatMap(([name, type]) => {
    const path = formatPath(['types', name])
    if (name === '') return [problem(path, 'has no name; the name is what marks the type in the text')]
    if (!isObject(type)) return [problem(path, `must be { is, write, read }, got ${show(type)}`)]
    return [...takenName(name, path, options), ...typeProblems(type, path)]
  })
}

/** One name cannot mean two types in the same text. */
function takenName(name: string, path: string, options: Fields): Problem[] {
  const without: unknown = options['without']
  const isOn = TAG_NAMES.includes(name) && !(Array.isArray(without) && without.includes(name))
  if (isOn)
    return [
      problem(path, `is the name of a built-in type; leave that one out with without: ["${name}"] or choose another`),
    ]
  const isRegExp = name === 'RegExp' && options['regExp'] === true
  return isRegExp ? [problem(path, 'is switched on as the built-in one by regExp: true; choose one of the two')] : []
}

function typeProblems(type: Fields, path: string): Problem[] {
  const missing = TYPE_PARTS.filter((part) => typeof type[part] !== 'function')
  return [
    ...missing.map((part) => problem(`${path}.${part}`, `must be a function, got ${show(type[part])}`)),
    ...unknownNames(type, TYPE_PARTS, `${path}.`, 'is no part of a type, which has is, write and read'),
  ]
}

function withoutProblems(without: unknown): Problem[] {
  if (without === undefined) return []
  if (!Array.isArray(without)) return [problem('without', `must be a list of built-in types, got ${show(without)}`)]
  return without.flatMap((name: unknown, index) => {
    if (typeof name === 'string' && TAG_NAMES.includes(name)) return []
    const hint = typeof name === 'string' ? didYouMean(name, TAG_NAMES) : ''
    return [problem(`without[${index}]`, `must be the name of a built-in type, got ${show(name)}${hint}`)]
  })
}

function switchProblems(options: Fields): Problem[] {
  const { regExp, temporal } = options
  const problems: Problem[] = []
  if (regExp !== undefined && typeof regExp !== 'boolean')
    problems.push(problem('regExp', `must be true or false, got ${show(regExp)}`))
  if (temporal !== undefined && !isObject(temporal)) {
    problems.push(problem('temporal', `must be the Temporal namespace, got ${show(temporal)}`))
  }
  return problems
}

function replacementProblems(options: Fields): Problem[] {
  const given = (['encode', 'decode'] as const).filter((name) => options[name] !== undefined)
  if (given.length === 0) return []
  const problems = given
    .filter((name) => typeof options[name] !== 'function')
    .map((name) => problem(name, `must be a function, got ${show(options[name])}`))
  if (given.length === 1) {
    problems.push(
      problem(given[0] === 'encode' ? 'decode' : 'encode', `is missing; encode and decode are replaced together`),
    )
  }
  const idle = (['types', 'without', 'regExp', 'temporal'] as const).filter((name) => options[name] !== undefined)
  return [
    ...problems,
    ...idle.map((name) => problem(name, 'has no effect when encode and decode are replaced; leave it out')),
  ]
}

function unknownNames(given: Fields, known: readonly string[], prefix: string, saying: string): Problem[] {
  const unknown = Object.keys(given).filter((name) => !known.includes(name))
  return unknown.map((name) => problem(prefix + formatPath([name]), saying + didYouMean(name, known)))
}

type Fields = Readonly<Record<string, unknown>>

const isObject = (value: unknown): value is Fields => typeof value === 'object' && value !== null

const problem = (path: string, message: string): Problem => ({ path, message })
