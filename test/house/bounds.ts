import { shipped } from './source.js'
import type { Breach, House, Rule, Source } from './source.js'
import { isPunct, isWord } from './scan.js'
import type { Token } from './scan.js'

const CASES = 'test/bounds/'
const UNTESTED = 'test/bounds/untested.ts'
/** Rooms whose bounds have tests of their own: the reactive core is used without a store, and the simulator is no product. */
const OTHER_ROOMS = [
  'src/reactive/',
  'src/testing/simulation/',
  'src/testing/checkers/',
  'src/testing/postgres/',
  'src/cli/',
  // What the browser runs has no input from outside but frames, which the server bounds.
  'src/dashboard/web/',
]
const NAME = /^[A-Z][A-Z0-9]*(_[A-Z0-9]+)*$/
const BOUND = /^src\/.*#[A-Z0-9_]+$/
/** Smaller numbers in code are mostly indexes and the sizes of tuples. */
const ANONYMOUS_MIN = 10

/** A constant that is a number: `export const COUNT_MAX = 10_000`. */
interface NamedNumber {
  readonly file: string
  readonly name: string
  readonly line: number
  /** Undefined when it is computed from something else than numbers and other constants. */
  readonly value: number | undefined
}

/**
 * Every named number of the product has a case in test/bounds/, which runs at n − 1, n and n + 1, or a line with the reason in
 * `untested.ts`; and each case has the value that the source has.
 */
export const boundsAreTested: Rule = (house) => {
  const numbers = namedNumbers(ourRooms(house))
  const found = new Map(numbers.map((each) => [`${each.file}#${each.name}`, each]))
  const cases = house.others.filter(({ path }) => path.startsWith(CASES))
  const tested = mentions(cases.filter(({ path }) => path !== UNTESTED))
  const untested = mentions(cases.filter(({ path }) => path === UNTESTED))
  const known = new Set([...tested, ...untested].map(({ bound }) => bound))
  return [
    ...[...found]
      .filter(([bound]) => !known.has(bound))
      .map(([, { file, name, line }]) => ({
        file,
        line,
        what: `${name} has no case in ${CASES} and no reason in ${UNTESTED}`,
      })),
    ...[...tested, ...untested]
      .filter(({ bound }) => !found.has(bound))
      .map(({ bound, at }) => ({ ...at, what: `${bound} is no number of src` })),
    ...untested
      .filter(({ bound }) => tested.some((each) => each.bound === bound))
      .map(({ bound, at }) => ({ ...at, what: `${bound} has a case` })),
    ...tested.flatMap(({ bound, at, value }) => {
      const source = found.get(bound)?.value
      const isRight = value === undefined || source === undefined || source === value
      return isRight ? [] : [{ ...at, what: `${bound} is ${source}, and its case is at ${value}` }]
    }),
  ]
}

/** A length, a size or a slice is compared with a named number. */
export const boundsAreNamed: Rule = (house) =>
  ourRooms(house).flatMap(({ path, code }) =>
    code.flatMap((token, i): Breach[] => {
      const value = token.kind === 'number' ? Number(token.text.replaceAll('_', '')) : Number.NaN
      if (!(value >= ANONYMOUS_MIN) || !isLimit(code, i)) return []
      return [{ file: path, line: token.line, what: `${token.text} is a limit without a name` }]
    }),
  )

/** `list.length > 20`, `seen.size >= 100`, `text.slice(0, 60)`, `isCount(1, 1_000)`. */
function isLimit(code: readonly Token[], i: number): boolean {
  let before = i - 1
  while (isPunct(code[before], '=') || isPunct(code[before], '<') || isPunct(code[before], '>')) before -= 1
  const isCompared = before < i - 1 && (isWord(code[before], 'length') || isWord(code[before], 'size'))
  const isSecond = isPunct(code[i - 1], ',') && isPunct(code[i - 3], '(') && isPunct(code[i + 1], ')')
  // The date of an ISO text is no limit.
  const isSlice =
    isSecond && code[i - 2]?.text === '0' && isWord(code[i - 4], 'slice') && !isWord(code[i - 8], 'toISOString')
  const isCount = isSecond && isWord(code[i - 4], 'isCount')
  return isCompared || isSlice || isCount
}

