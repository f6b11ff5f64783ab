/** One value of a term. */
export interface Value {
  readonly text: string
  /** It was in quotes: a text, also when it reads like a number. */
  readonly quoted: boolean
  /** It ended with `*`. */
  readonly prefix: boolean
  readonly from: number
  readonly to: number
}

export type Step = string | number
export type Operator = '>' | '<' | '>=' | '<='

/** One term, and where it is in the text. */
export interface Term {
  readonly negated: boolean
  /** Undefined: a word. */
  readonly name: string | undefined
  readonly path: readonly Step[]
  readonly operator: Operator | undefined
  readonly values: readonly Value[]
  readonly from: number
  readonly to: number
}

/** What is wrong with a search, where, and what to try. */
export interface SearchProblem {
  readonly text: string
  readonly hint: string | null
  readonly from: number
  readonly to: number
}

export type Parsed =
  | { readonly ok: true; readonly terms: readonly Term[] }
  | { readonly ok: false; readonly problem: SearchProblem }

/** Characters of a search. */
export const SEARCH_MAX = 1_000
const TERMS_MAX = 30
const STEPS_MAX = 8
const VALUES_MAX = 50

/** The terms of a text, or the first problem. Which qualifiers there are is checked by `checkSearch`. */
export function parseSearch(text: string): Parsed {
  if (text.length > SEARCH_MAX)
    return problem(
      `A search has at most ${SEARCH_MAX} characters, this one has ${text.length}.`,
      null,
      SEARCH_MAX,
      text.length,
    )
  const reader = new Reader(text)
  const terms: Term[] = []
  try {
    for (reader.skipSpaces(); !reader.isAtEnd(); reader.skipSpaces()) {
      terms.push(readTerm(reader))
      if (terms.length > TERMS_MAX) reader.refuse(`A search has at most ${TERMS_MAX} terms.`, null, terms.at(-1)?.from)
    }
  } catch (error) {
    if (error instanceof Refused) return { ok: false, problem: error.problem }
    throw error
  }
  return { ok: true, terms }
}

function problem(text: string, hint: string | null, from: number, to: number): Parsed {
  return { ok: false, problem: { text, hint, from, to } }
}

class Refused extends Error {
  readonly problem: SearchProblem
  constructor(found: SearchProblem) {
    super(found.text)
    this.problem = found
  }
}

class Reader {
  readonly text: string
  at = 0

  constructor(text: string) {
    this.text = text
  }
  get next(): string {
    return this.text[this.at] ?? ''
  }
  isAtEnd(): boolean {
    return this.at >= this.text.length
  }
  skipSpaces(): void {
    while (isSpace(this.next)) this.at += 1
  }
  takes(character: string): boolean {
    if (this.next !== character || character === '') return false
    this.at += 1
    return true
  }
  takeWhile(test: (character: string) => boolean): string {
    const from = this.at
    while (!this.isAtEnd() && test(this.next)) this.at += 1
    return this.text.slice(from, this.at)
  }
  refuse(text: string, hint: string | null, from: number = this.at): never {
    throw new Refused({ text, hint, from, to: Math.max(from + 1, this.at) })
  }
}

const isSpace = (character: string): boolean => character !== '' && /\s/.test(character)
const isLetter = (character: string): boolean => /[a-zA-Z]/.test(character)
const isIdent = (character: string): boolean => /[\p{L}\p{N}_$-]/u.test(character)

function readTerm(reader: Reader): Term {
  const from = reader.at
  const negated = reader.takes('-')
  if (negated && (reader.isAtEnd() || isSpace(reader.next))) reader.refuse('A term follows the minus.', null, from)
  const qualifier = readQualifier(reader)
  if (qualifier === undefined) {
    const word = readValue(reader, isSpace)
    return { negated, name: undefined, path: [], operator: undefined, values: [word], from, to: reader.at }
  }
  const operator = readOperator(reader)
  const values = [readValue(reader, endsListed)]
  while (reader.takes(',')) {
    values.push(readValue(reader, endsListed))
    if (values.length > VALUES_MAX) reader.refuse(`A list has at most ${VALUES_MAX} values.`, null, from)
  }
  return { negated, ...qualifier, operator, values, from, to: reader.at }
}

const endsListed = (character: string): boolean => character === ',' || isSpace(character)

/** `name.step[0]."odd key":`; undefined, with nothing read, when what follows is a word. */
function readQualifier(reader: Reader): { readonly name: string; readonly path: readonly Step[] } | undefined {
  const from = reader.at
  const name = reader.takeWhile(isLetter)
  const path: Step[] = []
  for (;;) {
    const step = name === '' ? undefined : readStep(reader)
    if (step === undefined) break
    path.push(step)
    if (path.length > STEPS_MAX) reader.refuse(`A path has at most ${STEPS_MAX} steps.`, null, from)
  }
  if (name !== '' && reader.takes(':')) return { name, path }
  reader.at = from
  return undefined
}

function readStep(reader: Reader): Step | undefined {
  const from = reader.at
  if (reader.takes('[')) {
    const digits = reader.takeWhile((character) => /\d/.test(character))
    if (/^\d{1,9}$/.test(digits) && reader.takes(']')) return Number(digits)
  } else if (reader.takes('.')) {
    if (reader.next === '"') return readQuoted(reader)
    const name = reader.takeWhile(isIdent)
    if (name !== '') return name
  }
  reader.at = from
  return undefined
}

function readOperator(reader: Reader): Operator | undefined {
  if (reader.takes('>')) return reader.takes('=') ? '>=' : '>'
  if (reader.takes('<')) return reader.takes('=') ? '<=' : '<'
  return undefined
}

function readValue(reader: Reader, isEnd: (character: string) => boolean): Value {
  const from = reader.at
  if (reader.next === '"') {
    const text = readQuoted(reader)
    if (!reader.isAtEnd() && !isEnd(reader.next)) reader.refuse('A space follows the closing quote.', null)
    return { text, quoted: true, prefix: false, from, to: reader.at }
  }
  let text = ''
  while (!reader.isAtEnd() && !isEnd(reader.next)) {
    if (reader.next === '\\' && /["\\]/.test(reader.text[reader.at + 1] ?? '')) reader.at += 1
    text += reader.next
    reader.at += 1
  }
  if (text === '') reader.refuse('A value is missing here.', null, from)
  const prefix = text.length > 1 && text.endsWith('*')
  return { text: prefix ? text.slice(0, -1) : text, quoted: false, prefix, from, to: reader.at }
}

function readQuoted(reader: Reader): string {
  const from = reader.at
  reader.at += 1
  let text = ''
  for (; !reader.isAtEnd(); reader.at += 1) {
    if (reader.takes('"')) return text
    if (reader.next === '\\' && /["\\]/.test(reader.text[reader.at + 1] ?? '')) reader.at += 1
    text += reader.next
  }
  return reader.refuse('This quote is not closed.', 'Add a closing quote.', from)
}
