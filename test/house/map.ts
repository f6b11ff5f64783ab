import { dirname } from 'node:path'
import { shipped } from './source.js'
import type { Breach, Rule } from './source.js'

const MAP = 'ARCHITECTURE.md'
const PATH = /`((?:[\w.*-]+\/)+[\w.*-]*|[\w-]+\.(?:ts|mjs|sql))`/g

/** A new folder of `src/` is a new room: the map says what it holds. */
export const mapNamesEveryRoom: Rule = (house) => {
  const text = house.doc(MAP) ?? ''
  const folders = new Set(shipped(house).map(({ path }) => dirname(path)))
  return [...folders]
    .filter((folder) => folder !== 'src' && !text.includes(`${folder.slice(folder.lastIndexOf('/') + 1)}/`))
    .map((folder): Breach => ({ file: MAP, line: 1, what: `does not name the folder ${folder}` }))
}

/** Every file and folder that the map names in backticks exists, by its path or by the end of it (`verbs/claim.ts`). */
export const mapNamesOnlyWhatExists: Rule = (house) =>
  (house.doc(MAP) ?? '').split('\n').flatMap((line, index): Breach[] =>
    [...line.matchAll(PATH)]
      .map(([, name]) => name as string)
      .filter((name) => !house.paths.some((path) => matches(path, name)))
      .map((name) => ({ file: MAP, line: index + 1, what: `names ${name}, which does not exist` })),
  )

function matches(path: string, name: string): boolean {
  const escaped = name.replaceAll(/[.+?^${}()|[\]\\]/g, String.raw`\$&`).replaceAll('*', '[^/]*')
  return new RegExp(name.endsWith('/') ? `(^|/)${escaped}` : `(^|/)${escaped}$`).test(path)
}
