import { posix } from 'node:path'
import { closing, isPunct, isWord } from './scan.js'
import type { Token } from './scan.js'
import type { Source } from './source.js'

/** One import of a file. A `type` import is erased; a `dynamic` one happens later, if at all. */
export interface Import {
  readonly specifier: string
  readonly kind: 'value' | 'type' | 'dynamic'
  readonly line: number
}

/**
 * Every import, re-export, `import()`, `require()`, `getBuiltinModule()` and `new URL('./x', import.meta.url)` of a file.
 * `import { type A }` counts as `value`: under `verbatimModuleSyntax` the module is still loaded.
 */
export function importsOf(source: Source): Import[] {
  const tokens = source.code
  return tokens
    .flatMap((token, at): Import[] => {
      if (token.kind !== 'word' || isPunct(tokens[at - 1], '.')) return []
      if (token.text === 'import') return importAt(tokens, at)
      if (token.text === 'export') return reExportAt(tokens, at)
      if (token.text === 'require' || token.text === 'URL') return callAt(tokens, at)
      return []
    })
    .concat(builtinsOf(tokens))
}

/** The path of the file that a specifier names, or undefined for a package or a `node:` module. */
export function resolve(from: string, specifier: string): string | undefined {
  if (specifier === 'millrace') return 'src/index.ts'
  if (!specifier.startsWith('.')) return undefined
  return posix.join(posix.dirname(from), specifier).replace(/\.js(x?)$/, '.ts$1')
}

function importAt(tokens: readonly Token[], at: number): Import[] {
  const next = tokens[at + 1]
  if (isPunct(next, '(')) return dynamicAt(tokens, at)
  if (next?.kind === 'string') return [{ specifier: next.text, kind: 'value', line: next.line }]
  if (next?.kind !== 'word' && !isPunct(next, '{') && !isPunct(next, '*')) return []
  const typed = isWord(next, 'type') && !isWord(tokens[at + 2], 'from') && !isPunct(tokens[at + 2], ',')
  return fromClause(tokens, at + 1, typed)
}

function reExportAt(tokens: readonly Token[], at: number): Import[] {
  const typed = isWord(tokens[at + 1], 'type')
  const start = at + (typed ? 2 : 1)
  if (isPunct(tokens[start], '*')) return fromClause(tokens, start, typed)
  if (!isPunct(tokens[start], '{')) return []
  const end = closing(tokens, start)
  return isWord(tokens[end + 1], 'from') ? fromClause(tokens, end, typed) : []
}

function fromClause(tokens: readonly Token[], start: number, typed: boolean): Import[] {
  for (let i = start; i < tokens.length; i++) {
    const next = tokens[i + 1]
    if (isWord(tokens[i], 'from') && next?.kind === 'string') {
      return [{ specifier: next.text, kind: typed ? 'type' : 'value', line: next.line }]
    }
  }
  return []
}

function dynamicAt(tokens: readonly Token[], at: number): Import[] {
  const target = tokens[at + 2]
  if (target?.kind !== 'string' && target?.kind !== 'template') return []
  const end = closing(tokens, at + 1)
  const member = isPunct(tokens[end + 1], '.') ? tokens[end + 2]?.text : undefined
  const typed = isWord(tokens[at - 1], 'typeof') || (member !== undefined && !/^(then|catch|finally)$/.test(member))
  return [{ specifier: target.text, kind: typed ? 'type' : 'dynamic', line: target.line }]
}

function callAt(tokens: readonly Token[], at: number): Import[] {
  const target = tokens[at + 2]
  if (!isPunct(tokens[at + 1], '(') || target?.kind !== 'string') return []
  if (isWord(tokens[at], 'URL') && !isWord(tokens[at + 4], 'import')) return []
  return [{ specifier: target.text, kind: 'dynamic', line: target.line }]
}

function builtinsOf(tokens: readonly Token[]): Import[] {
  return tokens.flatMap((token, at) => {
    const target = tokens.slice(at + 1, at + 4).find((t) => t.kind === 'string')
    if (!isWord(token, 'getBuiltinModule') || target === undefined) return []
    return [{ specifier: target.text, kind: 'dynamic' as const, line: target.line }]
  })
}
