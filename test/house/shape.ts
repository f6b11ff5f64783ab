import { basename } from 'node:path'
import { closing, isClose, isOpen, isPunct, isWord } from './scan.js'
import type { Token } from './scan.js'
import { shipped } from './source.js'
import type { Breach, House, Rule, Source } from './source.js'

/** Exports are listed by hand and named; nothing is public by accident. */
export const exportsAreListed: Rule = (house) =>
  eachToken(house, (tokens, at) => {
    if (!isWord(tokens[at], 'export') || isPunct(tokens[at - 1], '.')) return undefined
    const typed = isWord(tokens[at + 1], 'type') ? 1 : 0
    if (isPunct(tokens[at + 1 + typed], '*')) return '`export *`: list the names'
    if (isWord(tokens[at + 1], 'default')) return '`export default`: give it a name'
    if (isPunct(tokens[at + 1 + typed], '{') && defaultInside(tokens, at + 1 + typed))
      return '`as default`: give it a name'
    return undefined
  })

/** An `index.ts` is a list of names: imports and `export { … }`, no code. */
export const indexFilesOnlyList: Rule = (house) =>
  shipped(house)
    .filter(({ path }) => basename(path) === 'index.ts')
    .flatMap((source) =>
      topLevel(source.code).flatMap((at): Breach[] => {
        const token = source.code[at] as Token
        const starts = startsStatement(source.code, at)
        if (!starts || isWord(token, 'import') || isListing(source.code, at)) return []
        return [
          {
            file: source.path,
            line: token.line,
            what: `declares something (${token.text} …); an index only lists names`,
          },
        ]
      }),
    )

/** Names say what something is: no `utils`, no `Impl`, `Base…` or `I…`. */
export const namesAreHonest: Rule = (house) => [
  ...house.paths.flatMap(fileNameBreaches),
  ...eachToken(house, (tokens, at) => {
    const token = tokens[at]
    const name = tokens[at + 1]
    if (token?.kind !== 'word' || name?.kind !== 'word') return undefined
    if (token.text === 'class' && /Impl$|^Base[A-Z]|^Abstract[A-Z]/.test(name.text))
      return `class ${name.text}: name it for what it is`
    if (/^(class|interface|type)$/.test(token.text) && /^I[A-Z][a-z]/.test(name.text))
      return `${token.text} ${name.text}: no I prefix`
    return undefined
  }),
]

/** Two mills in one process must be independent of each other. */
export const noModuleState: Rule = (house) =>
  shipped(house)
    .filter(({ path }) => !path.startsWith('src/world/'))
    .flatMap((source) =>
      topLevel(source.code).flatMap((at): Breach[] => {
        const what = stateAt(source.code, at)
        return what === undefined ? [] : [{ file: source.path, line: (source.code[at] as Token).line, what }]
      }),
    )

/** A `catch` does something, or a comment says why ignoring the error is right. */
export const noEmptyCatch: Rule = (house) =>
  house.sources.flatMap((source) =>
    source.tokens.flatMap((token, at): Breach[] =>
      isWord(token, 'catch') && catchIsEmpty(source.tokens, at)
        ? [
            {
              file: source.path,
              line: token.line,
              what: 'an empty catch: handle it, or say in a comment why ignoring is right',
            },
          ]
        : [],
    ),
  )

function fileNameBreaches(path: string): Breach[] {
  return path.split('/').flatMap((part, i, parts): Breach[] => {
    const isFile = i === parts.length - 1
    const stem = isFile ? part.replace(/(\.(test|test-d|bench|d))?\.[a-z]+$/, '') : part
    if (/^(utils?|helpers?|common|misc)$/.test(stem))
      return [{ file: path, line: 1, what: `«${stem}» is a drawer; name the idea` }]
    if (!/^[a-z0-9]+(-[a-z0-9]+)*$/.test(stem)) return [{ file: path, line: 1, what: `«${part}» is not kebab-case` }]
    return []
  })
}

