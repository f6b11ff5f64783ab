import { dirname } from 'node:path'
import { closing, isPunct, isWord } from './scan.js'
import type { Token } from './scan.js'
import { shipped } from './source.js'
import type { Breach, Rule, Source } from './source.js'

const FOLDER_FILES_MAX = 25
const FUNCTION_LINES_MAX = 60
/** How far below its ceiling a listed size may fall before the ceiling must be lowered. */
const SLACK = 20

/** Known large folders and functions with the size they may have: it may only shrink. The key is a folder, or `path#function`. */
export type Ceilings = Readonly<Record<string, number>>

/** A long list of files no longer shows the architecture. Files may be long: splitting one only for its length scatters one idea. */
export const foldersAreSmall =
  (ceilings: Ceilings): Rule =>
  (house) =>
    judge(foldersOf(shipped(house)), FOLDER_FILES_MAX, ceilings)

export const functionsAreShort =
  (ceilings: Ceilings): Rule =>
  (house) =>
    judge(shipped(house).flatMap(functionsOf), FUNCTION_LINES_MAX, ceilings)

interface Measured {
  readonly key: string
  readonly file: string
  readonly line: number
  readonly size: number
  readonly unit: 'lines' | 'files'
}

function judge(measured: readonly Measured[], max: number, ceilings: Ceilings): Breach[] {
  const longest = new Map<string, Measured>()
  for (const each of measured) if (each.size > (longest.get(each.key)?.size ?? 0)) longest.set(each.key, each)
  const gone = Object.keys(ceilings).filter((key) => !longest.has(key))
  return [
    ...gone.map((key) => ({ file: key, line: 1, what: 'is no longer there: take it off the ratchet list' })),
    ...[...longest.values()].flatMap((each) => judgeOne(each, max, ceilings[each.key])),
  ]
}

function judgeOne({ key, file, line, size, unit }: Measured, max: number, ceiling: number | undefined): Breach[] {
  const told = (what: string): Breach[] => [
    { file, line, what: `${key === file ? '' : `${key.slice(file.length + 1)}: `}${size} ${unit}${what}` },
  ]
  if (ceiling === undefined) return size > max ? told(`, and ${max} is the limit: look for the second idea inside`) : []
  if (size > ceiling) return told(`, and its ceiling is ${ceiling}: a listed size may only shrink`)
  if (size <= max) return told(`, within ${max}: take it off the ratchet list`)
  if (size < ceiling - SLACK) return told(`, well under its ceiling of ${ceiling}: lower the ceiling to ${size}`)
  return []
}

function foldersOf(sources: readonly Source[]): Measured[] {
  const sizes = new Map<string, number>()
  for (const { path } of sources) sizes.set(dirname(path), (sizes.get(dirname(path)) ?? 0) + 1)
  return [...sizes].map(([folder, size]) => ({ key: folder, file: folder, line: 1, size, unit: 'files' }))
}

/** Every function with a body: where it starts, its name if it has one, and how many lines it spans. */
export function functionsOf(source: Source): Measured[] {
  const tokens = source.code
  return tokens.flatMap((token, at): Measured[] => {
    if (!isPunct(token, '{')) return []
    const head = headOf(tokens, at)
    if (head === undefined) return []
    const line = (tokens[head.at] as Token).line
    const end = tokens[closing(tokens, at)]?.line ?? line
    return [{ key: `${source.path}#${head.name}`, file: source.path, line, size: end - line + 1, unit: 'lines' }]
  })
}

interface Head {
  readonly at: number
  readonly name: string
}

