import type { Breach, House, Rule } from './source.js'

const PATH = /`([^`\s]+\/[^`\s]*)`/g
/** The folders at the root that documents name. */
const ROOTS = new Set(['src', 'test', 'bench', 'scripts', 'docs', 'examples'])

/**
 * Every path in backticks exists: from the root of the repository (`test/contract/`), or from `src/` when it names a
 * source file (`job/rules/decide.ts`).
 */
export const documentsNameOnlyWhatExists: Rule = (house) =>
  house.documents.flatMap(({ path, text }) =>
    text.split('\n').flatMap((line, index) =>
      [...line.matchAll(PATH)]
        .map(([, name]) => name as string)
        .filter((name) => !isRight(house, name))
        .map((name): Breach => ({ file: path, line: index + 1, what: `names ${name}, which does not exist` })),
    ),
  )

/** Text that is no path of ours is right: `and/or`, `./jobs.ts` of the reader. */
function isRight(house: House, name: string): boolean {
  const root = name.slice(0, name.indexOf('/'))
  if (ROOTS.has(root)) return exists(house, name)
  const isSource = /\.(ts|mjs|sql)$/.test(name) && exists(house, `src/${root}/`)
  return !isSource || exists(house, `src/${name}`)
}

/** `*` stands for a part of a name. A folder exists when a file is in it. */
function exists({ files }: House, name: string): boolean {
  const escaped = name.replaceAll(/[.+?^${}()|[\]\\]/g, String.raw`\$&`).replaceAll('*', '[^/]*')
  const path = new RegExp(name.endsWith('/') ? `^${escaped}` : `^${escaped}(/|$)`)
  return files.some((each) => path.test(each))
}
