import { printTerm } from './print.js'
import { KINDS, QUALIFIERS, STATES } from './qualifiers.js'
import type { Qualifier } from './qualifiers.js'

/** Values that are known without counting, by qualifier; paths by `payload`, `result`, `meta`, `captured`. */
export interface KnownValues {
  readonly values: Readonly<Record<string, readonly string[]>>
  readonly paths: Readonly<Record<string, readonly string[]>>
}

export interface Completed {
  readonly from: number
  readonly to: number
  readonly options: readonly { readonly insert: string; readonly label: string; readonly hint: string }[]
}

const OPTIONS_MAX = 30
const TIMES = ['15m', '1h', '24h', '7d', 'today', 'yesterday', 'deploy']

/** What could follow at the caret: qualifiers with an example each, then values. */
export function completeSearch(text: string, caret: number, known: KnownValues): Completed {
  const from = wordStart(text, caret)
  const given = text.slice(from, caret)
  const sign = given.startsWith('-') ? '-' : ''
  const word = given.slice(sign.length)
  const colon = word.indexOf(':')
  const options = colon < 0 ? qualifiersFor(word, known) : valuesFor(word.slice(0, colon), word.slice(colon + 1), known)
  const listed = options.slice(0, OPTIONS_MAX).map((each) => ({ ...each, insert: sign + each.insert }))
  return { from, to: caret, options: listed }
}

/** The term at the caret begins after the last space that is not in quotes. */
function wordStart(text: string, caret: number): number {
  let [start, isQuoted] = [0, false]
  for (let at = 0; at < caret; at += 1) {
    if (text[at] === '\\') at += 1
    else if (text[at] === '"') isQuoted = !isQuoted
    else if (!isQuoted && /\s/.test(text[at] ?? '')) start = at + 1
  }
  return start
}

type Option = Completed['options'][number]

function qualifiersFor(word: string, known: KnownValues): Option[] {
  const dot = word.search(/[.[]/)
  if (dot < 0)
    return QUALIFIERS.filter(({ name }) => name.startsWith(word.toLowerCase())).map(
      ({ name, hasPath, example, hint }) => ({
        insert: hasPath === true ? `${name}.` : `${name}:`,
        label: example,
        hint,
      }),
    )
  const name = word.slice(0, dot)
  const paths = Object.hasOwn(known.paths, name) ? (known.paths[name] ?? []) : []
  return paths
    .map((path) => `${name}${path.startsWith('[') ? '' : '.'}${path}`)
    .filter((path) => path.startsWith(word))
    .map((path) => ({ insert: `${path}:`, label: path, hint: 'of the newest jobs' }))
}

function valuesFor(name: string, given: string, known: KnownValues): Option[] {
  const qualifier = QUALIFIERS.find((each) => each.name === name)
  const comma = given.lastIndexOf(',') + 1
  const [before, last] = [given.slice(0, comma), given.slice(comma).replace(/^"/, '').toLowerCase()]
  const values = qualifier === undefined ? [] : valuesOf(qualifier, known)
  return values
    .filter((value) => value.toLowerCase().includes(last))
    .toSorted((a, b) => Number(b.toLowerCase().startsWith(last)) - Number(a.toLowerCase().startsWith(last)))
    .map((value) => ({ insert: `${name}:${before}${valueText(value)} `, label: value, hint: qualifier?.hint ?? '' }))
}

function valuesOf({ of, name }: Qualifier, known: KnownValues): readonly string[] {
  if (of === 'state') return STATES
  if (of === 'is') return KINDS
  if (of === 'time') return TIMES
  return Object.hasOwn(known.values, name) ? (known.values[name] ?? []) : []
}

function valueText(text: string): string {
  const value = { text, quoted: false, prefix: false, from: 0, to: 0 }
  return printTerm({ negated: false, name: 'x', path: [], operator: undefined, values: [value], from: 0, to: 0 }).slice(
    2,
  )
}