/** Walks back from a `{`: over a return type or an arrow, to the parameters, to the name. Undefined for any other block. */
function headOf(tokens: readonly Token[], brace: number): Head | undefined {
  const arrow = isPunct(tokens[brace - 1], '=>')
  if (arrow && tokens[brace - 2]?.kind === 'word' && !isTypeEnd(tokens, brace - 2))
    return { at: brace - 2, name: arrowName(tokens, brace - 2) }
  const close = parametersEnd(tokens, arrow ? brace - 2 : brace - 1)
  const open = close === undefined ? undefined : openingOf(tokens, close)
  if (open === undefined) return undefined
  const before = beforeGenerics(tokens, open - 1)
  const name = tokens[before]
  if (arrow) return { at: open, name: arrowName(tokens, before + 1) }
  if (name?.kind === 'string') return { at: before, name: name.text }
  if (isPunct(name, ']')) return { at: before, name: 'computed' }
  if (isPunct(name, '*') && isWord(tokens[before - 1], 'function')) return { at: before, name: 'generator' }
  if (name?.kind !== 'word' || NOT_FUNCTIONS.has(name.text)) return undefined
  return { at: before, name: name.text }
}

const NOT_FUNCTIONS = new Set(['if', 'for', 'while', 'switch', 'catch', 'with', 'await', 'return', 'typeof', 'new'])

/** `): T => {` and `): { a: B } {`: the index of the `)` that closes the parameters, when a type comes after it. */
function parametersEnd(tokens: readonly Token[], from: number): number | undefined {
  if (isPunct(tokens[from], ')') && !isTypeEnd(tokens, from)) return from
  for (let i = from; i > 0; i--) {
    const token = tokens[i] as Token
    if (isPunct(token, ':')) return isPunct(tokens[i - 1], ')') ? i - 1 : undefined
    if (isPunct(token, '}') || isPunct(token, ']') || isPunct(token, ')')) {
      const open = openingOf(tokens, i)
      if (open === undefined || (isPunct(token, '}') && !mayPrecedeType(tokens[open - 1]))) return undefined
      i = open
    } else if (!isTypeToken(token)) return undefined
  }
  return undefined
}

/** A `)` or word that ends a return type rather than the parameters: what is before its opening is `:` after a `)`. */
function isTypeEnd(tokens: readonly Token[], at: number): boolean {
  const start = isPunct(tokens[at], ')') ? (openingOf(tokens, at) ?? at) : at
  return isPunct(tokens[start - 1], ':') && isPunct(tokens[start - 2], ')')
}

const TYPE_PUNCTUATION = new Set(['<', '>', '|', '&', ',', '.', '=>'])

/** Words that begin a statement or a declaration: a walk back through a type ends at one. */
const NOT_IN_TYPES = new Set(
  'abstract async await case class const default do else enum export finally for from function if implements import interface let return static throw try var while yield'.split(
    ' ',
  ),
)

const mayPrecedeType = (token: Token | undefined): boolean =>
  token?.kind === 'punct' && /^([:|&<,(=]|=>)$/.test(token.text)

function isTypeToken(token: Token): boolean {
  if (token.kind === 'word') return !NOT_IN_TYPES.has(token.text)
  return token.kind === 'string' || token.kind === 'number' || TYPE_PUNCTUATION.has(token.text)
}

function openingOf(tokens: readonly Token[], close: number): number | undefined {
  let depth = 0
  for (let i = close; i >= 0; i--) {
    const text = tokens[i]?.kind === 'punct' ? tokens[i]?.text : ''
    if (text === ')' || text === ']' || text === '}') depth++
    else if ((text === '(' || text === '[' || text === '{' || text === '${') && --depth === 0) return i
  }
  return undefined
}

function beforeGenerics(tokens: readonly Token[], at: number): number {
  if (!isPunct(tokens[at], '>')) return at
  let depth = 0
  for (let i = at; i >= 0; i--) {
    if (isPunct(tokens[i], '>')) depth++
    else if (isPunct(tokens[i], '<') && --depth === 0) return i - 1
  }
  return at
}

/** `const name = async (…) => {` and `name: (…) => {`; a callback has none. */
function arrowName(tokens: readonly Token[], start: number): string {
  const at = tokens[start - 1]?.text === 'async' ? start - 2 : start - 1
  const named = isPunct(tokens[at], '=') || isPunct(tokens[at], ':')
  const name = tokens[at - 1]
  return named && name?.kind === 'word' ? name.text : 'callback'
}