function stateAt(tokens: readonly Token[], at: number): string | undefined {
  const token = tokens[at]
  if (isWord(token, 'declare')) return undefined
  if ((isWord(token, 'let') || isWord(token, 'var')) && startsDeclaration(tokens, at)) {
    return `\`${token?.text} ${tokens[at + 1]?.text}\` is module-level state; keep it on an instance`
  }
  const made =
    isWord(token, 'new') && /^(Weak)?(Map|Set)$/.test(tokens[at + 1]?.text ?? '') ? afterGenerics(tokens, at + 2) : -1
  if (made > 0 && isPunct(tokens[made], '(') && isPunct(tokens[made + 1], ')')) {
    return `an empty ${tokens[at + 1]?.text} at module level can only be state; keep it on an instance`
  }
  return undefined
}

/** The index after `<…>` at this index, or the index itself. */
export function afterGenerics(tokens: readonly Token[], at: number): number {
  if (!isPunct(tokens[at], '<')) return at
  let depth = 0
  for (let i = at; i < tokens.length; i++) {
    if (isPunct(tokens[i], '<')) depth++
    else if (isPunct(tokens[i], '>') && --depth === 0) return i + 1
  }
  return tokens.length
}

function catchIsEmpty(tokens: readonly Token[], at: number): boolean {
  if (isPunct(tokens[at - 1], '.') || isPunct(tokens[at - 1], '?.')) return callbackIsEmpty(tokens, at)
  const open = isPunct(tokens[at + 1], '(') ? closing(tokens, at + 1) + 1 : at + 1
  return isPunct(tokens[open], '{') && isPunct(tokens[open + 1], '}')
}

/** `.catch(() => {})`, with or without a parameter. */
function callbackIsEmpty(tokens: readonly Token[], at: number): boolean {
  if (!isPunct(tokens[at + 1], '(')) return false
  const arrow = tokens.findIndex((token, i) => i > at && isPunct(token, '=>'))
  const inside = arrow > 0 && arrow < closing(tokens, at + 1) && arrow - at <= 6
  return inside && isPunct(tokens[arrow + 1], '{') && isPunct(tokens[arrow + 2], '}')
}

function isListing(tokens: readonly Token[], at: number): boolean {
  return (
    isWord(tokens[at], 'export') &&
    (isPunct(tokens[at + 1], '{') || (isWord(tokens[at + 1], 'type') && isPunct(tokens[at + 2], '{')))
  )
}

function defaultInside(tokens: readonly Token[], open: number): boolean {
  const inside = tokens.slice(open, closing(tokens, open))
  return inside.some((token, i) => isWord(token, 'as') && isWord(inside[i + 1], 'default'))
}

/** The indices of tokens outside every bracket. */
function topLevel(tokens: readonly Token[]): number[] {
  let depth = 0
  return tokens.flatMap((token, at) => {
    if (isOpen(token)) depth++
    else if (isClose(token)) depth--
    return depth === 0 && !isClose(token) ? [at] : []
  })
}

const STARTERS =
  /^(import|export|const|let|var|function|async|class|abstract|interface|type|enum|declare|await|if|for|while|switch|try|throw)$/

function startsStatement(tokens: readonly Token[], at: number): boolean {
  const token = tokens[at] as Token
  const before = tokens[at - 1]
  if (token.kind !== 'word' || !STARTERS.test(token.text)) return false
  return before === undefined || before.line < token.line || isPunct(before, ';')
}

function startsDeclaration(tokens: readonly Token[], at: number): boolean {
  const before = tokens[at - 1]
  return isWord(before, 'export') || startsStatement(tokens, at)
}

function eachToken(house: House, look: (tokens: readonly Token[], at: number) => string | undefined): Breach[] {
  return house.sources.flatMap((source: Source) =>
    source.code.flatMap((token, at): Breach[] => {
      const what = look(source.code, at)
      return what === undefined ? [] : [{ file: source.path, line: token.line, what }]
    }),
  )
}