function ourRooms(house: House): Source[] {
  return shipped(house).filter(({ path }) => !OTHER_ROOMS.some((room) => path.startsWith(room)))
}

function namedNumbers(sources: readonly Source[]): NamedNumber[] {
  const known = new Map<string, number>()
  const numbers = sources.flatMap(({ path, code }) =>
    code.flatMap((token, i) => {
      if (!isWord(token, 'const') || !NAME.test(code[i + 1]?.text ?? '') || !isPunct(code[i + 2], '=')) return []
      const initial = code.slice(i + 3).filter(({ line }) => line === code[i + 2]?.line)
      if (!isNumeric(initial)) return []
      return [{ file: path, name: code[i + 1]?.text as string, line: token.line, initial }]
    }),
  )
  // Constants are made of others, which may be in a file that is read later.
  for (let rounds = 0; rounds < 3; rounds += 1)
    for (const { name, initial } of numbers) {
      const value = valueOf(initial, known)
      if (value !== undefined) known.set(name, value)
    }
  return numbers.map(({ initial, ...rest }) => ({ ...rest, value: valueOf(initial, known) }))
}

/** Made of numbers, other constants and arithmetic. A `-` or `~` before a name, and a call, are not. */
function isNumeric(tokens: readonly Token[]): boolean {
  if (tokens.length === 0 || !tokens.some(({ kind }) => kind === 'number' || kind === 'word')) return false
  return tokens.every(
    ({ kind, text }) =>
      (kind === 'number' && !text.endsWith('n')) ||
      (kind === 'word' && NAME.test(text) && /_MS$|_BYTES$|_MAX$/.test(text)) ||
      (kind === 'punct' && '+-*/()'.includes(text)),
  )
}

/** A sum of products; undefined for anything else, and for a name that is not known. */
function valueOf(tokens: readonly Token[], known: ReadonlyMap<string, number>): number | undefined {
  let sum = 0
  let product: number | undefined
  let operator = '+'
  let sign = 1
  for (const { kind, text } of tokens) {
    if (kind === 'punct') {
      if (!'+-*'.includes(text)) return undefined
      if (text === '*' && operator === '*') return undefined
      if (text !== '*' && product !== undefined) {
        sum += sign * product
        product = undefined
        sign = text === '-' ? -1 : 1
      }
      operator = text
      continue
    }
    const value = kind === 'number' ? Number(text.replaceAll('_', '')) : known.get(text)
    if (value === undefined || Number.isNaN(value)) return undefined
    product = product === undefined ? value : product * value
    operator = ''
  }
  return product === undefined ? undefined : sum + sign * product
}

interface Mention {
  readonly bound: string
  readonly at: { readonly file: string; readonly line: number }
  /** The value of `at`, where it follows. */
  readonly value: number | undefined
}

/** The constants that the cases name, with the `at:` after them. */
function mentions(sources: readonly Source[]): Mention[] {
  return sources.flatMap(({ path, code }) =>
    code.flatMap(({ kind, text, line }, i) => {
      if (kind !== 'string' || !BOUND.test(text)) return []
      return [{ bound: text, at: { file: path, line }, value: valueAfter(code, i) }]
    }),
  )
}

const UNITS = new Map([['YEAR_MS', 365.25 * 86_400_000]])

function valueAfter(code: readonly Token[], i: number): number | undefined {
  if (!isPunct(code[i + 1], ',') || !isWord(code[i + 2], 'at') || !isPunct(code[i + 3], ':')) return undefined
  const rest = code.slice(i + 4)
  const end = rest.findIndex((token) => isPunct(token, ',') || isPunct(token, '}'))
  return valueOf(rest.slice(0, end), UNITS)
}
