import { dirname } from 'node:path'
import { shipped } from './source.js'
import type { Breach, Rule } from './source.js'

const MAP = 'ARCHITECTURE.md'
const PATH = /`((?:[\w.*-]+\/)+[\w.*-]*|[\w-]+\.(?:ts|mjs|sql))`/g

/** A new folder of `src/` is a new room: the tree under "The rooms" has it, below its own parent. */
export const mapNamesEveryRoom: Rule = (house) => {
  const named = roomsOn(house.doc(MAP) ?? '')
  const folders = new Set(shipped(house).map(({ path }) => dirname(path)))
  return [...folders]
    .filter((folder) => folder !== 'src' && !named.has(folder))
    .map((folder): Breach => ({ file: MAP, line: 1, what: `does not name the folder ${folder}` }))
}

/** The folders of the tree: a line names one or more, and lines that are indented further are inside the last of them. */
function roomsOn(text: string): ReadonlySet<string> {
  const rooms = new Set<string>()
  let parent = ''
  for (const [, indent = '', names = ''] of text.matchAll(/^( {2}| {4})(\S+(?: \S+)*)/gm)) {
    const folders = names.split(' ').filter((name) => name.endsWith('/'))
    if (indent.length === 2) parent = folders.at(-1) ?? parent
    for (const folder of folders) rooms.add(`src/${indent.length === 2 ? '' : parent}${folder}`.slice(0, -1))
  }
  return rooms
}

/** Every file and folder that the map names in backticks exists, by its path or by the end of it (`verbs/claim.ts`). */
export const mapNamesOnlyWhatExists: Rule = (house) =>
  (house.doc(MAP) ?? '').split('\n').flatMap((line, index): Breach[] =>
    [...line.matchAll(PATH)]
      .map(([, name]) => name as string)
      .filter((name) => !house.files.some((path) => matches(path, name)))
      .map((name) => ({ file: MAP, line: index + 1, what: `names ${name}, which does not exist` })),
  )

function matches(path: string, name: string): boolean {
  const escaped = name.replaceAll(/[.+?^${}()|[\]\\]/g, String.raw`\$&`).replaceAll('*', '[^/]*')
  return new RegExp(name.endsWith('/') ? `(^|/)${escaped}` : `(^|/)${escaped}$`).test(path)
}
