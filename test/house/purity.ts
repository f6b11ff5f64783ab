import { importsOf } from './imports.js'
import { isPunct, isWord } from './scan.js'
import type { Token } from './scan.js'
import { shipped } from './source.js'
import type { Breach, Rule, Source } from './source.js'

/** SQL is written under `store/` and nowhere else. */
export const sqlOnlyInStore: Rule = (house) =>
  shipped(house)
    .filter(({ path }) => !path.startsWith('src/store/'))
    .flatMap((source) =>
      source.code
        .filter(({ kind, text }) => (kind === 'string' || kind === 'template') && isSql(text))
        .map(({ line, text }) => ({
          file: source.path,
          line,
          what: `holds SQL (${firstLine(text)}), which belongs in src/store/`,
        })),
    )

/** Clocks, timers and randomness come from the world that was passed in. */
export const nonDeterminismOnlyInWorld: Rule = (house) =>
  shipped(house)
    .filter(({ path }) => !/^src\/(world|dashboard\/web)\/|^src\/reactive\/host\.ts$/.test(path))
    .flatMap((source) => [...chanceInCode(source), ...chanceInText(source), ...chanceImported(source)])

/**
 * Prose may say «select» or «update»; a statement begins with it, or has the words that only SQL puts together.
 * `${}` is whatever a template inserts.
 */
function isSql(text: string): boolean {
  const lines = text.replaceAll('\\n', '\n')
  return STATEMENT_START.test(lines) || STATEMENT_INSIDE.test(lines)
}

const NAME = String.raw`["\x60[]?[\w$.{}]+["\x60\]]?`
const STATEMENT_START = new RegExp(
  [
    String.raw`(?:^|[\n;(])\s*select\b[\s\S]*?\sfrom\s+[("\w$]`,
    String.raw`^\s*select\s+[\w.]+\([^)]*\)\s*;?\s*$`,
    String.raw`(?:^|[\n;])\s*with\s+(?:recursive\s+)?${NAME}(?:\s*\([^)]*\))?\s+as\s+(?:(?:not\s+)?materialized\s+)?\(`,
    String.raw`^\s*pragma\s+${NAME}`,
    String.raw`^\s*begin\s*(?:;|immediate|exclusive|deferred|transaction|$)`,
    String.raw`^\s*(?:commit|rollback)\s*;?\s*$`,
    String.raw`^\s*(?:savepoint|release|rollback to)\s+${NAME}\s*;?\s*$`,
    String.raw`^\s*(?:vacuum|analyze|listen|notify)\s*(?:into\b.*|${NAME})?\s*;?\s*$`,
  ].join('|'),
  'i',
)
const STATEMENT_INSIDE = new RegExp(
  [
    String.raw`\binsert\s+(?:or\s+\w+\s+)?into\s+${NAME}\s*(?:\(|\bvalues\b|\bselect\b|\bdefault\b)`,
    String.raw`\bupdate\s+(?:only\s+)?${NAME}(?:\s+as\s+\w+)?\s+set\s+${NAME}\s*=`,
    String.raw`\bdelete\s+from\s+${NAME}(?:\s+(?:where|returning|using)\b|\s*;|\s*$)`,
    String.raw`\b(?:create|drop|alter)\s+(?:temp\w*\s+|unique\s+|virtual\s+|unlogged\s+)*(?:table|index|trigger|view)\s+(?:if\s+)?${NAME}`,
    String.raw`\bpragma\s+\w+\s*[=(]`,
    String.raw`\bbegin\s+immediate\b`,
  ].join('|'),
  'i',
)

const firstLine = (text: string): string => text.trim().split('\n')[0]?.slice(0, 40) ?? ''

const TIMERS = /^(setTimeout|setInterval|setImmediate|queueMicrotask)$/
/** `object.member` pairs that read a clock or draw random numbers. */
const MEMBERS =
  /^(Date\.now|performance\.now|performance\.timeOrigin|Math\.random|process\.hrtime|AbortSignal\.timeout|process\.nextTick)$/
const MODULES = /^(node:)?(crypto|timers|timers\/promises|perf_hooks)$/

function chanceInCode(source: Source): Breach[] {
  const tokens = source.code
  return tokens.flatMap((_, at) => {
    const what = chanceAt(tokens, at)
    return what === undefined ? [] : [breach(source, (tokens[at] as Token).line, what)]
  })
}

function chanceAt(tokens: readonly Token[], at: number): string | undefined {
  const [token, next, after] = tokens.slice(at, at + 3)
  if (token?.kind !== 'word') return undefined
  const owned =
    (isPunct(tokens[at - 1], '.') || isPunct(tokens[at - 1], '?.')) &&
    !/^(globalThis|window|self)$/.test(tokens[at - 2]?.text ?? '')
  if (owned) return undefined
  if (TIMERS.test(token.text)) return token.text
  if (token.text === 'crypto' && isPunct(next, '.')) return `crypto.${after?.text}`
  if (token.text === 'Date') return dateAt(tokens, at)
  const pair = `${token.text}.${after?.text}`
  return isPunct(next, '.') && MEMBERS.test(pair) ? pair : undefined
}

/** `Date.now`, and `Date` without an argument; `new Date(ms)` only names an instant and is allowed. */
function dateAt(tokens: readonly Token[], at: number): string | undefined {
  const next = tokens[at + 1]
  if (isPunct(next, '.') && isWord(tokens[at + 2], 'now')) return 'Date.now'
  const empty = isPunct(next, '(') && isPunct(tokens[at + 2], ')')
  if (isWord(tokens[at - 1], 'new')) return empty || !isPunct(next, '(') ? 'new Date()' : undefined
  return empty ? 'Date()' : undefined
}

/** Code kept as text (the source of a thread) is checked too, so that the rule cannot be bypassed. */
function chanceInText(source: Source): Breach[] {
  return source.code
    .filter(({ kind }) => kind === 'string' || kind === 'template')
    .flatMap(({ text, line }) => {
      const calls = text.matchAll(
        /\b(?:set(?:Timeout|Interval|Immediate)|queueMicrotask|Date\.now|performance\.now|Math\.random)(?=\()/g,
      )
      const modules = text.matchAll(/\b(?:require|import)\(\s*(?:\\?['"])(?:node:)?(?:crypto|timers[\w/]*)(?=\\?['"])/g)
      return [...new Set([...calls, ...modules].map(([found]) => found))].map((found) =>
        breach(source, line, `${found}, in a string`),
      )
    })
}

function chanceImported(source: Source): Breach[] {
  return importsOf(source)
    .filter(({ specifier, kind }) => kind !== 'type' && MODULES.test(specifier))
    .map(({ specifier, line }) => breach(source, line, specifier))
}

function breach(source: Source, line: number, what: string): Breach {
  return { file: source.path, line, what: `uses ${what}; take it from the world that was passed in` }
}
