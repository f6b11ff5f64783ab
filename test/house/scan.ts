/**
 * A small scanner of TypeScript text, since the compiler has no API for this. It knows just enough to distinguish code from
 * comments, strings, templates and regular expressions; the house rules then read tokens, never raw text.
 */
export interface Token {
  readonly kind: 'word' | 'number' | 'string' | 'template' | 'regex' | 'punct' | 'comment'
  /** The text as written; of a string or template, the text between the quotes, each `${…}` shortened to `${}`. */
  readonly text: string
  readonly line: number
}

/** Splits source text into tokens. The code inside a template's `${…}` follows the template, between `${` and `}`. */
export function scan(text: string): Token[] {
  const state: Scan = { text, at: 0, line: 1, tokens: [] }
  while (state.at < text.length) scanOne(state)
  return state.tokens
}

/** The tokens that rules about code read: all but comments. */
export function withoutComments(tokens: readonly Token[]): Token[] {
  return tokens.filter((token) => token.kind !== 'comment')
}

/** The index of the token that closes the bracket at `open`, or the end when the text is cut short. */
export function closing(tokens: readonly Token[], open: number): number {
  let depth = 0
  for (let i = open; i < tokens.length; i++) {
    const token = tokens[i] as Token
    if (isOpen(token)) depth++
    else if (isClose(token) && --depth === 0) return i
  }
  return tokens.length
}

export const isPunct = (token: Token | undefined, text: string): boolean =>
  token?.kind === 'punct' && token.text === text
export const isWord = (token: Token | undefined, text: string): boolean => token?.kind === 'word' && token.text === text
export const isOpen = (token: Token): boolean => token.kind === 'punct' && OPENING.has(token.text)
export const isClose = (token: Token): boolean => token.kind === 'punct' && CLOSING.has(token.text)

const OPENING = new Set(['(', '[', '{', '${'])
const CLOSING = new Set([')', ']', '}'])

interface Scan {
  readonly text: string
  at: number
  line: number
  readonly tokens: Token[]
}

const SPACE = /\s+/y
const COMMENT = /\/\/[^\n]*|\/\*[\s\S]*?(?:\*\/|$)/y
const WORD = /[#@]?[\p{ID_Start}$_][\p{ID_Continue}$]*/uy
const NUMBER = /[0-9][\w.]*/y
const STRING = /'(?:[^'\\\n]|\\[\s\S])*'?|"(?:[^"\\\n]|\\[\s\S])*"?/y
const REGEX = /\/(?![*/])(?:[^\\/[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[a-z]*/y
const PUNCT = /=>|\+\+|--|\.\.\.|\?\.(?![0-9])|[\s\S]/uy

function scanOne(state: Scan): void {
  if (take(state, SPACE) !== undefined) return
  const line = state.line
  const add = (kind: Token['kind'], text: string): void => void state.tokens.push({ kind, text, line })
  let found: string | undefined
  if ((found = take(state, COMMENT)) !== undefined) add('comment', found)
  else if (state.text[state.at] === '`') scanTemplate(state)
  else if ((found = take(state, STRING)) !== undefined)
    add('string', found.slice(1, /['"]$/.test(found) ? -1 : undefined))
  else if ((found = take(state, WORD)) !== undefined) add('word', found)
  else if ((found = take(state, NUMBER)) !== undefined) add('number', found)
  else if (regexMayStart(state.tokens) && (found = take(state, REGEX)) !== undefined) add('regex', found)
  else add('punct', take(state, PUNCT) ?? '')
}

function scanTemplate(state: Scan): void {
  const line = state.line
  const place = state.tokens.length
  let value = ''
  state.at++
  while (state.at < state.text.length && state.text[state.at] !== '`') {
    if (state.text.startsWith('${', state.at)) {
      value += '${}'
      scanSubstitution(state)
    } else {
      const taken =
        state.text[state.at] === '\\' ? state.text.slice(state.at, state.at + 2) : (state.text[state.at] as string)
      value += taken
      advance(state, taken)
    }
  }
  state.at++
  state.tokens.splice(place, 0, { kind: 'template', text: value, line })
}

function scanSubstitution(state: Scan): void {
  state.tokens.push({ kind: 'punct', text: '${', line: state.line })
  state.at += 2
  let depth = 1
  while (depth > 0 && state.at < state.text.length) {
    const before = state.tokens.length
    scanOne(state)
    for (const token of state.tokens.slice(before)) {
      if (isPunct(token, '{') || isPunct(token, '${')) depth++
      else if (isPunct(token, '}')) depth--
    }
  }
}

/** `/` divides after a value and starts a regular expression elsewhere; after `<` it closes a JSX element. */
function regexMayStart(tokens: readonly Token[]): boolean {
  const last = tokens.findLast((token) => token.kind !== 'comment')
  if (last === undefined) return true
  if (last.kind === 'word') return BEFORE_VALUE.has(last.text)
  return last.kind === 'punct' && !AFTER_VALUE.has(last.text)
}

const BEFORE_VALUE = new Set('return typeof case in of delete void throw new else do await yield instanceof'.split(' '))
const AFTER_VALUE = new Set([')', ']', '}', '++', '--', '<'])

function take(state: Scan, pattern: RegExp): string | undefined {
  pattern.lastIndex = state.at
  const found = pattern.exec(state.text)?.[0]
  if (found !== undefined) advance(state, found)
  return found
}

function advance(state: Scan, taken: string): void {
  state.at += taken.length
  for (const character of taken) if (character === '\n') state.line++
}
