import type { Ceilings } from './length.js'
import { isPunct, closing } from './scan.js'
import type { Token } from './scan.js'
import { afterGenerics } from './shape.js'
import type { Breach, Rule, Source } from './source.js'

/** Words that hide the actor, or that no reader would search for. The comment or name says which worker, caller or row instead. */
const BANNED = /\b(somebody|nobody|everybody|whoever|himself|anew|(?:is|are|was) told|hears|honour(?:s|ed|ing)?)\b/gi
/** Functions whose first string is the name of a test. */
const NAMERS = new Set(['test', 'it', 'describe', 'contract'])
/** How far below its ceiling a folder may fall before the ceiling must be lowered. */
const SLACK = 20

/** Comments and test names use none of the banned words. A listed folder may still have so many, and only fewer from now on. */
export const languageIsPlain =
  (ceilings: Ceilings): Rule =>
  ({ sources, others }) => {
    const found = new Map<string, Breach[]>(Object.keys(ceilings).map((folder) => [folder, []]))
    for (const source of [...sources, ...others])
      for (const { text, line } of proseOf(source))
        for (const [word] of text.matchAll(BANNED)) {
          const folder = folderOf(source.path)
          const breach = {
            file: source.path,
            line,
            what: `says «${word}»: name the actor, or use the word of the field`,
          }
          found.set(folder, [...(found.get(folder) ?? []), breach])
        }
    return [...found].flatMap(([folder, breaches]) => judge(folder, breaches, ceilings[folder] ?? 0))
  }

function judge(folder: string, breaches: readonly Breach[], ceiling: number): readonly Breach[] {
  const count = breaches.length
  if (count > ceiling)
    return ceiling === 0
      ? breaches
      : breaches.map((each) => ({
          ...each,
          what: `${each.what} (${folder} has ${count}, and its ceiling is ${ceiling})`,
        }))
  const isLow = ceiling > 0 && (count === 0 || count < ceiling - SLACK)
  return isLow ? [{ file: folder, line: 1, what: `has ${count} banned words: lower its ceiling of ${ceiling}` }] : []
}

/** The first two folders of a path: `src/store` of `src/store/sqlite/file.ts`. */
function folderOf(path: string): string {
  return path.split('/').slice(0, -1).slice(0, 2).join('/')
}

function proseOf({ tokens, code }: Source): readonly Token[] {
  return [...tokens.filter(({ kind }) => kind === 'comment'), ...code.flatMap((_, at) => testNameAt(code, at) ?? [])]
}

/** `test('name'`, `test.skipIf(…)('name'`, `describe.each<T>(…)('name'`: the token of the name. */
function testNameAt(tokens: readonly Token[], at: number): Token | undefined {
  const token = tokens[at]
  if (token?.kind !== 'word' || !NAMERS.has(token.text) || isPunct(tokens[at - 1], '.')) return undefined
  for (let i = afterGenerics(tokens, at + 1); i < tokens.length; i = afterGenerics(tokens, i)) {
    const next = tokens[i + 1]
    if (isPunct(tokens[i], '.')) i += 2
    else if (!isPunct(tokens[i], '(')) return undefined
    else if (next?.kind === 'string' || next?.kind === 'template') return next
    else i = closing(tokens, i) + 1
  }
  return undefined
}
